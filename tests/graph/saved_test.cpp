// SPDX-License-Identifier: Apache-2.0
#include "graph/backends.hpp"
#include "graph/state.hpp"
#include "program/sha256.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

namespace clutch::testing { namespace {

std::string path_of(std::string_view what) { return fmt::format("{}clutch_graph_{}_{}.safetensors", ::testing::TempDir(), what, ::getpid()); }

/// softmax(x w + constant), twice the sum of it, and a random number that advances.
struct Model {
  Tensor x, w, y, total, drawn;
  Graph graph;
  Model(const Device& device, const Stream& stream, const std::string& backend = "host") : graph({.backend = backend}) {
    x = randn({6, 8}, {.device = device, .seed = 1}, stream);
    w = randn({8, 4}, {.device = device, .seed = 2}, stream);
    drawn = zeros({16}, {.device = device}, stream);
    manual_seed(5, device, stream);
    GraphCapture capture(graph, stream);
    GraphAnnotation label("model", {{"layers", "1"}});
    Tensor bias = from_host<float>({1, 2, 3, 4}, device);
    Tensor product = reduce(Reduce::sum, [](Expr a, Expr b) { return a * b; }, {x.unsqueeze(-1), w.unsqueeze(-3)}, {.dims = {-2}});
    y = nn::softmax(add(product, bias), -1);
    total = mul(sum(y), 2);
    uniform_(drawn);
  }
  void save(const std::string& path, bool binaries = false) const {
    graph.save(path, {{"x", x}, {"w", w}, {"y", y}, {"total", total}, {"drawn", drawn}}, {.binaries = binaries});
  }
};

TEST(SavedGraphs, AnotherGraphWithItsOwnMemoryDoesTheSame) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    std::string path = path_of("same");
    Model model(device, stream);
    model.save(path);
    model.graph.replay(stream);
    std::vector<float> y = model.y.to_host<float>(stream), drawn = model.drawn.to_host<float>(stream);
    auto builds = build_counters().built;
    for (const std::string& backend : backends_of(device)) {
      Graph loaded = Graph::load(path, device, {.backend = backend});
      EXPECT_EQ(loaded.tensor_names().size(), 5u);
      EXPECT_EQ(loaded.nodes().size(), model.graph.nodes().size());
      EXPECT_EQ(loaded.find("model").size(), model.graph.nodes().size());
      loaded.replay(stream);
      EXPECT_EQ(loaded.tensor("y").to_host<float>(stream), y);
      EXPECT_EQ(loaded.tensor("total").to_host<float>(stream)[0], model.total.to_host<float>(stream)[0]);
      EXPECT_EQ(loaded.tensor("drawn").to_host<float>(stream), drawn) << "the generator's state was saved, too";
      loaded.replay(stream);
      EXPECT_NE(loaded.tensor("drawn").to_host<float>(stream), drawn);
      // Other inputs, by copy and by binding.
      copy_(loaded.tensor("x"), mul(model.x, 2, {}, stream), {}, stream);
      Tensor w = neg(model.w, {}, stream);
      loaded.rebind({{loaded.tensor("w"), w}});
      loaded.replay(stream);
      Tensor want = reduce(
          Reduce::sum, [](Expr a, Expr b) { return -2.0f * (a * b); }, {model.x.unsqueeze(-1), model.w.unsqueeze(-3)}, {.dims = {-2}}, stream);
      want = nn::softmax(add(want, from_host<float>({1, 2, 3, 4}, device, stream), {}, stream), -1, stream);
      std::vector<float> got = loaded.tensor("y").to_host<float>(stream), wanted = want.to_host<float>(stream);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6);
      EXPECT_EQ(code_of([&] { loaded.tensor("z"); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { loaded.save(path_of("bound")); }), ErrorCode::invalid_argument) << "other tensors are bound";
    }
    EXPECT_LE(build_counters().built - builds, 5u) << "the loaded graphs' programs are those of the process";
    // A loaded graph can be saved again.
    std::string again = path_of("again");
    Graph::load(path, device).save(again);
    Graph twice = Graph::load(again, device);
    twice.replay(stream);
    EXPECT_EQ(twice.tensor("y").to_host<float>(stream), y);
    std::filesystem::remove(path);
    std::filesystem::remove(again);
  }
}

