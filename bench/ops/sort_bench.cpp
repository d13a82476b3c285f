// SPDX-License-Identifier: Apache-2.0
#include "cases/sort.hpp"
#include "harness/rows.hpp"

namespace clutch::bench {

void register_sort(Rows& rows);

void register_sort(Rows& rows) {
  for (SweptSize size : element_sizes())
    rows.push_back({.name = row_name("sort", DType::f32, size.n),
                    .bytes = cases::SortCase::bytes(size.n),
                    .in_default = size.in_default,
                    .in_quick = size.in_quick,
                    .prepare = [n = size.n](const Device& device) {
                      Tensor in = arange(0, static_cast<double>(n), 1, {.device = device}), out = empty({n}, {.device = device});
                      Work work;
                      work.run = [in, out, device](int reps) {
                        Stream stream = current_stream(device);
                        for (int i = 0; i < reps; ++i) sort_out(out, in, {}, stream);
                        stream.synchronize();
                      };
                      work.check = [out]() -> std::string {
                        std::vector<float> got = out.to_host<float>();
                        for (std::size_t i = 0; i < got.size(); ++i)
                          if (got[i] != cases::SortCase::reference(static_cast<float>(i))) return "an element is wrong";
                        return {};
                      };
                      return work;
                    }});
}

}  // namespace clutch::bench
