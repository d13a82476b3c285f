// SPDX-License-Identifier: Apache-2.0
#include "cases/nonzero.hpp"
#include "harness/rows.hpp"
#include "peers/torch.hpp"

#include <clutch/ops/copy.hpp>

namespace clutch::bench {

void register_nonzero(Rows& rows);

namespace {
constexpr std::int64_t kRows = 1000, kColumns = 1000, kNumel = kRows * kColumns;
}

void register_nonzero(Rows& rows) {
  using Call = std::function<Tensor(const Tensor& x, const Tensor& mask)>;
  const struct {
    const char* name;
    double share;
    Call call;
    const char* peer;
    bool in_default;
  } calls[] = {
      {"nonzero/bool/1000x1000/half", 0.5, [](const Tensor&, const Tensor& mask) { return nonzero(mask); }, "torch.nonzero(mask)", true},
      {"nonzero/bool/1000x1000/few", 0.01, [](const Tensor&, const Tensor& mask) { return nonzero(mask); }, "torch.nonzero(mask)", false},
      {"masked_select/f32/1000x1000/half", 0.5, [](const Tensor& x, const Tensor& mask) { return masked_select(x, mask); }, "torch.masked_select(x, mask)",
       true},
      {"unique/i64/1000000", 0.5, [](const Tensor& x, const Tensor&) { return unique(x.to(DType::i64).reshape({kNumel})).values; }, "torch.unique(x.long())",
       false},
      {"unique_counts/f32/1000000", 0.5, [](const Tensor& x, const Tensor&) { return unique(x, {.return_inverse = true, .return_counts = true}).counts; },
       "torch.unique(x, return_inverse=True, return_counts=True)", true},
  };
  for (const auto& c : calls)
    rows.push_back({.name = c.name, .bytes = kStated, .in_default = c.in_default, .prepare = [c](const Device& device) {
                      const auto raw = cases::NonzeroCase::elements(DType::boolean, kNumel, c.share, 3);
                      const Tensor mask = from_bytes(raw.data(), raw.size(), {kRows, kColumns}, {.dtype = DType::boolean, .device = device});
                      model::Random random(5);
                      std::vector<float> numbers(static_cast<std::size_t>(kNumel));
                      for (float& v : numbers) v = static_cast<float>(random.next() % 1000);
                      const Tensor x = from_host(numbers, {kRows, kColumns}, device);
                      auto last = std::make_shared<Tensor>();
                      Work work;
                      work.run = [=](int reps) {
                        Stream stream = current_stream(device);
                        for (int i = 0; i < reps; ++i) *last = c.call(x, mask);
                        stream.synchronize();
                      };
                      const std::int64_t found = std::count(raw.begin(), raw.end(), std::uint8_t{1});
                      const bool is_unique = std::string_view(c.name).starts_with("unique");
                      work.check = [=]() -> std::string { return last->size(0) == (is_unique ? 1000 : found) ? "" : "another count"; };
                      add_torch_peer(work, device,
                                     fmt::format("x = torch.randint(0, 1000, ({0}, {1})).float(); mask = torch.rand({0}, {1}) < {2}", kRows, kColumns, c.share),
                                     c.peer);
                      return work;
                    }});
}

}  // namespace clutch::bench
