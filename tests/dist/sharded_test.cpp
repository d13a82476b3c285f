// SPDX-License-Identifier: Apache-2.0
// Sharded tensors against the one-rank result: parts, redistributions, ops, refusals.
#include "dist/layout.hpp"
#include "dist/numbers.hpp"

#include <clutch/dist/ops.hpp>

#include <cmath>
#include <fstream>
#include <limits>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3, 4};

std::vector<Mesh> meshes_of(const Group& g) {
  std::vector<Mesh> meshes{Mesh(g, {g.size()})};
  if (g.size() == 4) meshes.emplace_back(g, Dims{2, 2}, std::vector<std::string>{"data", "model"});
  return meshes;
}

using Placements = std::vector<Placement>;

std::string text_of(const Placements& placements) {
  std::string text;
  for (const Placement& p : placements) text += to_string(p) + " ";
  return text;
}

/// All lists of placements of a mesh that are made of these.
std::vector<Placements> lists_of(const Mesh& mesh, const Placements& some) {
  std::vector<Placements> lists{{}};
  for (int k = 0; k < mesh.shape().rank(); ++k) {
    std::vector<Placements> longer;
    for (const Placements& list : lists)
      for (const Placement& p : some) longer.push_back(list), longer.back().push_back(p);
    lists = longer;
  }
  return lists;
}

