// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_transport.hpp"

#include <fmt/format.h>
#include <clutch/error.hpp>
// The C bindings alone.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

std::atomic<bool> g_no_finalize{false}, g_is_patient{true};

void check(int status, const char* call, ErrorCode code = ErrorCode::peer_failed) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(code, "dist", fmt::format("{} failed: {}", call, std::string_view(text, static_cast<std::size_t>(length))));
}

/// Messages that may come yet, and their memory. They are never waited for.
class Graveyard {
 public:
  static Graveyard& instance() {
    static auto& graveyard = *new Graveyard;  // never destroyed: MPI may write there until the process ends
    return graveyard;
  }
  void bury(std::vector<MPI_Request> requests, std::vector<std::shared_ptr<void>> memory) {
    const std::lock_guard lock(mutex_);
    graves_.push_back({std::move(requests), std::move(memory)});
  }

 private:
  struct Grave {
    std::vector<MPI_Request> requests;
    std::vector<std::shared_ptr<void>> memory;
  };
  std::mutex mutex_;
  std::vector<Grave> graves_;
};

/// A communicator that is freed with the last exchange on it.
class Communicator {
 public:
  explicit Communicator(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  // Freeing is collective: who has lost a rank, or ends, leaves it to the process's end. MPI uses numbers of communicators again: a message that nobody has
  // taken would come to the next one of the number.
  ~Communicator() {
    int is_finalized = 0, is_waiting = 0;
    MPI_Finalized(&is_finalized);
    if (is_finalized != 0 || g_no_finalize || abandoned_) return;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &is_waiting, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_waiting == 0) MPI_Comm_free(&comm_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  MPI_Comm get() const { return comm_; }
  /// Messages have been given up: it stays to the process's end.
  void abandon() { abandoned_ = true; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  std::atomic<bool> abandoned_{false};
};

/// MPI counts in int.
constexpr std::size_t kPiece = std::size_t{1} << 30;

/// Numbers of a transport's ranks in the communicator.
using Members = std::vector<int>;

class MpiExchange final : public Exchange {
 public:
  MpiExchange(std::shared_ptr<Communicator> comm, std::shared_ptr<const Members> members, int tag)
      : comm_(std::move(comm)), members_(std::move(members)), tag_(tag) {}
  ~MpiExchange() override {
    if (requests_.empty()) return;
    comm_->abandon();
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (receives_[i]) MPI_Cancel(&requests_[i]);
    int all = 0;
    if (MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE) == MPI_SUCCESS && all != 0) return;
    memory_.push_back(comm_);
    Graveyard::instance().bury(std::move(requests_), std::move(memory_));
  }
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  void send(int peer, std::span<const std::byte> data) override {
    const int to = number_of(peer);
    pieces(data, [&](std::span<const std::byte> piece) {
      check(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, to, tag_, comm_->get(), &begin(peer, false)), "MPI_Isend");
    });
  }
  void receive(int peer, std::span<std::byte> to) override {
    const int from = peer == kAnyPeer ? MPI_ANY_SOURCE : number_of(peer);
    pieces(to, [&](std::span<std::byte> piece) {
      check(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, tag_, comm_->get(), &begin(peer, true)), "MPI_Irecv");
    });
  }
  bool done() override {
    if (requests_.empty()) return true;
    int all = 0;
    std::vector<MPI_Status>& statuses = statuses_;
    statuses.resize(requests_.size());
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, statuses.data()), "MPI_Testall");
    if (all == 0) return false;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (receives_[i]) source_ = statuses[i].MPI_SOURCE;
    requests_.clear(), peers_.clear(), receives_.clear();
    return true;
  }
  std::vector<int> waiting_for() const override {
    std::vector<int> peers;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int is_done = 0;
      if (MPI_Request_get_status(requests_[i], &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done == 0) peers.push_back(peers_[i]);
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }
  int source() const override {
    const auto at = std::find(members_->begin(), members_->end(), source_);
    return at == members_->end() ? kAnyPeer : static_cast<int>(at - members_->begin());
  }
  void keep(std::shared_ptr<void> memory) override { memory_.push_back(std::move(memory)); }

 private:
  int number_of(int peer) const { return (*members_)[static_cast<std::size_t>(peer)]; }
  template <class Byte, class F>
  static void pieces(std::span<Byte> all, F&& f) {
    for (; all.size() > kPiece; all = all.subspan(kPiece)) f(all.first(kPiece));
    f(all);
  }
  MPI_Request& begin(int peer, bool receives) {
    peers_.push_back(peer), receives_.push_back(receives);
    return requests_.emplace_back(MPI_REQUEST_NULL);
  }

  const std::shared_ptr<Communicator> comm_;
  const std::shared_ptr<const Members> members_;
  const int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> peers_;
  std::vector<bool> receives_;
  std::vector<std::shared_ptr<void>> memory_;
  int source_ = kAnyPeer;
};

