// SPDX-License-Identifier: Apache-2.0
#include "cases/cumsum.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"

#include <array>

namespace clutch::bench {

void register_cumsum(Rows& rows);

void register_cumsum(Rows& rows) {
  const struct {
    const char* name;
    std::int64_t lines, m, inner;
    bool in_default;
  } shapes[] = {
      {"16384x1024", 16384, 1024, 1, true}, {"16777216", 1, 1 << 24, 1, true}, {"4096x4096/dim0", 1, 4096, 4096, true}, {"1024x1024", 1024, 1024, 1, false}};
  for (const auto& s : shapes)
    rows.push_back({.name = fmt::format("cumsum/f32/{}", s.name),
                    // Input and output once: where blocks have carries, the plans state that the input is read twice.
                    .bytes = cases::CumsumCase::bytes(s.lines * s.m * s.inner, DType::f32),
                    .in_default = s.in_default,
                    .prepare = [s](const Device& device) {
                      model::Random random(3);
                      auto x = std::make_shared<std::vector<float>>(static_cast<std::size_t>(s.lines * s.m * s.inner));
                      for (float& v : *x) v = static_cast<float>(random.uniform(-1, 1));
                      Tensor in = from_host(*x, {s.lines, s.m, s.inner}, device), out = empty(in.sizes(), {.device = device});
                      Work work;
                      work.run = [=](int reps) {
                        Stream stream = current_stream(device);
                        for (int i = 0; i < reps; ++i) cumsum_out(out, in, 1, {}, stream);
                        stream.synchronize();
                      };
                      work.check = [=]() -> std::string {
                        std::vector<float> got = out.to_host<float>();
                        for (std::int64_t line : {std::int64_t{0}, s.lines * s.inner - 1}) {
                          std::vector<float> values;
                          auto place = [&](std::int64_t j) { return static_cast<std::size_t>((line / s.inner * s.m + j) * s.inner + line % s.inner); };
                          for (std::int64_t j = 0; j < s.m; ++j) values.push_back((*x)[place(j)]);
                          values = cases::CumsumCase::model(values);
                          for (std::int64_t j = 0; j < s.m; ++j)
                            if (got[place(j)] != values[static_cast<std::size_t>(j)]) return fmt::format("element {} of line {} is wrong", j, line);
                        }
                        return {};
                      };
                      auto result = std::make_shared<std::vector<float>>(x->size());
                      work.peers.push_back({omp::name(), [=](int reps) {
                                              for (int i = 0; i < reps; ++i) omp::cumsum_f32(result->data(), x->data(), s.lines, s.m, s.inner);
                                            }});
                      add_torch_peer(work, device, fmt::format("x = torch.randn({}, {}, {}); y = torch.empty_like(x)", s.lines, s.m, s.inner),
                                     "torch.cumsum(x, 1, out=y)");
                      return work;
                    }});
}

}  // namespace clutch::bench