TEST(SavedGraphs, FusedLaunchesAreSaved) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    std::string path = path_of("fused");
    Model nodes(device, stream), model(device, stream, "fused");
    model.save(path);
    nodes.graph.replay(stream);
    model.graph.replay(stream);
    for (const std::string& backend : backends_of(device)) {
      Graph loaded = Graph::load(path, device, {.backend = backend});
      EXPECT_LT(loaded.nodes().size(), nodes.graph.nodes().size());
      EXPECT_EQ(loaded.find("model").size(), loaded.nodes().size()) << "a launch has the annotations of its nodes";
      loaded.replay(stream);
      for (auto [name, tensor] : {std::pair("y", nodes.y), {"total", nodes.total}, {"drawn", nodes.drawn}})
        EXPECT_EQ(loaded.tensor(name).to_host<float>(stream), tensor.to_host<float>(stream)) << name;
    }
    std::filesystem::remove(path);
  }
}

TEST(SavedGraphs, AProcessWithoutTheCodeReplaysIt) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    std::string path = path_of("process");
    Model model(device, stream);
    model.save(path, true);
    model.graph.replay(stream);
    std::vector<float> y = model.y.to_host<float>(stream);
    std::string command = fmt::format("CLUTCH_TEST_DEVICES= '{}' '{}' '{}'", std::getenv("SAVED_GRAPH_CHILD"), path, device.selector());
    FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_TRUE(pipe);
    std::vector<float> got;
    for (float v = 0; std::fscanf(pipe, "%f", &v) == 1;) got.push_back(v);
    EXPECT_EQ(::pclose(pipe), 0);
    ASSERT_EQ(got.size(), y.size() + 1);
    EXPECT_EQ(got.back(), 0) << "programs built: the binaries came along";
    got.pop_back();
    EXPECT_EQ(got, y);
    std::filesystem::remove(path);
  }
}

