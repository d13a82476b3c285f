// SPDX-License-Identifier: Apache-2.0
// Random edits of valid inputs to everything that reads text or files from outside, for a bounded time: what comes back is a
// result or a clutch::Error, never another exception, a crash or a hang.
#include "expr/random_function.hpp"
#include "harness/json_input.hpp"
#include "harness/shapes.hpp"
#include "program/disk_cache.hpp"
#include "runtime/allocator_config.hpp"
#include "runtime/memory_report.hpp"
#include "runtime/pickle.hpp"
#include "runtime/selector.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"
#include "tools/memory_replay.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include <unistd.h>

namespace clutch::testing { namespace {

/// A text made from the corpus by some edits: bytes changed, cut, doubled, and pieces of other texts put in.
std::string mutate(model::Random& random, const std::vector<std::string>& corpus, std::string_view alphabet) {
  auto pick = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random.next() % n); };
  std::string text = corpus[pick(corpus.size())];
  for (std::uint64_t edits = 1 + random.next() % 6; edits > 0; --edits) {
    std::size_t at = pick(text.size() + 1);
    switch (random.next() % 6) {
      case 0: text.insert(at, 1, alphabet[pick(alphabet.size())]); break;
      case 1: text.erase(at, 1 + pick(8)); break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.next());
        break;
      case 3: text.insert(at, text.substr(pick(text.size() + 1), 1 + pick(20))); break;
      case 4: {
        const std::string& other = corpus[pick(corpus.size())];
        text.insert(at, other.substr(pick(other.size() + 1), 1 + pick(30)));
        break;
      }
      default: text.insert(at, std::to_string(random.next() >> pick(64))); break;
    }
  }
  return text;
}

/// Feeds mutated texts for a while, on slow machines longer; counts those that were taken and those that were refused: both must occur within 20,000.
/// `documented`, if any, are the codes with which one may be refused.
void fuzz(const std::vector<std::string>& corpus, std::string_view alphabet, const std::function<void(const std::string&)>& feed,
          std::initializer_list<ErrorCode> documented = {}) {
  model::Random random(seed());
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(level() == "nightly" ? 30000 : 1000);
  std::uint64_t taken = 0, refused = 0;
  for (const std::string& valid : corpus) ASSERT_NO_THROW(feed(valid)) << valid;
  while (((taken == 0 || refused == 0) && taken + refused < 20000) || std::chrono::steady_clock::now() < end) {
    std::string text = mutate(random, corpus, alphabet);
    try {
      feed(text);
      ++taken;
    } catch (const Error& e) {
      ++refused;
      ASSERT_FALSE(std::string_view(e.what()).empty());
      ASSERT_TRUE(documented.size() == 0 || std::find(documented.begin(), documented.end(), e.code()) != documented.end())
          << e.what() << " of '" << text << "'";
    } catch (const std::exception& e) {
      FAIL() << "'" << text << "' threw " << e.what();
    }
  }
  fmt::print("{} taken, {} refused\n", taken, refused);
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 0u);
}

TEST(Fuzz, SelectorGrammar) {
  const std::vector<detail::DeviceFacts> machine{
      {0, 0, "AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", "gfx942", "aa01", DeviceType::gpu, false},
      {1, 0, "Intel(R) OpenCL", "Intel(R) Corporation", "Xeon", "", DeviceType::cpu, false},
      {2, 0, "NVIDIA CUDA", "NVIDIA Corporation", "H200", "cc03", DeviceType::gpu, false},
      {3, 0, "Portable Computing Language", "GenuineIntel", "pthread-skylake", "", DeviceType::cpu, false},
  };
  fuzz({"gpu", "cpu:1", "0:0", "gpu;!nvidia", "opencl:gpu,cpu", "portable:0", "cuda:0", "*", "intel", "0,2,1", "*:*;!cpu"}, "0123456789:;,!*. -+gcpu",
       [&](const std::string& text) {
         for (int i : detail::match_selector(text, machine)) ASSERT_TRUE(i >= 0 && i < static_cast<int>(machine.size()));
       });
  fuzz({"0,1", "3,2,1,0", "GPU-aa01", "UUID-cc", ""}, "0123456789,-GPUacx ", [&](const std::string& text) {
    for (int i : detail::visible_devices(text, machine)) ASSERT_TRUE(i >= 0 && i < static_cast<int>(machine.size()));
    if (text.find('%') != std::string::npos)
      throw Error(ErrorCode::invalid_argument, "fuzz", "the list must refuse, got one that never does");  // both must occur
  });
}