TEST(Layout, CutsByTheRuleOfChunks) {
  using dist::detail::Layout;
  auto sizes = [](std::int64_t size, std::int64_t n, int factor) { return dist::detail::part_sizes(size, n, factor); };
  EXPECT_EQ(sizes(7, 4, 1), (std::vector<std::int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(sizes(5, 4, 1), (std::vector<std::int64_t>{2, 2, 1, 0}));
  EXPECT_EQ(sizes(3, 5, 1), (std::vector<std::int64_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(sizes(0, 2, 1), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(sizes(7, 2, 2), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(sizes(2, 2, 2), (std::vector<std::int64_t>{2, 0}));
  // Two dimensions of a mesh cut one of the tensor: the second cuts the parts of the first.
  const Layout nested{.sizes = {7}, .mesh_shape = {2, 2}, .placements = {shard(0), shard(0)}};
  auto begin_and_end = [&](const Layout& layout, const Dims& cell) {
    std::vector<std::int64_t> all;
    const std::vector<dist::detail::Ranges> ranges = layout.ranges(cell);
    for (const dist::detail::Range& r : ranges[0]) all.push_back(r.begin), all.push_back(r.end);
    return all;
  };
  EXPECT_EQ(begin_and_end(nested, {0, 0}), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(begin_and_end(nested, {0, 1}), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(begin_and_end(nested, {1, 1}), (std::vector<std::int64_t>{6, 7}));
  // With a split factor the first dimension cuts the parts of the second.
  const Layout strided{.sizes = {8}, .mesh_shape = {2, 2}, .placements = {shard(0, 2), shard(0)}};
  EXPECT_EQ(begin_and_end(strided, {0, 1}), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(begin_and_end(strided, {1, 0}), (std::vector<std::int64_t>{2, 4}));
  const Layout odd{.sizes = {5}, .mesh_shape = {2}, .placements = {shard(0, 2)}};
  EXPECT_EQ(begin_and_end(odd, {0}), (std::vector<std::int64_t>{0, 2, 3, 4}));
  EXPECT_EQ(begin_and_end(odd, {1}), (std::vector<std::int64_t>{2, 3, 4, 5}));
  const Layout alone{.sizes = {8}, .mesh_shape = {2}, .placements = {shard(0, 2)}};
  EXPECT_EQ(begin_and_end(alone, {1}), (std::vector<std::int64_t>{2, 4, 6, 8}));
}

/// What tests/checkpoint_by_torch/run compares with PyTorch's DTensors: a line for each cell with mesh, sizes, placements (dimension and split factor; -1:
/// replicated) and the entries that it has of each dimension.
TEST(LayoutPeer, Writes) {
  const char* file = std::getenv("LAYOUTS_FOR_TORCH");
  if (file == nullptr) return;
  std::ofstream out(file);
  const Placement some[] = {replicate(), shard(0), shard(1), shard(0, 2), shard(1, 2), shard(0, 3)};
  for (const Dims& mesh : {Dims{4}, Dims{2, 2}, Dims{3}})
    for (const Dims& sizes : {Dims{7, 5}, Dims{8, 2}, Dims{3, 6}, Dims{1, 1}, Dims{5, 9}, Dims{13, 0}})
      for (const Placement& a : some)
        for (const Placement& b : some) {
          if (mesh.rank() == 1 && &b != some) continue;
          dist::detail::Layout layout{.sizes = sizes, .mesh_shape = mesh, .placements = {a}};
          if (mesh.rank() == 2) layout.placements.push_back(b);
          for (std::int64_t rank = 0; rank < numel(mesh); ++rank) {
            out << "{\"mesh\": "
                << (mesh.rank() == 2 ? "[2, 2]"
                    : mesh[0] == 4   ? "[4]"
                                     : "[3]")
                << ", \"rank\": " << rank << ", \"sizes\": [" << sizes[0] << ", " << sizes[1] << "], \"placements\": [";
            for (const Placement& p : layout.placements)
              out << (&p == layout.placements.data() ? "" : ", ") << "[" << (p.is_shard() ? p.dim : -1) << ", " << p.split_factor << "]";
            out << "], \"entries\": [";
            const std::vector<dist::detail::Ranges> ranges = layout.ranges(mesh.rank() == 2 ? Dims{rank / 2, rank % 2} : Dims{rank});
            for (std::size_t d = 0; d < ranges.size(); ++d) {
              out << (d > 0 ? ", [" : "[");
              const char* comma = "";
              for (const dist::detail::Range& r : ranges[d])
                for (std::int64_t i = r.begin; i < r.end; ++i) out << comma << i, comma = ", ";
              out << "]";
            }
            out << "]}\n";
          }
        }
}

TEST(Meshes, HaveGroupsCoordinatesAndNames) {
  for_ranks({4}, [](const Group& g) {
    if (g.size() != 4) return;
    const Mesh mesh(g, {2, 2}, {"data", "model"});
    EXPECT_EQ(mesh.coordinate(), (Dims{g.rank() / 2, g.rank() % 2}));
    EXPECT_EQ(mesh.group(0).rank(), g.rank() / 2);
    EXPECT_EQ(mesh.group("model").rank(), g.rank() % 2);
    EXPECT_EQ(mesh.group(1).size(), 2);
    EXPECT_EQ(mesh.group(0).global_ranks()[1], 2 + g.rank() % 2);
    EXPECT_EQ(mesh["data"].shape(), (Dims{2}));
    EXPECT_TRUE(mesh["data"] == mesh["data"]);
    EXPECT_FALSE(mesh["data"] == mesh["model"]);
    EXPECT_FALSE(mesh == Mesh());
    const Mesh other_way = mesh.submesh({"model", "data"});
    EXPECT_EQ(other_way.coordinate(), (Dims{g.rank() % 2, g.rank() / 2}));
    EXPECT_EQ(mesh.submesh({"model"}).coordinate(), (Dims{g.rank() % 2}));
    EXPECT_EQ(code_of([&] { mesh.group(2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { mesh.dim("pipeline"); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)Mesh(g, {3}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { (void)Mesh(g, {}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)Mesh(g, {2, 2}, {"a"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)Mesh(g, {2, 2}, {"a", "a"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)Mesh().shape(); }), ErrorCode::invalid_argument);
  });
}

TEST(ShardedTensors, GoFromAnyPlacementsToAnyOther) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g))
      for (const Dims& sizes : {Dims{7, 5}, Dims{8, 2}, Dims{0, 3}}) {
        SCOPED_TRACE(to_string(mesh.shape()) + " " + to_string(sizes));
        const Tensor full = shared_numbers(sizes, 3);
        const std::vector<Placements> lists = lists_of(mesh, {replicate(), shard(0), shard(-1), shard(0, 2)});
        for (const Placements& from : lists) {
          const Sharded x = Sharded::distribute(full, mesh, from);
          // The part is what its boxes say.
          std::int64_t elements = 0;
          for (const Box& box : x.boxes()) elements += numel(box.sizes);
          EXPECT_EQ(elements, x.local().numel());
          if (x.boxes().size() == 1) {
            const Box box = x.boxes()[0];
            Tensor wanted = full;
            for (int d = 0; d < 2; ++d) wanted = wanted.slice(d, box.offsets[d], box.offsets[d] + box.sizes[d]);
            expect_bits(x.local(), wanted.contiguous());
          }
          if (sizes[0] == 8 && mesh.shape().rank() == 2) continue;
          for (const Placements& to : lists) {
            SCOPED_TRACE(text_of(from) + "-> " + text_of(to));
            const Sharded y = x.redistribute(to);
            expect_bits(y.local(), Sharded::distribute(full, mesh, to).local());
            EXPECT_EQ(y.placements(), Sharded::distribute(full, mesh, to).placements());
          }
        }
      }
  });
}

TEST(ShardedTensors, PartialOnesHaveTheBitsOfAnAllReduce) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const auto dims = static_cast<std::size_t>(mesh.shape().rank());
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::prod}) {
        SCOPED_TRACE(std::string(name(op)) + " " + to_string(mesh.shape()));
        const Tensor mine = numbers_of(g.rank(), {7, 3}, 5), all = mine.clone();
        g.all_reduce_(all, {.op = op});
        const Sharded x = Sharded::from_local(mine, mesh, Placements(dims, partial(op)));
        expect_bits(x.full(), all);
        expect_bits(mine, numbers_of(g.rank(), {7, 3}, 5));
        const Placements rows(dims, shard(0));
        const Sharded cut = x.redistribute(rows);
        if (dims == 1)
          expect_bits(cut.local(), Sharded::distribute(all, mesh, rows).local());
        else
          expect_near(cut.full(), all, 1e-6);
        if (op == ReduceOp::avg && dims == 1 && g.size() == 3) continue;
        // Nothing is lost on the way there, not even the sign of a zero.
        const Tensor some = from_host({-0.0F, 0.0F, 1e-40F, 3.5F, -INFINITY});
        const Sharded there = Sharded::distribute(some, mesh, Placements(dims, partial(op)));
        EXPECT_TRUE(there.placements()[0].is_partial());
        if (op != ReduceOp::max) expect_bits(there.full(), some);
      }
    }
  });
}

TEST(ShardedTensors, PlansSayStepsAndBytes) {
  for_ranks({4}, [](const Group& g) {
    if (g.size() != 4) return;
    const Mesh mesh(g, {2, 2});
    const Sharded x = Sharded::distribute(shared_numbers({8, 6}, 1), mesh, {shard(0), shard(0)});
    EXPECT_EQ(to_string(x.plan({replicate(), replicate()})), "mesh dim 1: S(0) -> R by all_gather, 48 bytes\nmesh dim 0: S(0) -> R by all_gather, 96 bytes\n");
    EXPECT_EQ(to_string(x.plan({replicate(), shard(0)})),
              "mesh dim 1: S(0) -> R by all_gather, 48 bytes\nmesh dim 0: S(0) -> R by all_gather, 96 bytes\nmesh dim 1: R -> S(0) by local, 0 bytes\n");
    EXPECT_EQ(to_string(x.plan({shard(0), shard(1)})), "mesh dim 1: S(0) -> S(1) by all_to_all, 24 bytes\n");
    EXPECT_EQ(x.plan({shard(0), shard(0)}).steps.size(), 0U);
    const Sharded summands = Sharded::from_local(shared_numbers({8, 6}, 1), mesh, {partial(), partial()});
    EXPECT_EQ(to_string(summands.plan({shard(1), replicate()})),
              "mesh dim 1: P(sum) -> R by all_reduce, 192 bytes\nmesh dim 0: P(sum) -> S(1) by reduce_scatter, 96 bytes\n");
    EXPECT_EQ(summands.plan({shard(1), replicate()}).bytes(), 288U);
  });
}

TEST(ShardedTensors, TransposedOnesKeepTheirParts) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const Tensor full = shared_numbers({7, 3, 5}, 1);
      for (const Placements& placements : lists_of(mesh, {replicate(), shard(0), shard(2), shard(0, 2), partial()})) {
        const Sharded y = Sharded::distribute(full, mesh, placements).transpose(0, -1);
        EXPECT_EQ(y.sizes(), (Dims{5, 3, 7}));
        expect_bits(y.full().contiguous(), full.transpose(0, 2).contiguous());
      }
      EXPECT_EQ(code_of([&] { Sharded::distribute(full, mesh, Placements(static_cast<std::size_t>(mesh.shape().rank()))).transpose(0, 3); }),
                ErrorCode::invalid_argument);
    }
  });
}

