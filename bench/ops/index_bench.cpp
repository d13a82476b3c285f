// SPDX-License-Identifier: Apache-2.0
#include "cases/index.hpp"
#include "harness/rows.hpp"
#include "peers/torch.hpp"

#include <clutch/ops/random.hpp>

namespace clutch::bench {

void register_index(Rows& rows);

namespace {

struct Shape {
  const char* name;
  Dims x;
  int dims;  ///< from the front, that are counted along
  std::int64_t places;
  bool puts, accumulates;
  const char* peer;  ///< of x, i (indices along each of `dims`) and v (values)
  bool in_default;
};

Work work_of(const Shape& s, const Device& device) {
  const Tensor x = rand(s.x, {.device = device, .seed = 1});
  std::vector<cases::IndexCase::Indices> indices;
  std::vector<Tensor> tensors;
  std::int64_t inner = 1;
  for (int d = 0; d < s.x.rank(); ++d) {
    if (d >= s.dims) {
      inner *= s.x[d];
      continue;
    }
    indices.push_back(cases::IndexCase::some({s.places}, s.x[d], static_cast<std::uint64_t>(d) + 3, false));
    tensors.push_back(from_host(indices.back().values, {s.places}, device));
  }
  const Tensor v = rand({s.places, inner}, {.device = device, .seed = 2});
  auto last = std::make_shared<Tensor>();
  const IndexPutOptions options{.accumulate = s.accumulates};
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) {
      if (s.puts)
        index_put_(x, tensors, v.reshape(s.dims == s.x.rank() ? Dims{s.places} : Dims{s.places, inner}), options, stream);
      else
        *last = index(x, tensors, stream);
    }
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    const auto mapped = cases::IndexCase::model(s.x, indices);
    if (!s.puts) return last->to_bytes() == cases::IndexCase::taken(x.to_bytes(), DType::f32, mapped) ? "" : "other elements than the model's";
    // Sums grow with each call; of replaced elements the last value holds.
    return s.accumulates || x.to_bytes() == cases::IndexCase::stored(x.to_bytes(), DType::f32, mapped, v.to_bytes(), false) ? ""
                                                                                                                            : "other elements than the model's";
  };
  std::string setup = fmt::format("x = torch.rand({}); n = {}; i = [torch.randint(0, k, (n,)) for k in x.shape[:{}]]; v = torch.rand(x[tuple(i)].shape)",
                                  to_string(s.x), s.places, s.dims);
  add_torch_peer(work, device, setup, s.peer);
  return work;
}

}  // namespace

void register_index(Rows& rows) {
  const Shape shapes[] = {
      {"index/f32/1000x1000/1000000", {1000, 1000}, 2, 1000000, false, false, "x[i[0], i[1]]", true},
      {"index/f32/100000x64/100000", {100000, 64}, 1, 100000, false, false, "x[i[0]]", false},
      {"index_put/f32/1000x1000/1000000", {1000, 1000}, 2, 1000000, true, false, "x.index_put_(i, v)", true},
      {"index_put/f32/100000x64/10000", {100000, 64}, 1, 10000, true, false, "x.index_put_(i, v)", false},
      {"index_add/f32/1000x1000/1000000", {1000, 1000}, 2, 1000000, true, true, "x.index_put_(i, v, accumulate=True)", true},
      {"index_add/f32/10000x64/100000", {10000, 64}, 1, 100000, true, true, "x.index_put_(i, v, accumulate=True)", false},
  };
  for (const Shape& s : shapes) {
    std::int64_t inner = 1;
    for (int d = s.dims; d < s.x.rank(); ++d) inner *= s.x[d];
    rows.push_back({.name = s.name,
                    .bytes = cases::IndexCase::bytes(DType::f32, s.places, inner, s.dims),
                    .in_default = s.in_default,
                    .prepare = [s](const Device& device) { return work_of(s, device); }});
  }
}

}  // namespace clutch::bench
