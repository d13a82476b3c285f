// SPDX-License-Identifier: Apache-2.0
// Checkpoints: written by one mesh, read by others; broken files; a process that is killed while it writes.
#include "dist/numbers.hpp"

#include <clutch/dist/checkpoint.hpp>
#include <clutch/files.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace clutch::testing { namespace {

using namespace dist;
namespace fs = std::filesystem;

/// A folder of the test's own; under mpirun one of all ranks.
fs::path folder_of(const char* name) {
  const char* job = std::getenv("OMPI_MCA_ess_base_jobid");
  return fs::temp_directory_path() / (std::string("clutch_checkpoint_") + name + "_" + (job != nullptr ? job : std::to_string(::getpid())));
}

using Tensors = std::map<std::string, Sharded>;

const std::vector<std::pair<std::string, Tensor>>& whole_ones() {
  static const auto& all = *new std::vector<std::pair<std::string, Tensor>>{
      {"weight", shared_numbers({7, 5}, 1)},
      {"half", shared_numbers({6}, 2, DType::f16)},
      {"layer.0.moments \"of\" \xc3\xa9", shared_numbers({3, 2, 4}, 3, DType::f64)},
      {"tokens", from_host({std::int64_t{1}, std::int64_t{-5}, std::int64_t{1} << 60})},
      {"step", full({}, 17, {.dtype = DType::i32})},
      {"nothing", zeros({0, 3})},
      {"eight", shared_numbers({2, 9}, 4, DType::f8e4m3fn)},
  };
  return all;
}

/// Those tensors over a mesh, each with other placements.
Tensors sharded(const Mesh& mesh, unsigned salt, bool of_zeros = false) {
  Tensors tensors;
  const Placement some[] = {shard(0), replicate(), shard(-1), shard(0, 2)};
  for (const auto& [name, whole] : whole_ones()) {
    std::vector<Placement> placements;
    for (int k = 0; k < mesh.shape().rank(); ++k) placements.push_back(whole.rank() == 0 ? replicate() : some[salt++ % 4]);
    const Tensor from = of_zeros ? zeros(whole.sizes(), {.dtype = whole.dtype()}) : whole;
    // Parts of their own, also where they are replicated.
    const Sharded made = Sharded::distribute(from, mesh, placements);
    tensors.emplace(name, Sharded::from_local(made.local().clone(), mesh, made.placements(), whole.sizes()));
  }
  return tensors;
}

void expect_whole(const Tensors& tensors) {
  for (const auto& [name, whole] : whole_ones()) expect_bits(tensors.at(name).full(), whole, name.c_str());
}

std::vector<Mesh> meshes_of(const Group& g) {
  std::vector<Mesh> meshes{Mesh(g, {g.size()})};
  if (g.size() == 4) meshes.emplace_back(g, Dims{2, 2});
  return meshes;
}

TEST(Checkpoints, AreReadByAnyMesh) {
  whole_ones();
  const fs::path folder = folder_of("any");
  for (const int writers : {4, 3, 1}) {
    for_ranks({writers}, [&](const Group& g) {
      unsigned salt = 0;
      for (const Mesh& mesh : meshes_of(g)) {
        const Saving saving = save(folder.string(), sharded(mesh, salt++));
        saving.wait();
        EXPECT_TRUE(saving.done());
        EXPECT_FALSE(fs::exists(folder.string() + ".saving"));
        // Every rank has waited before it loads, and none writes before all have read.
        Tensors read = sharded(mesh, 2, true);
        load(folder.string(), read);
        expect_whole(read);
      }
    });
    if (processes() > 0) continue;
    for_ranks({1, 2, 3, 4}, [&](const Group& g) {
      for (const Mesh& mesh : meshes_of(g))
        for (unsigned salt = 0; salt < 4; ++salt) {
          Tensors read = sharded(mesh, salt, true);
          load(folder.string(), read);
          expect_whole(read);
        }
    });
  }
  if (processes() == 0 || world().rank() == 0) fs::remove_all(folder);
}

