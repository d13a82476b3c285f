// SPDX-License-Identifier: Apache-2.0
// A program of a user's whose memory memory_test.cpp limits. Prints what happened.
#include <clutch/clutch.hpp>
#include <clutch/interop_cl.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

namespace {

/// Takes memory until there is none, then goes on with less.
void exhaust() {
  constexpr std::int64_t kFloats = 16 << 20;  // 64 MiB
  std::vector<clutch::Tensor> kept;
  try {
    const clutch::MemoryLabelGuard label("hoard");
    while (kept.size() < 1000) kept.push_back(clutch::full({kFloats}, 1));
    std::cout << "never refused\n";
  } catch (const clutch::Error& e) {
    std::cout << "Error " << clutch::name(e.code()) << ": " << e.what() << '\n';
  }
  std::cout << "held " << kept.size() << '\n';
  const std::size_t held = kept.size();
  kept.resize(held / 2);
  std::size_t again = kept.size();
  try {
    while (kept.size() < held) kept.push_back(clutch::full({kFloats}, 2)), again = kept.size();
  } catch (const clutch::Error&) {
  }
  clutch::synchronize();
  std::cout << "again " << again;
  if (!kept.empty()) std::cout << ", last " << kept.back().slice(0, 0, 1).to_host<float>()[0];
  std::cout << '\n';
}

void limit_addresses() {
  clutch::full({1024}, 1).to_host<float>();  // drivers and programs are there
  clutch::empty_cache();                     // no range of addresses is
  std::uint64_t used = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu", &used) != 1) used = 0;
    std::fclose(file);
  }
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = used * 4096 + (1ull << 30);
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::cout << "no limit\n";
  exhaust();
}

/// True if a block of that address is in use, or waits for work on it. A snapshot looks at what is done.
bool is_in_use(std::uint64_t address) {
  for (const clutch::MemorySegment& segment : clutch::memory_snapshot().segments)
    for (const clutch::MemoryBlock& block : segment.blocks)
      if (block.address == address && block.state != "inactive") return true;
  return false;
}

/// Reads memory behind the allocator's back after its tensor is gone.
void use_freed() {
  clutch::Tensor x = clutch::full({1 << 16}, 5);
  cl_mem buffer = clutch::interop::mem(x);
  const std::uint64_t offset = clutch::interop::offset(x), address = clutch::memory_address(x);
  clutch::Tensor keeps_the_segment = clutch::full({1 << 16}, 6);
  x = clutch::Tensor();
  clutch::synchronize();
  // Events of some drivers end a moment after their work.
  while (is_in_use(address)) {
  }
  float read = 0;
  clEnqueueReadBuffer(clutch::interop::queue(clutch::current_stream()), buffer, CL_TRUE, offset, sizeof read, &read, 0, nullptr, nullptr);
  std::cout << "read " << read << ", kept " << keeps_the_segment.slice(0, 0, 1).to_host<float>()[0] << std::endl;
}

/// A small program with history, its snapshot, and the counters that the snapshot must have.
void snapshot(const std::string& path) {
  clutch::record_memory_history();
  std::vector<clutch::Tensor> kept;
  for (int step = 0; step < 20; ++step) {
    const clutch::MemoryLabelGuard label(step % 2 ? "odd" : "even");
    clutch::Tensor x = clutch::full({(step + 1) * 10000}, step);
    clutch::Tensor y = clutch::add(x, x);
    if (step % 3 == 0) kept.push_back(y);
  }
  clutch::synchronize();
  clutch::dump_memory_snapshot(path);
  for (const auto& [key, value] : clutch::memory_stats()) std::cout << key << ' ' << value << '\n';
}

/// What may be held without a setting, of what the system and its control groups allow.
void allowed() {
  const clutch::MemoryInfo info = clutch::get_memory_info();
  std::cout << "may hold " << info.total << '\n';
}

/// The addresses that an order of calls gives.
void addresses() {
  std::vector<clutch::Tensor> kept;
  for (int i = 0; i < 100; ++i) {
    kept.push_back(clutch::empty({1 + (i * 7919 % 97) * (i % 3 ? 1000 : 100000)}));
    std::cout << clutch::memory_address(kept.back()) << ' ';
    if (i % 2) kept.erase(kept.begin() + i * 31 % static_cast<int>(kept.size()));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "exhaust") exhaust();
  if (mode == "limit_addresses") limit_addresses();
  if (mode == "use_freed") use_freed();
  if (mode == "snapshot") snapshot(argv[2]);
  if (mode == "allowed") allowed();
  if (mode == "addresses") addresses();
  return 0;
} catch (const clutch::Error& e) {
  std::cout << "Error " << clutch::name(e.code()) << ": " << e.what() << '\n';
  return 0;
}
