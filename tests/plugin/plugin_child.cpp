// SPDX-License-Identifier: Apache-2.0
// What run_plugins looks at: does one thing with the plugins of its environment and prints what came of it. Use: plugin_child list|product|whole|
// fill [NAME]|cat NAME|sum NAME|square [NAME]|largest [NAME]|shifted [NAME]|rows [NAME]|norm|classes|softmax|sums NAME|graph|threads|device|bytes
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using clutch::Tensor;

/// x + 2.5 a b of f32, which the plugin's addcmul takes; -1 where an element is not the formula's.
int product(const std::string& implementation = {}) {
  std::vector<float> x, a, b;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(0.1f * static_cast<float>(i));
    a.push_back(0.3f * static_cast<float>(i % 17) - 2);
    b.push_back(1.0f / static_cast<float>(i + 1));
  }
  const Tensor tx = clutch::from_host(x, {1000}), ta = clutch::from_host(a, {1000}), tb = clutch::from_host(b, {1000});
  const std::vector<float> got = clutch::addcmul(tx, ta, tb, {.value = 2.5, .implementation = implementation}).to_host<float>();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != std::fma(2.5f, a[i] * b[i], x[i])) return -1;
  return 0;
}

void list() {
  for (const clutch::Plugin& plugin : clutch::plugins()) {
    std::cout << plugin.name << ' ' << plugin.version << " score " << plugin.score << (plugin.used ? " used" : " not used") << '\n';
    for (const clutch::PluginOp& op : plugin.ops) std::cout << "  " << op.op << ' ' << op.name << " score " << op.score << " proof [" << op.proof << "]\n";
    for (const std::string& backend : plugin.graph_backends) std::cout << "  graphs by " << backend << '\n';
    for (const std::string& backend : plugin.device_backends) std::cout << "  devices of " << backend << '\n';
  }
}

void graph() {
  const clutch::Stream stream(clutch::current_device());
  const Tensor x = clutch::full({100}, 3, {}, stream), y = clutch::zeros({100}, {}, stream);
  clutch::mul_out(y, x, x, {}, stream);
  clutch::Graph graph({.backend = "demo_replay"});
  {
    const clutch::GraphCapture capture(graph, stream);
    clutch::mul_out(y, x, x, {}, stream);
    clutch::add_out(y, y, x, {}, stream);
    clutch::addcmul_out(y, y, x, x, {.value = 0.5}, stream);
  }
  graph.replay(stream);
  graph.replay(stream);
  std::cout << "graph " << y.to_host<float>(stream)[42] << " by " << graph.report().backend << '\n';
}