TEST(SavedGraphs, WhatCannotBeCarriedIsRefusedByName) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = zeros({4}, {.device = device}, stream), other = zeros({4}, {.device = device}, stream);
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      add_(x, 1);
      Encoder encoder(stream, "my_solver");
      encoder.host_task([](std::span<void* const>) {}, std::array{x}, {});
      encoder.opaque([](void*) {}, {}, std::array{x});
    }
    std::string message = message_of([&] { graph.save(path_of("never")); });
    EXPECT_NE(message.find("my_solver (host_task)"), std::string::npos) << message;
    EXPECT_NE(message.find("my_solver (opaque)"), std::string::npos) << message;
    EXPECT_FALSE(std::filesystem::exists(path_of("never")));
    Graph plain;
    {
      GraphCapture capture(plain, stream);
      add_(x, 1);
    }
    EXPECT_EQ(code_of([&] { plain.save(path_of("never"), {{"other", other}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { plain.save(path_of("never"), {{"x", x}, {"x", x}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { plain.save(path_of("never"), {{"x", Tensor()}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { plain.save("/nowhere/at/all", {{"x", x}}); }), ErrorCode::io);
    EXPECT_EQ(code_of([&] { Graph::load("/nowhere/at/all", device); }), ErrorCode::io);
    EXPECT_EQ(code_of([&] { Graph().save(path_of("never")); }), ErrorCode::invalid_argument);
  }
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(SavedGraphs, DamageIsFoundByTheDigest) {
  const Device& device = test_devices().front();
  Stream stream(device);
  std::string path = path_of("damage");
  Model model(device, stream);
  model.save(path);
  std::vector<char> whole = read_file(path);
  model::Random random(seed());
  int rounds = level() == "smoke" ? 60 : 1000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<char> bytes = whole;
    if (round % 5 == 0)
      bytes.resize(random.next() % bytes.size());
    else
      for (int i = 0; i < 1 + round % 3; ++i) bytes[random.next() % bytes.size()] ^= static_cast<char>(1 + random.next() % 255);
    write_file(path, bytes);
    EXPECT_EQ(code_of([&] { Graph::load(path, device); }), ErrorCode::io) << "round " << round;
  }
  std::filesystem::remove(path);
}

/// Changes one value somewhere in the JSON.
void mutate(nlohmann::json& root, model::Random& random) {
  nlohmann::json* at = &root;
  for (int depth = 0; at->is_structured() && !at->empty(); ++depth) {
    auto it = at->begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random.next() % at->size()));
    if (at->is_object() && it.key() == "arguments") return;  // a kernel's arguments are code: see Graph::load()
    if (depth > 1 && random.next() % 12 == 0) {
      if (at->is_object())
        at->erase(it);
      else
        at->erase(static_cast<std::size_t>(it - at->begin()));
      return;
    }
    at = &*it;
  }
  const nlohmann::json values[] = {-1, 0, 1, 7, 1e30, (std::int64_t{1} << 40), INT64_MIN, UINT64_MAX, nullptr, "x", nlohmann::json::array(), true};
  *at = values[random.next() % std::size(values)];
}

TEST(SavedGraphs, ForgedOnesGiveErrorsOrGraphs) {
  const Device& device = test_devices().front();
  if (known_bug(device, "argument_sizes_panic")) return;  // another program's arguments, which a forged file may give a kernel, end the process
  Stream stream(device);
  std::string path = path_of("forged");
  Model model(device, stream);
  model.save(path);
  Safetensors file = Safetensors::open(path);
  std::map<std::string, Tensor> tensors;
  std::string contents;
  for (const auto& entry : file.entries()) tensors[entry.name] = file.load(entry.name, device, stream);
  for (const auto& [name, tensor] : tensors) {
    std::span<const std::byte> bytes = file.bytes(name);
    contents += fmt::format("\n{} {}", name, detail::to_hex(detail::sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
  }
  const nlohmann::json good = nlohmann::json::parse(file.metadata().at("clutch.graph"));
  auto forge = [&](const nlohmann::json& root) {
    std::string text = root.dump(), digest = detail::to_hex(detail::sha256(detail::to_hex(detail::sha256(text)) + contents));
    save_safetensors(path, tensors, {{"clutch.graph", text}, {"clutch.digest", digest}}, stream);
  };
  forge(good);
  Graph::load(path, device).replay(stream);
  nlohmann::json future = good;
  future["version"] = 2;
  forge(future);
  EXPECT_NE(message_of([&] { Graph::load(path, device); }).find("version 2"), std::string::npos);
  model::Random random(seed() + 1);
  int loaded = 0, refused = 0;
  for (int round = 0; round < (level() == "smoke" ? 100 : 3000); ++round) {
    nlohmann::json root = good;
    mutate(root, random);
    forge(root);
    try {
      Graph::load(path, device);
      ++loaded;
    } catch (const Error& e) {
      ++refused;
      constexpr ErrorCode kDocumented[] = {ErrorCode::io, ErrorCode::not_supported, ErrorCode::build_failure, ErrorCode::out_of_memory};
      EXPECT_NE(std::find(std::begin(kDocumented), std::end(kDocumented), e.code()), std::end(kDocumented)) << e.what() << "\n"
                                                                                                            << nlohmann::json::diff(good, root);
      if (e.code() == ErrorCode::io) {
        EXPECT_EQ(e.op(), "Graph::load") << e.what();
      }
    }
  }
  EXPECT_GT(refused, loaded / 10);
  // What breaks a rule of launches is damage; what is beyond the device is not.
  std::size_t kernel = 0;
  while (good["nodes"][kernel]["kind"] != "kernel") ++kernel;
  auto code_with = [&](const std::string& at, const nlohmann::json& value) {
    nlohmann::json root = good;
    root["nodes"][kernel][nlohmann::json::json_pointer(at)] = value;
    forge(root);
    return code_of([&] { Graph::load(path, device); });
  };
  EXPECT_EQ(code_with("/geometry", {7, 2, 1, 1, 1, 1}), ErrorCode::io) << "no multiple of the local size";
  EXPECT_EQ(code_with("/geometry", {4, 4, 1, 0, 1, 1}), ErrorCode::io) << "a local size of 0";
  EXPECT_EQ(code_with("/geometry", {1 << 30, 1 << 30, 1, 1, 1, 1}), ErrorCode::not_supported) << "a group too big for the device";
  EXPECT_EQ(code_with("/geometry", {1, 1, 1, 1, 1}), ErrorCode::io);
  std::size_t value = 0;
  while (good["nodes"][kernel]["arguments"][value]["kind"] != static_cast<int>(detail::BoundArgument::Kind::bytes)) ++value;
  EXPECT_EQ(code_with(fmt::format("/arguments/{}/size", value), 3), ErrorCode::io) << "an argument that does not fit its parameter";
  std::filesystem::remove(path);
}

}}  // namespace clutch::testing
