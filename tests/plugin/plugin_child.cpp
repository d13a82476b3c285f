// SPDX-License-Identifier: Apache-2.0
// What run_plugins looks at: does one thing with the plugins of its environment and prints what came of it. Use: plugin_child list|product|sums
// NAME|graph|threads
#include <clutch/clutch.hpp>

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

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "list";
  try {
    if (what == "list") {
      list();
    } else if (what == "product") {
      std::cout << (product(count > 2 ? arguments[2] : "") == 0 ? "right" : "wrong") << " by " << clutch::last_plan() << '\n';
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
    } else if (what == "graph") {
      graph();
    } else if (what == "threads") {
      std::vector<int> results(8, 1);
      std::vector<std::thread> threads;
      for (int& result : results) threads.emplace_back([&result] { result = product("addcmul_demo"); });
      for (std::thread& thread : threads) thread.join();
      int right = 0;
      for (const int result : results) right += result == 0;
      std::cout << right << " of 8 right\n";
    }
    return 0;
  } catch (const clutch::Error& error) {
    std::cout << clutch::name(error.code()) << ": " << error.what() << '\n';
    return 1;
  }
}
