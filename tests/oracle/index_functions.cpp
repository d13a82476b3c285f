// SPDX-License-Identifier: Apache-2.0
// Functions with indices: segments, compressed rows, scatter and gather, groups, embeddings.
#include "server.hpp"

namespace clutch::oracle {

namespace {

Reduce reduction(const Call& c) {
  return c.choice<Reduce>("reduce", {{"sum", Reduce::sum}, {"prod", Reduce::prod}, {"amin", Reduce::amin}, {"amax", Reduce::amax}, {"mean", Reduce::mean}});
}

SegmentOptions segment_options(const Call& c) {
  SegmentOptions options{.reduce = reduction(c), .initial = {}, .implementation = {}};
  if (c.has("initial")) options.initial = c.number("initial", 0);
  return options;
}

ScatterOptions scatter_options(const Call& c) { return {.reduce = reduction(c), .include_self = c.integer("include_self", 1) != 0, .implementation = {}}; }

sparse::Csr matrix(const Call& c) { return {.offsets = c["offsets"], .columns = c["columns"], .values = c.optional("values"), .width = c.integer("width", 0)}; }

}  // namespace

void add_index_functions(Functions& table) {
  table["segment_reduce"] = [](Call& c) {
    if (c.has("out")) return segment_reduce_out(c["out"], c["data"], c["offsets"], segment_options(c));
    const Tensor result = segment_reduce(c["data"], c["offsets"], segment_options(c));
    c.give(result);
    if (c.has("grad")) c.give(segment_reduce_backward(c["grad"], result, c["data"], c["offsets"], segment_options(c)));
  };
  table["spmm"] = [](Call& c) {
    if (c.has("out")) return sparse::spmm_out(c["out"], matrix(c), c["b"], {.reduce = reduction(c), .implementation = {}});
    const Tensor result = sparse::spmm(matrix(c), c["b"], {.reduce = reduction(c), .implementation = {}});
    c.give(result);
    if (!c.has("grad")) return;
    const sparse::SpmmGradients g = sparse::spmm_backward(c["grad"], result, matrix(c), c["b"], {.reduce = reduction(c), .implementation = {}});
    c.give(std::vector{g.values, g.b});
  };
  table["scatter_reduce"] = [](Call& c) {
    if (c.flag("in_place")) return scatter_reduce_(c["self"], c.rank("dim", 0), c["index"], c["src"], scatter_options(c));
    const Tensor result = scatter_reduce(c["self"], c.rank("dim", 0), c["index"], c["src"], scatter_options(c));
    c.give(result);
    if (!c.has("grad")) return;
    const ScatterGradients g = scatter_reduce_backward(c["grad"], result, c["self"], c.rank("dim", 0), c["index"], c["src"], scatter_options(c));
    c.give(std::vector{g.self, g.src});
  };
  table["gather"] = [](Call& c) { c.give(gather(c["x"], c.rank("dim", 0), c["index"])); };
  table["gather_backward"] = [](Call& c) { c.give(gather_backward(c["grad"], c.dims("sizes"), c.rank("dim", 0), c["index"])); };
  table["index_select"] = [](Call& c) { c.give(index_select(c["x"], c.rank("dim", 0), c["index"])); };
  table["group_by"] = [](Call& c) {
    const Groups g = group_by(c["index"], c.integer("groups", 0));
    c.give(std::vector{g.offsets, g.order});
  };
  const auto give_sorted = [](Call& c, const Sorted& s) { c.give(std::vector{s.values, s.indices}); };
  table["sort"] = [=](Call& c) {
    const SortOptions options{.descending = c.flag("descending"), .implementation = {}};
    if (c.flag("argsort")) return c.give(argsort(c["x"], c.rank("dim", -1), options));
    give_sorted(c, sort(c["x"], c.rank("dim", -1), options));
  };
  table["topk"] = [=](Call& c) { give_sorted(c, topk(c["x"], c.integer("k", 0), c.rank("dim", -1), {.largest = c.flag("largest"), .implementation = {}})); };
  table["kthvalue"] = [=](Call& c) {
    give_sorted(c, kthvalue(c["x"], c.integer("k", 0), c.rank("dim", -1), {.keepdim = c.flag("keepdim"), .implementation = {}}));
  };
  // Which tensors of `indices` are whole dimensions stands in `whole`.
  const auto indices_of = [](const Call& c) {
    std::vector<Tensor> all;
    std::size_t next = 0;
    const std::vector<Tensor> given = c.list("indices");
    for (std::int64_t whole : c.dims("whole")) all.push_back(whole != 0 ? Tensor() : given[next++]);
    return all;
  };
  table["index"] = [=](Call& c) { c.give(index(c["x"], indices_of(c))); };
  table["index_put"] = [=](Call& c) {
    const IndexPutOptions options{.accumulate = c.flag("accumulate")};
    if (c.flag("in_place")) return index_put_(c["self"], indices_of(c), c["values"], options);
    c.give(index_put(c["self"], indices_of(c), c["values"], options));
  };
  table["nonzero"] = [](Call& c) { c.give(nonzero(c["x"])); };
  table["nonzero_static"] = [](Call& c) {
    c.give(nonzero_static(c["x"], c.integer("size", 0), {.fill_value = c.integer("fill_value", -1), .implementation = {}}));
  };
  table["count_nonzero"] = [](Call& c) { c.give(count_nonzero(c["x"], {.dims = c.dims("dims")})); };
  table["masked_select"] = [](Call& c) { c.give(masked_select(c["x"], c["mask"])); };
  table["unique"] = [](Call& c) {
    const UniqueOptions options{.return_inverse = c.flag("inverse"), .return_counts = c.flag("counts"), .implementation = {}};
    const Unique made = c.flag("consecutive") ? unique_consecutive(c["x"], options) : unique(c["x"], options);
    std::vector<Tensor> all{made.values};
    if (options.return_inverse) all.push_back(made.inverse);
    if (options.return_counts) all.push_back(made.counts);
    c.give(all);
  };
  table["embedding"] = [](Call& c) { c.give(nn::embedding(c["weight"], c["index"])); };
  table["embedding_backward"] = [](Call& c) {
    c.give(nn::embedding_backward(c["grad"], c["index"], c.integer("rows", 0),
                                  {.padding_index = c.integer("padding_index", -1), .scale_by_frequency = c.flag("scale_by_frequency")}));
  };
}

}  // namespace clutch::oracle
