// SPDX-License-Identifier: Apache-2.0
// Memory that kernels of all ranks of a host reach, and collectives made of such kernels.
#pragma once
#include "dist/group.hpp"
#include "dist/shared_segment.hpp"

#include <clutch/expr.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct RowNotes;

class SymmetricImpl {
 public:
  /// Collective among the ranks of the group.
  static std::shared_ptr<SymmetricImpl> make(const Dims& sizes, const Group& group, const TensorOptions& options, int channels);

  const Group& group() const noexcept { return group_; }
  int channels() const noexcept { return channels_; }
  /// 1 and more, the same on all ranks.
  std::uint64_t id() const noexcept { return id_; }
  bool is_direct(int rank) const { return direct_[static_cast<std::size_t>(rank)]; }
  bool all_direct() const { return all_direct_; }
  const Tensor& part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  /// The byte of the own part at which a view of it begins.
  std::uint64_t place_of(const Tensor& own) const;
  /// The elements of a rank's part that this tensor, a view of the own one, has here.
  Tensor same_view(const Tensor& own, int rank) const;
  /// The counter that `from` has at `at`, as a tensor.
  Tensor counter(int at, int from, int channel) const;
  /// All counters of a rank.
  const Tensor& counters(int at) const { return pads_[static_cast<std::size_t>(at)]; }
  std::uint32_t counted(int from, int channel) const;
  /// A word of 64 bits of this rank's part, as kernels that are done have left it.
  std::int64_t read_word(std::uint64_t index) const;
  /// What exchanges of rows keep with the memory.
  std::shared_ptr<RowNotes>& row_notes() noexcept { return row_notes_; }

 private:
  SymmetricImpl(const Group& group, int channels, std::uint64_t id) : group_(group), channels_(channels), id_(id) {}
  void try_tiers(const Device& device);

  const Group group_;
  const int channels_;
  const std::uint64_t id_;
  std::vector<std::shared_ptr<SharedSegment>> segments_;  ///< null where there is none
  std::vector<Tensor> parts_, pads_;
  std::vector<bool> direct_;
  bool all_direct_ = false;
  std::shared_ptr<RowNotes> row_notes_;
};

inline Tensor flat(const Tensor& tensor) { return tensor.reshape({tensor.numel()}); }
/// A sum of so many ranks over their number.
Expr average(const Expr& sum, int ranks);

/// A reduction with what is done to elements before it and to the result.
struct FusedReduction {
  Reduction reduction;
  ElementFunction before = {}, after = {};
};

/// True where one launch can do the collective with tensors in this memory.
bool can_launch(const SymmetricImpl& memory, const Reduction* reduction, int outputs);

/// Of this rank, of a view of the memory: out of all ranks' elements of this block what all of them get there.
void launch_all_reduce(const SymmetricImpl& memory, const Tensor& self, const FusedReduction& fused, const Stream& stream);
void launch_reduce_scatter(const SymmetricImpl& memory, const Tensor& out, const Tensor& in, const FusedReduction& fused, const Stream& stream);
void launch_all_gather(const SymmetricImpl& memory, const Tensor& out, const Tensor& in, const Stream& stream);
void launch_all_to_all(const SymmetricImpl& memory, const Tensor& out, const Tensor& in, const Stream& stream);
void launch_broadcast(const SymmetricImpl& memory, const Tensor& self, int root, const Stream& stream);

}}}}  // namespace clutch::v0::dist::detail
