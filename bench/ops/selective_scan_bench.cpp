// SPDX-License-Identifier: Apache-2.0
#include "cases/selective_scan.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/omp_math.hpp"
#include "peers/torch.hpp"

#include <cmath>
#include <memory>

namespace clutch::bench {

void register_selective_scan(Rows& rows);

namespace {

using cases::SelectiveScanCase;

/// A layer's numbers: steps by softplus, skip and gate, as Mamba has them.
struct Layer {
  SelectiveScanCase::Shape shape;
  SelectiveScanCase::Call call;
  Tensor x, delta, a, b, c, of_y;
  SelectiveScanOptions options;
};

std::shared_ptr<Layer> layer_of(const SelectiveScanCase::Shape& shape, const Device& device) {
  auto layer = std::make_shared<Layer>();
  layer->shape = layer->call.s = shape;
  model::Random random(5);
  using Part = SelectiveScanCase::Part;
  auto make = [&](Part part, std::vector<float>& numbers, double low, double high) {
    numbers.resize(SelectiveScanCase::places(shape, part));
    for (float& v : numbers) v = static_cast<float>(random.uniform(low, high));
    return from_host(numbers, SelectiveScanCase::sizes(shape, part), device);
  };
  layer->x = make(Part::x, layer->call.x, -1, 1);
  layer->delta = make(Part::delta, layer->call.delta, -6, -2);
  layer->a = make(Part::a, layer->call.a, -16, -1);
  layer->b = make(Part::b, layer->call.b, -1, 1);
  layer->c = make(Part::c, layer->call.c, -1, 1);
  layer->options = {.skip = make(Part::skip, layer->call.skip, -1, 1), .gate = make(Part::gate, layer->call.gate, -3, 3), .delta_softplus = true};
  layer->of_y = make(Part::y, layer->call.of_y, -1, 1);
  return layer;
}

/// The first channels' results, which depend on those channels alone.
std::string check(const Layer& layer, SelectiveScanCase::Part part, const std::vector<float>& got) {
  constexpr std::int64_t kChannels = 16;
  const SelectiveScanCase::Shape& s = layer.shape;
  SelectiveScanCase::Call few = layer.call;
  few.s.channels = kChannels;
  auto cut = [&](std::vector<float>& numbers, std::int64_t rows, std::int64_t length) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < length; ++i) numbers[static_cast<std::size_t>(r * length + i)] = numbers[static_cast<std::size_t>(r * s.channels + i)];
  };
  for (std::vector<float>* numbers : {&few.x, &few.delta, &few.gate, &few.of_y}) cut(*numbers, s.batch * s.length, kChannels);
  const std::vector<double> want = SelectiveScanCase::model<double, SelectiveScanCase::StandardMath>(few)[static_cast<std::size_t>(part)];
  for (std::int64_t r = 0; r < s.batch * s.length; ++r)
    for (std::int64_t i = 0; i < kChannels; ++i)
      if (!(std::abs(static_cast<double>(got[static_cast<std::size_t>(r * s.channels + i)]) - want[static_cast<std::size_t>(r * kChannels + i)]) <= 1e-4))
        return fmt::format("channel {} of element {} is wrong", i, r);
  return {};
}

std::string torch_setup(const SelectiveScanCase::Shape& s) {
  return fmt::format(
      "import torch.nn.functional as F\n"
      "x, z, delta = torch.randn(3, {0}, {2}, {1}, device=device); a = -1 - 15 * torch.rand({2}, {3}, device=device)\n"
      "b, c = torch.randn(2, {0}, {1}, {3}, device=device); skip = torch.randn({2}, device=device)\n"
      "def scan():\n"
      "    step = F.softplus(delta)\n"
      "    decay = torch.exp(a[None, :, None, :] * step[..., None])\n"
      "    moved = step[..., None] * b[:, None, :, :] * x[..., None]\n"
      "    h, out = torch.zeros({0}, {2}, {3}, device=device), []\n"
      "    for i in range({1}):\n"
      "        h = decay[:, :, i] * h + moved[:, :, i]\n"
      "        out.append((h @ c[:, i, :, None])[..., 0])\n"
      "    return (torch.stack(out, -1) + x * skip[None, :, None]) * F.silu(z)\n",
      s.batch, s.length, s.channels, s.states);
}

}  // namespace

void register_selective_scan(Rows& rows) {
  const struct {
    const char* name;
    SelectiveScanCase::Shape shape;
    bool in_default;
  } shapes[] = {{"1x1024x1536x16", {1, 1024, 1536, 16, true, true, true, false, false, false}, true},
                {"8x256x512x16", {8, 256, 512, 16, true, true, true, false, false, false}, false}};
  for (const auto& s : shapes)
    for (bool backward : {false, true})
      rows.push_back({.name = fmt::format("selective_scan/f32/{}{}", s.name, backward ? "/backward" : ""),
                      .bytes = backward ? kStated : SelectiveScanCase::bytes(s.shape.batch, s.shape.length, s.shape.channels, s.shape.states, true),
                      .in_default = s.in_default,
                      .prepare = [s, backward](const Device& device) {
                        auto layer = layer_of(s.shape, device);
                        Work work;
                        Tensor out = empty(layer->x.sizes(), {.device = device});
                        work.run = [=](int reps) {
                          Stream stream = current_stream(device);
                          for (int i = 0; i < reps; ++i) {
                            const Layer& l = *layer;
                            if (backward)
                              selective_scan_backward_out({.x = out}, {l.of_y, {}}, l.x, l.delta, l.a, l.b, l.c, l.options, stream);
                            else
                              selective_scan_out({out, {}}, l.x, l.delta, l.a, l.b, l.c, l.options, stream);
                          }
                          stream.synchronize();
                        };
                        work.check = [=] { return check(*layer, backward ? SelectiveScanCase::Part::x : SelectiveScanCase::Part::y, out.to_host<float>()); };
                        if (backward) return work;
                        auto result = std::make_shared<std::vector<float>>(layer->call.x.size());
                        if (s.shape.batch == 1)
                          work.peers.push_back({omp::name(), [=](int reps) {
                                                  const SelectiveScanCase::Call& l = layer->call;
                                                  for (int i = 0; i < reps; ++i)
                                                    omp::selective_scan_f32(result->data(), l.x.data(), l.delta.data(), l.gate.data(), l.a.data(), l.b.data(),
                                                                            l.c.data(), l.skip.data(), s.shape.length, s.shape.channels, s.shape.states);
                                                }});
                        add_torch_peer(work, device, torch_setup(s.shape), "scan()");
                        return work;
                      }});
}

}  // namespace clutch::bench