TEST(Checkpoints, HaveThePlacesThatPyTorchReads) {
  if (processes() > 0) return;
  const fs::path folder = folder_of("places");
  for_ranks({2}, [&](const Group& g) {
    const Mesh mesh(g, {2});
    save(folder.string(),
         {{"w", Sharded::distribute(shared_numbers({5, 4}, 1), mesh, {shard(0)})}, {"b", Sharded::distribute(shared_numbers({4}, 2), mesh, {replicate()})}})
        .wait();
  });
  const Safetensors first = Safetensors::open((folder / "shard-00001-model-00001-of-00001.safetensors").string());
  const Safetensors second = Safetensors::open((folder / "shard-00002-model-00001-of-00001.safetensors").string());
  EXPECT_EQ(first.metadata().at("DCP_SHARDING_INFO"), R"({"b":{"saved_offsets":[0]},"w":{"saved_offsets":[0,0]}})");
  EXPECT_EQ(second.metadata().at("DCP_SHARDING_INFO"), R"({"w":{"saved_offsets":[3,0]}})");
  EXPECT_EQ(first.metadata().at("format"), "pt");
  EXPECT_EQ(first.metadata().at("DCP_VERSION"), "1.0");
  EXPECT_EQ(second.entries()[0].sizes, (Dims{2, 4}));
  expect_bits(first.load("b"), shared_numbers({4}, 2));
  // A file without places, as models without shards have them.
  fs::remove_all(folder);
  fs::create_directories(folder);
  save_safetensors((folder / "model.safetensors").string(), {{"w", shared_numbers({5, 4}, 1)}});
  for_ranks({2}, [&](const Group& g) {
    const Mesh mesh(g, {2});
    const Sharded w = Sharded::distribute(zeros({5, 4}), mesh, {shard(1)});
    load(folder.string(), {{"w", w}});
    expect_bits(w.full(), shared_numbers({5, 4}, 1));
  });
  fs::remove_all(folder);
}

TEST(Checkpoints, AreWrittenWhileTensorsChange) {
  const fs::path folder = folder_of("meanwhile");
  for_ranks({2}, [&](const Group& g) {
    const Mesh mesh(g, {g.size()});
    const Sharded w = Sharded::distribute(full({1 << 20}, 1), mesh, {shard(0)});
    Saving last;
    for (int step = 1; step <= 5; ++step) {
      fill_(w.local(), step);
      last = save(folder.string(), {{"w", w}});
      fill_(w.local(), -1);
      // The group itself is free meanwhile.
      g.all_reduce_(full({3}, 1));
    }
    last.wait();
    load(folder.string(), {{"w", w}});
    expect_bits(w.full(), full({1 << 20}, 5));
  });
  if (processes() == 0 || world().rank() == 0) fs::remove_all(folder);
}