TEST(Fuzz, Settings) {
  fuzz({"CLUTCH_LOG=debug", "CLUTCH_CACHE=off", "CLUTCH_STRICT=host,untuned", "CLUTCH_INDEX64=1", "CLUTCH_TEST_SEED=77", "CLUTCH_DEVICE=gpu", "HOME=/root"},
       "CLUTCH_=,019aehot ", [](const std::string& text) {
         auto equals = text.find('=');
         std::vector<std::pair<std::string, std::string>> environment{{text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1)}};
         detail::Settings s = detail::parse_settings(environment);
         (void)s.index64.on();
         (void)s.test_seed.integer();
         (void)s.bench_pairs.integer();
         (void)s.strict_forbids("host");
       });
}

TEST(Fuzz, AllocatorSettings) {
  fuzz({"max_split_size_mb:64,expandable_segments:True", "roundup_power2_divisions:[256:1,512:2,>:8]", "roundup_power2_divisions:4,backend:native", ""},
       "0123456789:,[]>. TrueFals_mb", [](const std::string& text) {
         const AllocatorSettings settings = detail::parse_allocator_settings(text);
         for (std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{3000001}, std::uint64_t{1} << 40}) {
           const std::uint64_t block = detail::rounded_bytes(settings, bytes);
           ASSERT_GE(block, bytes);
           ASSERT_GE(detail::new_segment_bytes(settings, block, 0, 0), block);
         }
       });
}

TEST(Fuzz, Snapshots) {
  MemorySnapshot snapshot{.segments = {{.address = 1ull << 32,
                                        .total_size = 2048,
                                        .allocated_size = 512,
                                        .pool = {0, 3},
                                        .blocks = {{1ull << 32, 512, 500, "active_allocated", "a"}, {(1ull << 32) + 512, 1536, 0, "inactive", ""}}}}};
  snapshot.device_traces.push_back({{.action = "alloc", .address = 7, .size = 300, .label = "b"},
                                    {.action = "free_requested", .address = 7, .size = 300},
                                    {.action = "free_completed", .address = 7, .size = 300},
                                    {.action = "segment_free", .address = 7, .size = 2048},
                                    {.action = "alloc", .address = 1ull << 32, .size = 500, .label = "a"}});
  fuzz({detail::pickle_of(snapshot)}, std::string_view("\x80\x02}](uetKMJX.Nhq\x94\0", 18), [](const std::string& text) {
    const MemorySnapshot read = clutch_memory::snapshot_of(detail::read_pickle(std::as_bytes(std::span(text)), "fuzz"));
    for (std::size_t device = 0; device < read.device_traces.size(); ++device) {
      const std::vector<clutch_memory::TraceStep> steps = clutch_memory::steps_of(read, device);
      const auto result = clutch_memory::replay(steps, {}, {.page = 4096});
      ASSERT_LE(result.requested_peak, result.reserved_peak);
      const AllocatorSettings growing = detail::parse_allocator_settings("expandable_segments:True,garbage_collection_threshold:0.5");
      constexpr std::uint64_t kLimit = 8 << 20;
      ASSERT_LE(clutch_memory::replay(steps, growing, {.page = 4096, .reservable = 64 << 20, .limit = kLimit}).reserved_peak, kLimit);
    }
    (void)detail::page_of(read);
  });
}