TEST(ShardedTensors, Refusals) {
  for_ranks({2}, [](const Group& g) {
    const Mesh mesh(g, {g.size()});
    const Tensor full = zeros({4, 4});
    const Sharded x = Sharded::distribute(full, mesh, {shard(0)});
    auto code = [&](Placements placements) { return code_of([&] { x.redistribute(placements); }); };
    EXPECT_EQ(code({partial()}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({shard(2)}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({shard(0, 0)}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({partial(ReduceOp::premul_sum)}), ErrorCode::invalid_argument);
    const Sharded summand = Sharded::from_local(full, mesh, {partial(ReduceOp::max)});
    EXPECT_EQ(code_of([&] { summand.redistribute({partial()}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { summand.boxes(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Sharded().local(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Sharded::distribute(full, Mesh(), {shard(0)}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Sharded::distribute(Tensor(), mesh, {shard(0)}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Sharded::from_local(full, mesh, {shard(0)}, {3, 4}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { Sharded::from_local(empty({8}, {.dtype = DType::f4e2m1}), mesh, {shard(0)}); }), ErrorCode::invalid_dtype);
    EXPECT_NE(message_of([&] {
                x.redistribute({partial()});
              }).find("dist::Sharded::redistribute: a shard must become replicated or another shard, got S(0) -> P(sum)"),
              std::string::npos);
    EXPECT_EQ(Sharded::from_local(full, mesh, {shard(1)}).sizes(), (Dims{4, 4 * g.size()}));
  });
}

Sharded on(const Mesh& mesh, const Tensor& full, std::initializer_list<Placement> placements) {
  Placements all(placements);
  all.resize(static_cast<std::size_t>(mesh.shape().rank()));
  return Sharded::distribute(full, mesh, all);
}

TEST(ShardedOps, ProductsFollowTheTable) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      SCOPED_TRACE(to_string(mesh.shape()));
      const Tensor a = shared_numbers({3, 5, 7}, 1), b = shared_numbers({3, 7, 6}, 2), c = shared_numbers({7, 6}, 3);
      const Tensor ab = linalg::matmul(a, b), ac = linalg::matmul(a, c);
      // Bits of the whole product.
      for (const auto& [pa, pb, wanted] : {std::tuple{replicate(), replicate(), replicate()},
                                           {shard(1), replicate(), shard(1)},
                                           {replicate(), shard(2), shard(2)},
                                           {shard(0), shard(0), shard(0)},
                                           {shard(1, 2), replicate(), shard(1, 2)}}) {
        SCOPED_TRACE(to_string(pa) + " " + to_string(pb));
        const Sharded y = matmul(on(mesh, a, {pa}), on(mesh, b, {pb}));
        EXPECT_EQ(y.placements()[0], wanted);
        expect_bits(y.full(), ab);
      }
      expect_bits(matmul(on(mesh, a, {shard(0)}), on(mesh, c, {})).full(), ac);
      expect_bits(matmul(on(mesh, a, {}), on(mesh, c, {shard(1)})).full(), ac);
      // Sums of parts.
      const Sharded sum = matmul(on(mesh, a, {shard(2)}), on(mesh, b, {shard(1)}));
      EXPECT_EQ(sum.placements()[0], partial());
      expect_near(sum.full(), ab, 1e-5);
      const Sharded times = matmul(sum, on(mesh, c.transpose(0, 1), {}));
      EXPECT_EQ(times.placements()[0], partial());
      expect_near(times.full(), linalg::matmul(ab, c.transpose(0, 1)), 1e-4);
      if (mesh.shape().rank() == 2) {
        const Sharded both = matmul(on(mesh, a, {shard(1), shard(2)}), on(mesh, b, {replicate(), shard(1)}));
        EXPECT_EQ(both.placements(), (Placements{shard(1), partial()}));
        expect_near(both.full(), ab, 1e-5);
        expect_bits(matmul(on(mesh, a, {shard(1), shard(1)}), on(mesh, b, {})).full(), ab);
      }
      EXPECT_EQ(code_of([&] { matmul(on(mesh, a, {shard(2)}), on(mesh, b, {})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { matmul(on(mesh, a, {shard(1)}), on(mesh, b, {shard(2)})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { matmul(sum, sum); }), ErrorCode::invalid_shape);
      EXPECT_EQ(code_of([&] { matmul(on(mesh, a, {}), on(mesh, c, {shard(0)})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { matmul(on(mesh, a, {partial(ReduceOp::max)}), on(mesh, c, {})); }), ErrorCode::invalid_argument);
    }
  });
}

TEST(ShardedOps, LayersOfColumnsAndRows) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const std::size_t last = static_cast<std::size_t>(mesh.shape().rank()) - 1;
      auto at = [&](const Placement& p) {
        Placements all(last + 1);
        all[last] = p;
        return all;
      };
      const Tensor x = shared_numbers({4, 6}, 1), up = shared_numbers({10, 6}, 2), up_bias = shared_numbers({10}, 3), down = shared_numbers({6, 10}, 4),
                   down_bias = shared_numbers({6}, 5);
      const linalg::LinearOptions gelu{.activation = nn::Activation::gelu};
      const Tensor hidden = linalg::linear(x, up, up_bias, gelu), y = linalg::linear(hidden, down, down_bias);
      const Sharded mine = linear(Sharded::distribute(x, mesh, at(replicate())), Sharded::distribute(up, mesh, at(shard(0))),
                                  Sharded::distribute(up_bias, mesh, at(shard(0))), gelu);
      EXPECT_EQ(mine.placements()[last], shard(1));
      expect_bits(mine.full(), hidden);
      const Sharded weight = Sharded::distribute(down, mesh, at(shard(1))), bias = Sharded::distribute(down_bias, mesh, at(replicate()));
      const Sharded result = linear(mine, weight, bias);
      EXPECT_EQ(result.placements()[last], partial());
      expect_near(result.full(), y, 1e-5);
      // Sequence parallel: a shard of the sum.
      expect_near(result.redistribute(at(shard(0))).full(), y, 1e-5);
      EXPECT_EQ(code_of([&] { linear(mine, weight, bias, gelu); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { linear(mine, weight, Sharded::distribute(down_bias, mesh, at(shard(0)))); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { linear(mine, Sharded::distribute(down, mesh, at(replicate()))); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { linear(mine, bias); }), ErrorCode::invalid_shape);
    }
  });
}

TEST(ShardedOps, GradientsOfLayersAreProductsOfParts) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const std::size_t last = static_cast<std::size_t>(mesh.shape().rank()) - 1;
      // Rows over the first dimension of the mesh, if there are two; columns and rows of weights over the last.
      auto at = [&](const Placement& first, const Placement& p) {
        Placements all(last + 1);
        all[0] = first, all[last] = p;
        return all;
      };
      const Placement rows = last > 0 ? shard(0) : replicate(), none = replicate();
      const Tensor x = shared_numbers({4, 6}, 1), up = shared_numbers({6, 10}, 2), down = shared_numbers({10, 3}, 3), grad = shared_numbers({4, 3}, 4);
      const Tensor hidden = linalg::matmul(x, up), grad_hidden = linalg::matmul(grad, down.mT());
      const Sharded sx = Sharded::distribute(x, mesh, at(rows, last > 0 ? none : rows)), sup = Sharded::distribute(up, mesh, at(none, shard(1))),
                    sdown = Sharded::distribute(down, mesh, at(none, shard(0))), sgrad = Sharded::distribute(grad, mesh, at(rows, last > 0 ? none : rows));
      const Sharded shidden = matmul(sx, sup);
      expect_bits(shidden.full(), hidden);
      const Sharded of_hidden = matmul(sgrad, sdown.transpose(0, 1));
      EXPECT_EQ(of_hidden.placements(), shidden.placements());
      expect_bits(of_hidden.full(), grad_hidden);
      // Gradients of weights: shards where the weights are, and summands where rows are cut, as data parallel ranks have them.
      const Sharded of_up = matmul(sx.transpose(0, 1), of_hidden), of_down = matmul(shidden.transpose(0, 1), sgrad);
      EXPECT_EQ(of_up.placements(), at(last > 0 ? partial() : shard(1), shard(1)));
      expect_near(of_up.full(), linalg::matmul(x.mT(), grad_hidden), 1e-5);
      expect_near(of_down.full(), linalg::matmul(hidden.mT(), grad), 1e-5);
      expect_near(matmul(of_hidden, sup.transpose(0, 1)).full(), linalg::matmul(grad_hidden, up.mT()), 1e-5);
    }
  });
}

TEST(ShardedOps, ElementsKeepPlacements) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const Tensor a = shared_numbers({7, 3}, 1), b = shared_numbers({3}, 2), c = shared_numbers({7, 1}, 3);
      auto f = [](const Expr& x, const Expr& y, const Expr& z) { return x * y + tanh(z); };
      const Tensor wanted = clutch::map(f, {a, b, c});
      const Sharded by_rows = map(f, on(mesh, a, {shard(0)}), on(mesh, b, {}), on(mesh, c, {shard(0)}));
      EXPECT_EQ(by_rows.placements()[0], shard(0));
      expect_bits(by_rows.full(), wanted);
      expect_bits(map(f, on(mesh, a, {shard(1)}), on(mesh, b, {shard(0)}), on(mesh, c, {})).full(), wanted);
      const Placements summands(static_cast<std::size_t>(mesh.shape().rank()), partial());
      const Sharded p = Sharded::distribute(a, mesh, summands), q = Sharded::distribute(shared_numbers({7, 3}, 4), mesh, summands);
      expect_bits(add(p, q).full(), clutch::add(a, shared_numbers({7, 3}, 4)));
      expect_near(mul(p, on(mesh, b, {})).full(), clutch::mul(a, b), 1e-6);
      EXPECT_EQ(code_of([&] { mul(p, q); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { add(p, on(mesh, b, {})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { map(f, p, q, on(mesh, c, {})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { map(f, on(mesh, a, {shard(0)}), on(mesh, b, {}), on(mesh, c, {})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { map([](const Expr& x) { return x + position(0); }, on(mesh, a, {})); }), ErrorCode::invalid_argument);
    }
  });
}

TEST(ShardedOps, RowsOfTablesComeFromWhoHasThem) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const Tensor table = shared_numbers({9, 4}, 1);
      const Tensor index =
          from_host({std::int64_t{0}, std::int64_t{8}, std::int64_t{3}, std::int64_t{-1}, std::int64_t{5}, std::int64_t{9}}, Device()).reshape({2, 3});
      const Tensor wanted = nn::embedding(table, index);
      const Sharded rows = embedding(on(mesh, table, {shard(0)}), on(mesh, index, {}));
      EXPECT_EQ(rows.placements()[0], partial());
      const std::vector<double> got = values(rows.full()), right = values(wanted);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i] == right[i] || (std::isnan(got[i]) && std::isnan(right[i]))) << i;
      const Tensor good = from_host({std::int64_t{0}, std::int64_t{8}, std::int64_t{3}});
      expect_bits(embedding(on(mesh, table, {shard(0)}), on(mesh, good, {})).full(), nn::embedding(table, good));
      expect_bits(embedding(on(mesh, table, {shard(1)}), on(mesh, good, {})).full(), nn::embedding(table, good));
      expect_bits(embedding(on(mesh, table, {}), on(mesh, good, {shard(0)})).full(), nn::embedding(table, good));
      EXPECT_EQ(code_of([&] { embedding(on(mesh, table, {shard(0, 2)}), on(mesh, good, {})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { embedding(on(mesh, table, {shard(0)}), on(mesh, good, {shard(0)})); }), ErrorCode::invalid_argument);
    }
  });
}

TEST(ShardedOps, NormsOfRowsThatAreCut) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const Tensor x = shared_numbers({5, 9}, 1), weight = shared_numbers({9}, 2), bias = shared_numbers({9}, 3);
      const Tensor rms = nn::rms_norm(x, weight).y, layer = nn::layer_norm(x, weight, bias).y;
      expect_bits(rms_norm(on(mesh, x, {shard(0)}), on(mesh, weight, {})).full(), rms);
      expect_bits(layer_norm(on(mesh, x, {shard(0)}), on(mesh, weight, {}), on(mesh, bias, {})).full(), layer);
      const Sharded cut = on(mesh, x, {shard(1)}), w = on(mesh, weight, {shard(0)}), b = on(mesh, bias, {shard(0)});
      expect_near(rms_norm(cut, w).full(), rms, 1e-6);
      expect_near(layer_norm(cut, w, b).full(), layer, 1e-6);
      EXPECT_EQ(code_of([&] { rms_norm(cut, on(mesh, weight, {})); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { rms_norm(cut, on(mesh, x, {})); }), ErrorCode::invalid_shape);
      if (mesh.shape().rank() == 2) {
        const Sharded all_cut = layer_norm(on(mesh, x, {shard(1), shard(1)}), on(mesh, weight, {shard(0), shard(0)}), on(mesh, bias, {shard(0), shard(0)}));
        expect_near(all_cut.full(), layer, 1e-6);
        expect_near(rms_norm(on(mesh, x, {shard(0), shard(1)}), on(mesh, weight, {replicate(), shard(0)})).full(), rms, 1e-6);
      }
    }
  });
}

TEST(ShardedOps, GradientsAreClippedByTheNormOfAll) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g))
      for (const optim::NormType type : {optim::NormType::two, optim::NormType::one, optim::NormType::inf}) {
        const std::vector<Tensor> full{shared_numbers({7, 3}, 1), shared_numbers({5}, 2), shared_numbers({2, 2}, 3)};
        const std::vector<Sharded> grads{on(mesh, full[0].clone(), {shard(0)}), on(mesh, full[1].clone(), {}), on(mesh, full[2].clone(), {shard(1)})};
        double sum = 0, most = 0;
        for (const Tensor& of : full)
          for (const double e : values(of)) sum += type == optim::NormType::two ? e * e : std::abs(e), most = std::max(most, std::abs(e));
        const double wanted = type == optim::NormType::two   ? std::sqrt(sum)
                              : type == optim::NormType::one ? sum
                                                             : most,
                     factor = std::min(1.0, 1.5 / (wanted + 1e-6));
        const optim::GradNorm got = grad_norm(grads, 1.5, {.norm_type = type});
        EXPECT_NEAR(got.norm.item(), wanted, 1e-6 * wanted);
        EXPECT_NEAR(got.factor.item(), factor, 1e-6);
        const Tensor norm = clip_grad_norm_(grads, 1.5, {.norm_type = type});
        expect_bits(norm, got.norm);
        for (std::size_t i = 0; i < full.size(); ++i) expect_near(grads[i].full(), clutch::mul(full[i], factor), 1e-6);
        const Tensor same = norm.clone();
        g.broadcast_(same, 0);
        expect_bits(norm, same, "the norm on all ranks");
        const std::vector<Sharded> summands{Sharded::from_local(full[0], mesh, Placements(static_cast<std::size_t>(mesh.shape().rank()), partial()))};
        EXPECT_EQ(code_of([&] { grad_norm(summands, 1); }), ErrorCode::invalid_argument);
        EXPECT_EQ(code_of([&] { grad_norm({}, 1); }), ErrorCode::invalid_argument);
        EXPECT_EQ(code_of([&] { grad_norm(grads, -1); }), ErrorCode::invalid_argument);
      }
  });
}