/// Tags of all lanes: a part of a communicator's.
constexpr std::int64_t kTagsOfLanes = (static_cast<std::int64_t>(Lane::presence) + 1) * kTags;

/// The largest tag.
std::int64_t tags_of(MPI_Comm comm) {
  void* limit = nullptr;
  int has_limit = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, &limit, &has_limit);
  return has_limit == 0 ? 0 : *static_cast<int*>(limit);
}

class MpiTransport final : public Transport {
 public:
  /// `part`: which of the parts of tags that the communicator has.
  MpiTransport(std::shared_ptr<Communicator> comm, Members members, std::int64_t part)
      : comm_(std::move(comm)),
        members_(std::make_shared<const Members>(std::move(members))),
        part_(part),
        rank_(static_cast<int>(std::find(members_->begin(), members_->end(), comm_->rank()) - members_->begin())) {}
  /// Of all ranks of a communicator that nobody else has.
  static std::shared_ptr<Transport> of_all(MPI_Comm comm) {
    auto own = std::make_shared<Communicator>(comm);
    Members all(static_cast<std::size_t>(own->size()));
    std::iota(all.begin(), all.end(), 0);
    return std::make_shared<MpiTransport>(std::move(own), std::move(all), 0);
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_->size()); }
  std::unique_ptr<Exchange> open(Lane lane, std::uint32_t tag) override {
    const std::int64_t number = part_ * kTagsOfLanes + static_cast<std::int64_t>(lane) * kTags + tag % kTags;
    return std::make_unique<MpiExchange>(comm_, members_, static_cast<int>(number));
  }
  std::shared_ptr<Transport> among(std::span<const int> ranks, std::uint64_t group) override {
    const Members members = of(ranks);
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    check(MPI_Comm_group(comm_->get(), &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some), "MPI_Group_incl");
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_create_group(comm_->get(), some, static_cast<int>(group % 32768), &comm), "MPI_Comm_create_group");
    MPI_Group_free(&all), MPI_Group_free(&some);
    return of_all(comm);
  }
  /// By other tags of the same communicator: a new one would wait for ranks that are lost meanwhile, for good.
  std::shared_ptr<Transport> beside(std::span<const int> ranks, std::uint64_t group) override {
    const std::int64_t parts = (tags_of(comm_->get()) + 1) / kTagsOfLanes - 1;
    if (parts < 1) return among(ranks, group);
    const std::uint64_t number = group + static_cast<std::uint64_t>(part_) * 31;
    return std::make_shared<MpiTransport>(comm_, of(ranks), 1 + static_cast<std::int64_t>(number % static_cast<std::uint64_t>(parts)));
  }

 private:
  /// The communicator's numbers of some ranks.
  Members of(std::span<const int> ranks) const {
    Members members;
    for (const int r : ranks) members.push_back((*members_)[static_cast<std::size_t>(r)]);
    return members;
  }

  const std::shared_ptr<Communicator> comm_;
  const std::shared_ptr<const Members> members_;
  const std::int64_t part_;
  const int rank_;
};

void finalize() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0 || g_no_finalize) return;
  // It would wait for ranks that do not come, too.
  constexpr std::chrono::seconds kPatience{2};
  MPI_Request request = MPI_REQUEST_NULL;
  int all_came = MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS ? 0 : 1;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (all_came == 0) {
    if (MPI_Test(&request, &all_came, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (all_came == 0 && !g_is_patient && std::chrono::steady_clock::now() > deadline) return;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  MPI_Finalize();
}

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    int is_initialized = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&is_initialized);
    if (is_initialized != 0) return;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread", ErrorCode::not_supported);
    std::atexit(finalize);
  });
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE)
    throw Error(ErrorCode::not_supported, "dist::open",
                "MPI was initialized without MPI_THREAD_MULTIPLE: call MPI_Init_thread with it, or let open() initialize MPI");
}

}  // namespace

bool has_mpi() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (std::getenv(variable) != nullptr) return true;
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  return is_initialized != 0;
}

bool survives_killed_ranks() {
  const char* const recovers = std::getenv("OMPI_MCA_orte_enable_recovery");
  return std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr || (recovers != nullptr && std::string_view(recovers) == "1");
}

std::shared_ptr<Transport> mpi_transport(void* communicator) {
  initialize();
  if (tags_of(MPI_COMM_WORLD) < kTagsOfLanes - 1)
    throw Error(ErrorCode::not_supported, "dist::open", fmt::format("MPI's tags must reach to {}", kTagsOfLanes - 1));
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(communicator != nullptr ? *static_cast<MPI_Comm*>(communicator) : MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return MpiTransport::of_all(comm);
}

void never_finalize_mpi() noexcept { g_no_finalize = true; }
void wait_less_for_finalize() noexcept { g_is_patient = false; }

}}}}  // namespace clutch::v0::dist::detail
