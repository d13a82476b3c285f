// SPDX-License-Identifier: Apache-2.0
// Generators: seeds, states, scopes.
#include "rows.hpp"

#include <random>

namespace clutch::rows { namespace {

std::vector<float> draw(const Generator& generator = {}) { return numbers(rand({8}, {.generator = generator})); }

ROW(manual_seed) {
  clutch::manual_seed(5);
  line("the seed", default_generator().state().seed);
  const std::vector<float> first = draw(), second = draw();
  line("numbers go on", first != second);
  clutch::manual_seed(5);
  line("the same seed, the same numbers", draw() == first);
  clutch::manual_seed(6);
  line("another seed, other numbers", draw() != first);
  for (const Device& each : devices()) clutch::manual_seed(7, each);
  line("seeds of all devices", std::vector{default_generator(device(0)).state().seed, default_generator(last_device()).state().seed});
}

ROW(random_seed) {
  const Generator g(current_device());
  std::random_device entropy;
  const std::uint64_t seed = std::uint64_t{entropy()} << 32 | entropy();
  g.manual_seed(seed);
  line("it is the one that is told", g.state().seed == seed);
  line("it begins anew", g.state().offset);
}

ROW(rng_state) {
  clutch::manual_seed(1);
  draw();
  const GeneratorState state = default_generator().state();
  const std::vector<float> first = draw(), second = draw();
  default_generator().set_state(state);
  line("numbers from a state on", draw() == first && draw() == second);
  line("the state has moved", !(default_generator().state() == state));
}

ROW(generator) {
  const Generator g(current_device());
  line("the seed at first", g.state().seed);
  line("its device is the current one", g.device() == current_device());
  g.manual_seed(3);
  line("seed and offset behind manual_seed", std::vector{g.state().seed, g.state().offset});
  const std::vector<float> first = draw(g);
  const std::uint64_t offset = g.state().offset;
  line("a draw moves the offset", offset > 0);
  const std::vector<float> second = draw(g);
  g.set_state({.seed = 3, .offset = offset});
  line("numbers from an offset on", draw(g) == second);
  const Generator other(current_device(), 3);
  line("another generator of the seed has the numbers, too", draw(other) == first);
  clutch::manual_seed(3);
  line("so has the default one", draw() == first);
}

ROW(generator_state_of_its_own) {
  const Generator g(current_device(), 9);
  draw(g);
  Generator clone(current_device());
  clone.set_state(g.state());
  const std::vector<float> of_clone = draw(clone);
  line("a clone has the numbers that come next", draw(g) == of_clone);
  draw(clone);
  line("and goes on alone", g.state().offset < clone.state().offset);
  const Generator shared = g;  // NOLINT(performance-unnecessary-copy-initialization)
  draw(shared);
  line("a handle of one state goes on with it", g.state() == shared.state());
}

ROW(fork_rng) {
  clutch::manual_seed(4);
  draw();
  const GeneratorState state = default_generator().state();
  const std::vector<float> next = draw();
  default_generator().set_state(state);
  {
    const GeneratorGuard guard;
    draw();
    {
      const GeneratorGuard inner;
      clutch::manual_seed(77);
      draw();
    }
    line("within: the seed is the outer one again", default_generator().state().seed);
  }
  line("behind it numbers go on as if it had not been", draw() == next);
}

}}  // namespace clutch::rows