/// Sums of squares in the order that grad_norm() states, of a whole gradient of which placements cut these dimensions.
Tensor squares_in_order(const Tensor& full, const std::vector<int>& cut) {
  auto is_cut = [&](int d) { return std::find(cut.begin(), cut.end(), d) != cut.end(); };
  Dims rest, shape, within;
  for (int d = 0; d < full.rank(); ++d) {
    if (!is_cut(d)) {
      rest.push_back(d);
      continue;
    }
    const bool has_blocks = full.size(d) >= 4096 && full.size(d) % 64 == 0;
    shape.push_back(has_blocks ? 64 : full.size(d));
    if (has_blocks) within.push_back(shape.rank()), shape.push_back(full.size(d) / 64);
  }
  Tensor sums = mul(full, full);
  if (cut.empty() || rest.rank() > 0) sums = sum(sums, {.dims = rest, .dtype = DType::f32});
  if (within.rank() > 0) sums = sum(sums.reshape(shape), {.dims = within});
  return sums.reshape({sums.numel()});
}

TEST(ShardedOps, NormsHaveTheirBitsOnAnyNumberOfRanks) {
  for_ranks(kRanks, [](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      SCOPED_TRACE(to_string(mesh.shape()));
      const bool is_square = mesh.shape().rank() == 2;
      std::vector<Tensor> sums;
      std::vector<Sharded> grads;
      auto cut = [&](const Dims& sizes, std::initializer_list<Placement> placements, const std::vector<int>& dims) {
        const Tensor full = shared_numbers(sizes, static_cast<unsigned>(10 + grads.size()));
        grads.push_back(on(mesh, full, placements)), sums.push_back(squares_in_order(full, dims));
        expect_bits(grad_norm(std::span(&grads.back(), 1), 1).norm, sqrt(sum(sums.back())).reshape({1}), to_string(sizes).c_str());
      };
      // Rows that ranks have whole 64ths of, and that they do not; fewer rows than ranks; one number a row.
      cut({4096, 3}, {shard(0)}, {0}), cut({4160, 2}, {shard(0)}, {0}), cut({50, 65}, {shard(0)}, {0}), cut({1, 70}, {shard(0)}, {0}),
          cut({4352}, {shard(0)}, {0});
      cut({2, 4160, 3}, {shard(1)}, {1}), cut({0, 5}, {shard(0)}, {0}), cut({2100}, {}, {});
      if (g.size() % 2 == 0) cut({4224, 2}, {shard(0, 2)}, {0});
      if (is_square) {
        cut({8, 2, 4224}, {shard(0), shard(2)}, {0, 2}), cut({130, 64}, {shard(0), shard(1)}, {0, 1}), cut({4160, 2}, {shard(0, 2), shard(0)}, {0});
        cut({64, 64}, {replicate(), shard(1)}, {1}), cut({9, 5}, {shard(1), shard(0)}, {0, 1});
      }
      expect_bits(grad_norm(grads, 1).norm, sqrt(sum(cat(sums, 0))).reshape({1}));
      // Also of numbers that ranks have in other memory.
      std::vector<Sharded> halves;
      for (const Sharded& x : grads) halves.push_back(Sharded::from_local(cast(x.local(), DType::bf16), mesh, x.placements(), x.sizes()));
      std::vector<Tensor> of_halves;
      for (std::size_t i = 0; i < grads.size(); ++i) of_halves.push_back(cast(cast(grads[i].full(), DType::bf16), DType::f32));
      double wanted = 0;
      for (const Tensor& x : of_halves)
        for (const double e : values(x)) wanted += e * e;
      EXPECT_NEAR(grad_norm(halves, 1).norm.item(), std::sqrt(wanted), 1e-6 * std::sqrt(wanted));
    }
  });
}

}}  // namespace clutch::testing