/// Streams that wait for each other, a graph, a profile and memory of the default device.
void device() {
  const clutch::Device device = clutch::current_device();
  std::cout << "device " << device.platform() << ' ' << (device.traits().fma_exact ? "exact" : "emulated") << '\n';
  const clutch::Stream a(device), b(device);
  Tensor x = clutch::zeros({1 << 16}, {}, a);
  for (int i = 0; i < 100; ++i) {
    const clutch::Stream& stream = i % 2 == 0 ? a : b;
    clutch::add_out(x, x, clutch::full({1}, 1, {}, stream), {}, stream);
    clutch::Event done;
    done.record(stream);
    (i % 2 == 0 ? b : a).wait(done);
  }
  std::cout << "streams " << x.to_host<float>(a)[12345] << '\n';
  clutch::Graph graph;
  {
    const clutch::GraphCapture capture(graph, a);
    clutch::mul_out(x, x, x, {}, a);
    clutch::sub_out(x, x, clutch::full({1}, 9900, {}, a), {}, a);
  }
  graph.replay(a);
  std::cout << "graph " << x.to_host<float>(a)[54321] << '\n';
  clutch::Event begin, end;
  begin.record(a);
  const Tensor sums = clutch::cumsum(x, 0, {}, a);
  end.record(a);
  end.wait();
  std::cout << "sums " << sums.to_host<float>(a).back() << ' ' << (clutch::elapsed_ms(begin, end) > 0 ? "took time" : "took none") << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "list";
  try {
    if (what == "list") {
      list();
    } else if (what == "product") {
      std::cout << (product(count > 2 ? arguments[2] : "") == 0 ? "right" : "wrong") << " by " << clutch::last_plan() << '\n';
      list();
    } else if (what == "whole") {
      const std::vector<std::uint32_t> x{5, 4000000000u, 7}, a{3, 100000, 11}, b{2, 100000, 13};
      const std::vector<std::uint32_t> got =
          clutch::addcmul(clutch::from_host(x, {3}), clutch::from_host(a, {3}), clutch::from_host(b, {3})).to_host<std::uint32_t>();
      bool right = true;
      for (std::size_t i = 0; i < got.size(); ++i) right = right && got[i] == x[i] + a[i] * b[i];
      std::cout << (right ? "right" : "wrong") << " by " << clutch::last_plan() << '\n';
    } else if (what == "fill") {
      const Tensor x = clutch::empty({300});
      clutch::fill_(x, 0.1, {.implementation = count > 2 ? arguments[2] : ""});
      const std::string plan = clutch::last_plan();
      std::cout << (x.to_host<float>() == std::vector<float>(300, 0.1f) ? "right" : "wrong") << " by " << plan << '\n';
      const std::vector<float> zeros = clutch::zeros({5}).to_host<float>();
      std::cout << (zeros == std::vector<float>(5) ? "zeros" : "no zeros") << " by " << clutch::last_plan() << '\n';
      clutch::fill_(clutch::empty({4}, {.dtype = clutch::DType::i32}), 3, {.implementation = count > 2 ? arguments[2] : ""});
      std::cout << "whole by " << clutch::last_plan() << '\n';
    } else if (what == "cat") {
      // Of another dtype, and without elements: the plugin gets tensors of the result's dtype that have some.
      const std::vector<Tensor> tensors{clutch::from_host<float>({1, 2, 3}), clutch::empty({0}), clutch::full({2}, 4, {.dtype = clutch::DType::f16}),
                                        clutch::from_host<float>({5})};
      const Tensor out = clutch::cat(tensors, 0, {.implementation = arguments[2]});
      const std::string plan = clutch::last_plan();
      std::cout << (out.to_host<float>() == std::vector<float>{1, 2, 3, 4, 4, 5} ? "right" : "wrong") << " by " << plan << '\n';
      clutch::stack(std::vector<Tensor>(2, tensors[0]), 0, {.implementation = arguments[2]});
    } else if (what == "sum") {
      const Tensor x = clutch::from_host<std::int32_t>({5, -7, 1 << 30, 1 << 30, 1 << 30});
      const std::int64_t got = clutch::sum(x, {.implementation = arguments[2]}).to_host<std::int64_t>()[0];
      std::cout << got << " by " << clutch::last_plan() << '\n';
      try {
        clutch::mean(x, {.implementation = arguments[2]});
      } catch (const clutch::Error& error) {
        std::cout << clutch::name(error.code()) << ": " << error.what() << '\n';
      }
      clutch::sum(x, {.dtype = clutch::DType::i32, .implementation = arguments[2]});
    } else if (what == "square") {
      const std::string by = count > 2 ? arguments[2] : "";
      const Tensor x = clutch::randn({40, 30}, {.seed = 3});
      const auto square = [](clutch::Expr e) { return e * e; };
      // Problems of this function have fewer dimensions, where the op refuses it: that is no fault of a plugin.
      clutch::map([](clutch::Expr e) { return e + cast(clutch::position(1), clutch::DType::f32); }, {x});
      const std::vector<float> got = clutch::map(square, {x}, {.implementation = by}).to_host<float>(), of = x.to_host<float>();
      const std::string plan = clutch::last_plan();
      bool right = true;
      for (std::size_t i = 0; i < got.size(); ++i) right = right && got[i] == of[i] * of[i];
      std::cout << (right ? "right" : "wrong") << " by " << plan << '\n';
      clutch::map(square, {x.mT()});
      std::cout << "transposed by " << clutch::last_plan() << '\n';
      list();
      clutch::map([](clutch::Expr e) { return exp(e); }, {x}, {.implementation = by});
      std::cout << "another by " << clutch::last_plan() << '\n';
    } else if (what == "softmax") {
      const Tensor x = clutch::randn({40, 30}, {.seed = 3}), wide = clutch::nn::softmax(x.to(clutch::DType::f64));
      const Tensor by = clutch::nn::softmax(x);
      std::cout << (clutch::amax(clutch::abs(by - wide)).item() < 1e-6 ? "near" : "far") << " by ";
      clutch::nn::softmax_out(by, x);
      std::cout << clutch::last_plan() << '\n';
      clutch::nn::softmax_out(by, x, 0);
      std::cout << "columns by " << clutch::last_plan() << '\n';
      list();
    } else if (what == "sums") {
      const Tensor x = clutch::from_host<std::int32_t>({5, -7, 1 << 30, 1 << 30, 1 << 30});
      const std::vector<std::int64_t> got = clutch::cumsum(x, 0, {.implementation = arguments[2]}).to_host<std::int64_t>();
      std::cout << got.back() << " by " << clutch::last_plan() << '\n';
      clutch::cumsum(clutch::full({4}, 1), 0, {.implementation = arguments[2]});
    } else if (what == "attention") {
      const Tensor q = clutch::randn({2, 4, 30, 16}, {.seed = 1}), k = clutch::randn({2, 2, 50, 16}, {.seed = 2});
      clutch::attention::FlexOptions options{.scale = 0.5, .enable_gqa = true, .return_lse = true};
      const clutch::attention::FlexResult own = clutch::attention::flex(q, k, k, options);
      options.implementation = arguments[2];
      const clutch::attention::FlexResult by = clutch::attention::flex(q, k, k, options);
      const std::string plan = clutch::last_plan();
      const double error = clutch::amax(clutch::abs(by.out - own.out)).item(), of_lse = clutch::amax(clutch::abs(by.lse - own.lse)).item();
      std::cout << (error < 4e-6 && of_lse < 4e-6 ? "near" : "far") << " by " << plan << '\n';
      clutch::attention::flex(q, k, k, {.mask_mod = clutch::attention::causal(), .enable_gqa = true, .implementation = arguments[2]});
    } else if (what == "captured") {
      // A first call within a capture: the proof has nothing to do with the recording.
      const clutch::Stream stream(clutch::current_device());
      const Tensor x = clutch::full({100}, 3, {}, stream), y = clutch::zeros({100}, {}, stream);
      clutch::Graph graph;
      {
        const clutch::GraphCapture capture(graph, stream);
        clutch::addcmul_out(y, x, x, x, {.value = 0.5}, stream);
      }
      graph.replay(stream);
      std::cout << "captured " << y.to_host<float>(stream)[42] << " in " << graph.nodes().size() << " node by " << graph.nodes()[0].kernel << " for "
                << graph.nodes()[0].op << '\n';
    } else if (what == "largest") {
      const Tensor x = clutch::from_host<float>({1, -3, 2, 0.5f, -0.25f, 0}).reshape({2, 3});
      const clutch::ReduceOptions rows{.dims = {1}, .implementation = count > 2 ? arguments[2] : ""};
      const Tensor most = clutch::reduce(
          clutch::Reduce::amax, [](clutch::Expr v) { return v * v; }, x, rows);
      const std::string plan = clutch::last_plan();
      std::cout << (most.to_host<float>() == std::vector<float>{9, 0.25f} ? "right" : "wrong") << " by " << plan << '\n';
      list();
      clutch::reduce(clutch::Reduce::amax, [](clutch::Expr v) { return v + v; }, x, {.dims = {1}});
      std::cout << "another by " << clutch::last_plan() << '\n';
    } else if (what == "shifted") {
      const Tensor a = clutch::from_host<std::int8_t>({1, -2, 3, 4, 5, -6}).reshape({2, 3}),
                   b = clutch::from_host<std::int8_t>({7, 8, -9, 10, 11, 12}).reshape({3, 2}), row = clutch::from_host<std::int32_t>({100, 200});
      const clutch::linalg::MatmulOptions options{.implementation = count > 2 ? arguments[2] : ""};
      const Tensor sums = clutch::linalg::matmul(
          a, b, [](clutch::Expr v, clutch::Expr w) { return v + w; }, {row}, options);
      const std::string plan = clutch::last_plan();
      std::cout << (sums.to_host<std::int32_t>() == std::vector<std::int32_t>{158, 224, 17, 210} ? "right" : "wrong") << " by " << plan << '\n';
      list();
    } else if (what == "rows") {
      const Tensor x = clutch::from_host<float>({1, -3, 2, 0.5f, -0.25f, 0}).reshape({2, 3});
      const clutch::RowwiseOptions options{.implementation = count > 2 ? arguments[2] : ""};
      const auto by_largest = [](clutch::Row& row, clutch::Expr v) { return v * row.max(v * v); };
      const Tensor scaled = clutch::rowwise(by_largest, {x}, options)[0];
      const std::string plan = clutch::last_plan();
      std::cout << (scaled.to_host<float>() == std::vector<float>{9, -27, 18, 0.125f, -0.0625f, 0} ? "right" : "wrong") << " by " << plan << '\n';
      clutch::rowwise(by_largest, {x.mT()});
      std::cout << "transposed by " << clutch::last_plan() << '\n';
      list();
      clutch::rowwise([](clutch::Row& row, clutch::Expr v) { return v * row.max(v); }, {x}, options);
      std::cout << "another by " << clutch::last_plan() << '\n';
    } else if (what == "norm") {
      const Tensor x = clutch::randn({40, 30}, {.seed = 3}), weight = clutch::randn({30}, {.seed = 4});
      const clutch::nn::RmsNormResult made = clutch::nn::rms_norm(x, weight, {.eps = 0.5});
      const std::string plan = clutch::last_plan();
      const std::vector<float> got = made.y.to_host<float>(), of = x.to_host<float>(), w = weight.to_host<float>();
      double most = 0;
      for (std::size_t row = 0; row < 40; ++row) {
        double squares = 0;
        for (std::size_t i = 0; i < 30; ++i) squares += static_cast<double>(of[row * 30 + i]) * static_cast<double>(of[row * 30 + i]);
        for (std::size_t i = 0; i < 30; ++i) {
          const double must = static_cast<double>(of[row * 30 + i]) / std::sqrt(squares / 30 + 0.5) * static_cast<double>(w[i]);
          most = std::max(most, std::abs(must - static_cast<double>(got[row * 30 + i])));
        }
      }
      std::cout << (most < 1e-6 ? "near" : "far") << " by " << plan << '\n';
      clutch::nn::rms_norm(x, weight, {.normalized_rank = 1});
      std::cout << "again by " << clutch::last_plan() << '\n';
      clutch::nn::rms_norm(x, clutch::randn({40, 30}, {.seed = 5}), {.normalized_rank = 2});
      std::cout << "of rank 2 by " << clutch::last_plan() << '\n';
      list();
    } else if (what == "classes") {
      const Tensor x = clutch::from_host<float>({1, 2, 3, -1, 0, 1}).reshape({2, 3}), target = clutch::from_host<std::int64_t>({2, -7});
      const clutch::nn::CrossEntropyOptions options{.ignore_index = -7, .reduction = clutch::nn::Reduction::none};
      const std::vector<float> got = clutch::nn::cross_entropy(x, target, options).loss.to_host<float>();
      const std::string plan = clutch::last_plan();
      const double must = std::log(1 + std::exp(-1.0) + std::exp(-2.0));
      std::cout << (std::abs(static_cast<double>(got[0]) - must) < 1e-6 && got[1] == 0 ? "near" : "far") << " by " << plan << '\n';
      clutch::nn::cross_entropy(x, target, {.reduction = clutch::nn::Reduction::sum});
      std::cout << "the sum by " << clutch::last_plan() << '\n';
      list();
    } else if (what == "graph") {
      graph();
    } else if (what == "bytes") {
      for (const int x : clutch::from_host<std::int32_t>({5, 7, 11}).to_host<std::int32_t>()) std::cout << (x > 5 ? " " : "") << x;
      std::cout << '\n';
    } else if (what == "device") {
      device();
    } else if (what == "threads") {
      // The op is called by all of them while it is being proved.
      const std::string by = count > 2 ? arguments[2] : "addcmul_demo";
      std::vector<int> results(8, 1);
      std::vector<std::thread> threads;
      for (int& result : results)
        threads.emplace_back([&result, &by] {
          try {
            result = product(by);
          } catch (const clutch::Error& error) {
            result = error.code() == clutch::ErrorCode::internal ? 2 : 3;
          }
        });
      for (std::thread& thread : threads) thread.join();
      std::cout << std::count(results.begin(), results.end(), 0) << " of 8 right, " << std::count(results.begin(), results.end(), 2) << " internal\n";
    }
    return 0;
  } catch (const clutch::Error& error) {
    std::cout << clutch::name(error.code()) << ": " << error.what() << '\n';
    return 1;
  }
}