TEST(Checkpoints, Refusals) {
  const fs::path folder = folder_of("refusals");
  const std::string path = folder.string();
  for_ranks({2}, [&](const Group& g) {
    const Mesh mesh(g, {g.size()});
    const Tensor whole = zeros({4});
    const Sharded w = Sharded::distribute(whole, mesh, {shard(0)});
    EXPECT_EQ(code_of([&] { save(path, {}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save(path, {{"w", w}}, {.async = true}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save(path, {{"__metadata__", w}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save(path, {{"w", Sharded()}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save(path, {{"w", Sharded::distribute(whole, mesh, {partial()})}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save(path, {{"w", Sharded::distribute(zeros({4}, {.dtype = DType::c128}), mesh, {shard(0)})}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { save(path, {{g.rank() == 0 ? "w" : "v", w}}); }), g.size() > 1 ? ErrorCode::mismatch : ErrorCode::ok);
    g.barrier().synchronize();
    EXPECT_FALSE(fs::exists(path + ".saving"));
    g.barrier().synchronize();
    save(path, {{"w", w}}).wait();
    auto code = [&](const char* name, const Tensor& of) { return code_of([&] { load(path, {{name, Sharded::distribute(of, mesh, {replicate()})}}); }); };
    EXPECT_EQ(code("w", whole), ErrorCode::ok);
    EXPECT_EQ(code("v", whole), ErrorCode::invalid_argument);
    EXPECT_EQ(code("w", zeros({5})), ErrorCode::invalid_shape);
    EXPECT_EQ(code("w", zeros({4, 1})), ErrorCode::invalid_shape);
    EXPECT_EQ(code("w", zeros({4}, {.dtype = DType::f64})), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { load(path + "/nowhere", {{"w", w}}); }), ErrorCode::io);
    EXPECT_EQ(code_of([&] { load(path, {{"w", Sharded::distribute(whole, mesh, {partial()})}}); }), ErrorCode::invalid_argument);
    // The path of a file.
    const std::string file = path + "/shard-00001-model-00001-of-00001.safetensors";
    g.barrier().synchronize();
    const ErrorCode failed = code_of([&] { save(file, {{"w", w}}).wait(); });
    EXPECT_EQ(failed, g.rank() == 0 ? ErrorCode::io : ErrorCode::peer_failed);
    EXPECT_FALSE(g.rank() == 0 && fs::exists(file + ".saving"));
    EXPECT_EQ(code("w", whole), ErrorCode::ok);
    g.barrier().synchronize();
  });
  if (processes() == 0 || world().rank() == 0) fs::remove_all(folder);
}

std::vector<char> bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& file, const std::vector<char>& bytes) {
  // A file of its own: what is mapped stays.
  fs::remove(file);
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(Checkpoints, BrokenFilesAreErrors) {
  if (processes() > 0) return;
  const fs::path folder = folder_of("broken");
  const Tensor whole = shared_numbers({6, 5}, 1);
  for_ranks({2}, [&](const Group& g) { save(folder.string(), {{"weight", Sharded::distribute(whole, Mesh(g, {2}), {shard(0)})}}).wait(); });
  const fs::path first = folder / "shard-00001-model-00001-of-00001.safetensors", second = folder / "shard-00002-model-00001-of-00001.safetensors";
  const std::vector<char> good = bytes_of(second);
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  for_ranks({1}, [&](const Group& g) {
    const Mesh mesh(g, {1});
    int refused = 0, read = 0;
    auto expect_error_or_right = [&] {
      const Sharded w = Sharded::distribute(zeros({6, 5}), mesh, {shard(0)});
      try {
        load(folder.string(), {{"weight", w}});
        ++read;
        expect_bits(w.local(), whole);
      } catch (const Error& e) {
        ++refused;
        EXPECT_NE(std::string(e.what()).find("load"), std::string::npos) << e.what();
        // Nothing was written.
        EXPECT_EQ(w.local().to_host<float>(), std::vector<float>(30, 0));
      }
    };
    std::mt19937 random(static_cast<unsigned>(seed()));
    for (std::size_t i = 0; i < 8 + header; ++i)
      for (const int by : {1, static_cast<int>(1 + random() % 255)}) {
        std::vector<char> bad = good;
        bad[i] = static_cast<char>(bad[i] ^ by);
        write(second, bad);
        expect_error_or_right();
      }
    EXPECT_GT(refused, static_cast<int>(header));
    // What may be read are changes of words that nobody reads.
    EXPECT_LT(read, 120);
    for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{8}, static_cast<std::size_t>(8 + header / 2), good.size() - 1}) {
      write(second, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)});
      EXPECT_EQ(code_of([&] { load(folder.string(), {{"weight", Sharded::distribute(zeros({6, 5}), mesh, {shard(0)})}}); }), ErrorCode::io) << length;
    }
    const auto code_with = [&](const std::string& from, const std::string& to) {
      std::string text(good.begin(), good.end());
      const std::size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      EXPECT_EQ(from.size(), to.size());
      text.replace(at, from.size(), to);
      write(second, {text.begin(), text.end()});
      return code_of([&] { load(folder.string(), {{"weight", Sharded::distribute(zeros({6, 5}), mesh, {shard(0)})}}); });
    };
    EXPECT_EQ(code_with("[3,0]", "[3,0]"), ErrorCode::ok);
    EXPECT_EQ(code_with("[3,0]", "[2,0]"), ErrorCode::invalid_shape);
    EXPECT_EQ(code_with("[3,0]", "[-3,0"), ErrorCode::io);
    EXPECT_EQ(code_with("[3,0]", "[3]  "), ErrorCode::io);
    EXPECT_EQ(code_with("[3,0]", "{}   "), ErrorCode::io);
    EXPECT_EQ(code_with("[3,5]", "[5,3]"), ErrorCode::invalid_shape);
    EXPECT_EQ(code_with("F32", "I32"), ErrorCode::invalid_dtype);
    // A part that is missing, and one that two files have.
    fs::remove(second);
    EXPECT_EQ(code_of([&] { load(folder.string(), {{"weight", Sharded::distribute(zeros({6, 5}), mesh, {shard(0)})}}); }), ErrorCode::invalid_shape);
    write(second, good);
    write(folder / "other.safetensors", good);
    EXPECT_EQ(code_of([&] { load(folder.string(), {{"weight", Sharded::distribute(zeros({6, 5}), mesh, {shard(0)})}}); }), ErrorCode::io);
    fs::remove(folder / "other.safetensors");
    fs::remove(first);
    EXPECT_EQ(code_of([&] { load(folder.string(), {{"weight", Sharded::distribute(zeros({6, 5}), mesh, {shard(0)})}}); }), ErrorCode::io);
  });
  fs::remove_all(folder);
}

/// What tests/checkpoint_by_torch/run calls: a checkpoint that PyTorch reads and the tensors in one file, and a checkpoint that PyTorch wrote.
TEST(CheckpointPeer, Writes) {
  const char* folder = std::getenv("CHECKPOINT_FOR_TORCH");
  if (folder == nullptr) return;
  for_ranks({4}, [&](const Group& g) {
    Tensors tensors = sharded(Mesh(g, {2, 2}), 0);
    save(folder + std::string("/ours"), tensors).wait();
    // PyTorch joins files of floating numbers alone.
    std::erase_if(tensors, [](const auto& named) { return !is_floating(named.second.dtype()); });
    save(folder + std::string("/floats"), tensors).wait();
  });
  save_safetensors(folder + std::string("/whole.safetensors"), {whole_ones().begin(), whole_ones().end()});
}
TEST(CheckpointPeer, Reads) {
  const char* folder = std::getenv("CHECKPOINT_OF_TORCH");
  if (folder == nullptr) return;
  for_ranks({1, 3, 4}, [&](const Group& g) {
    for (const Mesh& mesh : meshes_of(g)) {
      const Tensors read = sharded(mesh, 1, true);
      load(folder, read);
      expect_whole(read);
    }
  });
}

constexpr const char* kChild = "CHECKPOINT_CHILD";
constexpr std::int64_t kElements = 200'000;

/// What the killed process runs: one save after another, of tensors that are all the number of the save.
TEST(CheckpointChild, Saves) {
  const char* path = std::getenv(kChild);
  if (path == nullptr) return;
  for_ranks({2}, [&](const Group& g) {
    const Mesh mesh(g, {2});
    for (int step = 1;; ++step)
      save(path, {{"a", Sharded::distribute(full({kElements}, step), mesh, {shard(0)})}, {"b", Sharded::distribute(full({3}, step), mesh, {replicate()})}})
          .wait();
  });
}

TEST(Checkpoints, AKilledProcessLeavesAWholeOne) {
  if (processes() > 0) return;
  const fs::path folder = folder_of("killed");
  const std::string variable = std::string(kChild) + "=" + folder.string();
  double reached = 0;
  for (unsigned round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<char*> words;
      for (char** word = environ; *word != nullptr; ++word) words.push_back(*word);
      std::string copy = variable;
      words.push_back(copy.data()), words.push_back(nullptr);
      const int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, 1);
      char name[] = "test_sharded", filter[] = "--gtest_filter=CheckpointChild.Saves";
      char* arguments[] = {name, filter, nullptr};
      ::execve("/proc/self/exe", arguments, words.data());
      ::_exit(127);
    }
    // Some saves after the first of this process, at whatever point of them.
    const auto begun = fs::file_time_type::clock::now();
    auto is_new = [&] {
      std::error_code none;
      const auto at = fs::last_write_time(folder, none);
      return !none && at > begun;
    };
    for (int i = 0; i < 3000 && !is_new(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 13 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    for_ranks({1}, [&](const Group& g) {
      const Mesh mesh(g, {1});
      const Sharded a = Sharded::distribute(zeros({kElements}), mesh, {shard(0)}), b = Sharded::distribute(zeros({3}), mesh, {shard(0)});
      load(folder.string(), {{"a", a}, {"b", b}});
      const std::vector<float> of_a = a.local().to_host<float>(), of_b = b.local().to_host<float>();
      EXPECT_GE(of_b[0], 1);
      reached = of_b[0];
      EXPECT_EQ(of_a, std::vector<float>(static_cast<std::size_t>(kElements), of_b[0]));
      EXPECT_EQ(of_b, std::vector<float>(3, of_b[0]));
    });
  }
  RecordProperty("saves", std::to_string(reached));
  fs::remove_all(folder);
  fs::remove_all(folder.string() + ".saving");
}

}}  // namespace clutch::testing