TEST(Fuzz, CacheFiles) {
  auto folder = std::filesystem::temp_directory_path() / fmt::format("clutch_fuzz_{}", ::getpid());
  auto settings = detail::the_settings();
  settings.cache_dir.value = folder.string();
  settings.cache.value.assign("on");
  {
    detail::SettingsOverride here(settings);
    detail::Digest key = detail::sha256("fuzz");
    const std::string payload("a program's binary, with \0 and more", 35);
    std::vector<std::string> files;
    for (std::size_t size : {std::size_t{0}, payload.size(), std::size_t{5000}}) {
      ASSERT_TRUE(detail::cache_write(folder / "file", key, payload.substr(0, size) + std::string(size > payload.size() ? size : 0, 'z')));
      std::ifstream in(folder / "file", std::ios::binary);
      files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    fuzz(files, std::string_view("\0\1\377z", 4), [&, calls = std::size_t{0}](std::string bytes) mutable {
      // Bytes 12 to 15 are reserved. Few mutations change one of these alone.
      if (++calls % 16 == 0) bytes = files[calls / 16 % files.size()], bytes[12 + calls / 16 % 4] = 'z';
      std::ofstream(folder / "file", std::ios::binary) << bytes;
      auto read = detail::cache_read(folder / "file", key);
      bool whole = std::find(files.begin(), files.end(), bytes) != files.end();
      // A changed file is refused; four reserved bytes of its header carry nothing.
      auto same = [&](const std::string& file) { return file.size() == bytes.size() && file.compare(16, std::string::npos, bytes, 16) == 0; };
      if (read && !whole) {
        ASSERT_TRUE(std::any_of(files.begin(), files.end(), same));
      }
      if (!read) throw Error(ErrorCode::io, "fuzz", "the bytes must be readable, got others");
    });
  }
  std::filesystem::remove_all(folder);
}

TEST(Fuzz, TextsOfTracedFunctions) {
  std::vector<std::string> corpus{
      "inputs f32\nparams f32 i64\nbuffers bf16/2\n%1 = param 0\n%2 = position -1\n%3 = position 0\n%4 = gather 0 %3 %2\n%5 = fma %0 %1 %4\noutputs %5 %0\n"};
  for (std::uint64_t k = 0; k < 12; ++k) corpus.push_back(RandomFunction(seed() + k, k % 2 == 0, 12).function.text());
  fuzz(corpus, "%=0123456789 \n-+.xpinfaf32i64boolean", [](const std::string& text) {
    ExprFunction f = ExprFunction::parse(text);
    ASSERT_EQ(ExprFunction::parse(f.text()).text(), f.text());
    if (f.captured_count() > 0 || f.text().find("position") != std::string::npos) return;
    std::vector<ExprValue> inputs;
    for (int i = 0; i < f.input_count(); ++i) inputs.push_back(ExprValue::of(f.input_dtype(i), 1.5));
    ASSERT_EQ(f.evaluate(inputs).size(), static_cast<std::size_t>(f.output_count()));
    if (f.floating_inputs() > 0) f.backward();
  });
}

TEST(Fuzz, JsonInputs) {
  bench::Roofline roofline;
  roofline.date = "2026-01-01T00:00:00Z";
  roofline.peak_flops["f32"] = 1e11;
  roofline.bandwidth["triad/4096"] = 2e10;
  roofline.host["triad"] = 3e10;
  roofline.suspect.push_back("a line");
  fuzz({bench::to_json(roofline).dump(1)}, "{}[]:,\"0123456789.eE+-truefalsn\\u ", [](const std::string& text) {
    bench::Roofline r = bench::parse_roofline(text);
    for (const auto& [key, value] : r.bandwidth) ASSERT_TRUE(value >= 0);
  });
  fuzz({R"({"context":{},"benchmarks":[{"name":"a/f32/1","device":"d","real_time":12.5,"noise_pct":1.0},{"name":"b","error_occurred":true}]})"},
       "{}[]:,\"0123456789.eE+-truefalsn\\u ", [](const std::string& text) {
         for (const bench::OldRow& row : bench::parse_results(text)) ASSERT_TRUE(row.seconds >= 0 && row.noise_pct >= 0);
       });
  fuzz({R"({"context":{"date":"2026","devices":[{"device":"d","driver":"v","platform":"p"}]},"benchmarks":[{"name":"a/f32/1","device":"d","real_time":12.5,)"
        R"("peers":{"omp":{"real_time":25.0,"ratio":2.0}}},{"name":"b","error_occurred":true}]})"},
       "{}[]:,\"0123456789.eE+-truefalsn\\u ", [](const std::string& text) {
         for (const bench::Result& r : bench::parse_shown(text).results) ASSERT_TRUE(r.measured.hot.median >= 0);
       });
}

TEST(Fuzz, ShapesOfTheBench) {
  const std::vector<bench::Parameter> parameters{{.name = "dtype", .words = {"f32", "bf16"}},
                                                 {.name = "m", .most = 4096, .often_least = 0.2},
                                                 {.name = "kv", .least = 0, .most = std::int64_t{1} << 40},
                                                 {.name = "layout", .words = {"nn", "nt"}}};
  std::vector<std::string> corpus{"matmul/layout=nt,m=4096,kv=0,dtype=f32"};
  bench::ShapeSource source("matmul", parameters, seed());
  for (int k = 0; k < 20; ++k) corpus.push_back(source.next().text());
  fuzz(corpus, "/,=-0123456789 mkvdtypelayoutnbf",
       [&](const std::string& text) {
         const bench::RandomShape shape = bench::parse_shape(text, parameters);
         ASSERT_EQ(bench::parse_shape(shape.text(), parameters).text(), shape.text()) << text;
         ASSERT_TRUE(shape.number("m") >= 1 && shape.number("m") <= 4096 && shape.number("kv") >= 0 && shape.number("kv") <= std::int64_t{1} << 40) << text;
         ASSERT_TRUE(shape.word("layout") == "nn" || shape.word("layout") == "nt") << text;
       },
       {ErrorCode::invalid_argument});
}

TEST(Fuzz, RandomShapesOfTheBench) {
  const std::vector<bench::Parameter> parameters{
      {.name = "n", .most = 1 << 20, .often_least = 0.1}, {.name = "k", .least = 3, .most = 5}, {.name = "z", .least = 0, .most = 1}};
  bench::ShapeSource one("op", parameters, 7), same("op", parameters, 7), other("op", parameters, 8), other_op("po", parameters, 7);
  int least = 0, odd = 0, power = 0, beside = 0, small = 0, differ = 0, differ_op = 0;
  std::vector<int> of_k(6), of_z(2);
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const bench::RandomShape shape = one.next();
    ASSERT_EQ(shape.text(), same.next().text());
    differ += shape.text() != other.next().text(), differ_op += shape.text() != other_op.next().text();
    const std::int64_t n = shape.number("n");
    ASSERT_TRUE(n >= 1 && n <= 1 << 20 && shape.number("k") >= 3 && shape.number("k") <= 5 && shape.number("z") >= 0 && shape.number("z") <= 1);
    least += n == 1, odd += n % 2 == 1, small += n < 1024;
    power += n > 2 && (n & (n - 1)) == 0, beside += n > 64 && (((n + 1) & n) == 0 || ((n - 1) & (n - 2)) == 0);
    ++of_k[static_cast<std::size_t>(shape.number("k"))], ++of_z[static_cast<std::size_t>(shape.number("z"))];
  }
  // Each factor of two alike, so half of the numbers are below the square root of the largest; a tenth are the least, and a third at or beside a power of two.
  EXPECT_GT(differ, kDraws * 9 / 10);
  EXPECT_GT(differ_op, kDraws * 9 / 10);
  EXPECT_TRUE(least > kDraws / 10 && least < kDraws / 4) << least;
  EXPECT_TRUE(small > kDraws * 4 / 10 && small < kDraws * 7 / 10) << small;
  EXPECT_TRUE(odd > kDraws / 4 && odd < kDraws * 3 / 4) << odd;
  EXPECT_TRUE(power > kDraws / 20 && power < kDraws / 5) << power;
  EXPECT_TRUE(beside > kDraws / 20 && beside < kDraws / 3) << beside;
  for (int k = 3; k <= 5; ++k) EXPECT_GT(of_k[static_cast<std::size_t>(k)], kDraws / 10) << k;
  for (int count : of_z) EXPECT_GT(count, kDraws / 10);
}

