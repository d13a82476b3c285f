// SPDX-License-Identifier: Apache-2.0
#include "cases/random.hpp"
#include "harness/rows.hpp"
#include "peers/torch.hpp"

#include <random>

namespace clutch::bench {

void register_random(Rows& rows);

void register_random(Rows& rows) {
  using cases::RandomCase;
  for (bool normal : {false, true})
    for (DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (SweptSize size : element_sizes()) {
        bool plain = dtype == DType::f32;
        rows.push_back({.name = row_name(normal ? "randn" : "rand", dtype, size.n),
                        .bytes = kStated,
                        .in_default = plain ? size.in_default : size.n == 1 << 24,
                        .in_quick = plain && size.in_quick,
                        .prepare = [n = size.n, normal, dtype](const Device& device) {
                          Tensor out = empty({n}, {.dtype = dtype, .device = device});
                          Work work;
                          work.run = [out, normal, device](int reps) {
                            Stream stream = current_stream(device);
                            for (int i = 0; i < reps; ++i) normal ? normal_(out, {.seed = 1}, stream) : uniform_(out, {.seed = 1}, stream);
                            stream.synchronize();
                          };
                          work.check = [out, normal, dtype, n]() -> std::string {
                            std::vector<std::uint8_t> got = out.to_bytes();
                            for (std::size_t i = 0; i < static_cast<std::size_t>(n); i += 997) {
                              std::uint64_t want = 0;
                              model::store_at(&want, 0, dtype, RandomCase::value(normal, dtype, {1, 0}, i, 1, 0));
                              if (std::memcmp(&want, got.data() + i * static_cast<std::size_t>(bits(dtype) / 8), static_cast<std::size_t>(bits(dtype) / 8)) !=
                                  0)
                                return fmt::format("element {} is wrong", i);
                            }
                            return {};
                          };
                          if (dtype == DType::f32) {
                            auto host = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n));
                            work.peers.push_back({"std::mt19937_64, one core", [host, normal](int reps) {
                                                    std::mt19937_64 engine(1);
                                                    std::normal_distribution<float> z;
                                                    std::uniform_real_distribution<float> u;
                                                    for (int i = 0; i < reps; ++i)
                                                      for (float& x : *host) x = normal ? z(engine) : u(engine);
                                                  }});
                          }
                          if (n >= kTriadFrom) work.peers.push_back(triad_peer(device, RandomCase::bytes(n, dtype)));
                          add_torch_peer(work, device, fmt::format("x = torch.empty({}, device=device, dtype={})", n, torch_dtype(dtype)),
                                         normal ? "x.normal_()" : "x.uniform_()");
                          return work;
                        }});
      }
}

}  // namespace clutch::bench