/// The bytes of a file that `save` writes.
std::string written(const std::function<void(const std::string& path)>& save) {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("clutch_fuzz_{}", ::getpid())).string();
  save(path);
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::filesystem::remove(path);
  return bytes;
}

TEST(Fuzz, FilesOfTensors) {
  const Device& device = test_devices().front();
  Tensor x = arange(0, 6, 1, {.device = device}).reshape({2, 3}), n = arange(0, 5, 1, {.dtype = DType::i64, .device = device});
  std::vector<std::string> arrays{written([&](const std::string& path) { save_npy(path, x); }), written([&](const std::string& path) { save_npy(path, n); })};
  arrays.push_back(arrays[0]);
  arrays.back().replace(arrays[0].find("False"), 5, "True ");
  arrays.push_back(arrays[0]);
  arrays.back()[arrays[0].find('<')] = '>';
  fuzz(arrays, std::string_view("\0\1\377'(),:{}0123456789<>|fiub TrueFals", 36),
       [&](const std::string& bytes) {
         Tensor t = read_npy(std::as_bytes(std::span(bytes)), device);
         ASSERT_LE(t.nbytes(), bytes.size());
       },
       {ErrorCode::io, ErrorCode::invalid_dtype, ErrorCode::invalid_shape});
  fuzz({written([&](const std::string& path) {
          save_safetensors(path, {{"x", x}, {"n", n}}, {{"format", "pt"}});
        }),
        written([&](const std::string& path) {
          save_safetensors(path, {{"a", x.to(DType::bf16)}, {"b", zeros({0}, {.device = device})}});
        })},
       std::string_view("\0\1\377\"{}[]:,0123456789FBI_EM", 26),
       [&](const std::string& bytes) {
         Safetensors file = Safetensors::parse(std::as_bytes(std::span(bytes)));
         for (const Safetensors::Entry& entry : file.entries()) ASSERT_EQ(file.load(entry.name, device).nbytes(), entry.end - entry.begin);
       },
       {ErrorCode::io, ErrorCode::invalid_shape});
}

}}  // namespace clutch::testing
