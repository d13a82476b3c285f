// SPDX-License-Identifier: Apache-2.0
#include "tune/tune.hpp"
#include "ops/matmul/call.hpp"
#include "runtime/registry.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace clutch::testing { namespace {

namespace fs = std::filesystem;

class Tune : public ::testing::Test {
 protected:
  Tune() : folder_(fs::temp_directory_path() / fmt::format("clutch_tune_{}", ::getpid())) {
    fs::create_directories(folder_);
    tune::clear();
  }
  ~Tune() override {
    tune::clear();
    fs::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  detail::Settings settings(const std::string& autotune) const {
    return detail::parse_settings({{"CLUTCH_AUTOTUNE", autotune}, {"CLUTCH_TUNING_FILE", path("tuning.json")}});
  }
  fs::path folder_;
};

tune::Entry entry_of(const std::string& op, const std::string& choice) { return {"a device", "a driver", op, "small", choice, 1, 2}; }

TEST_F(Tune, FilesAreMergedAndChecked) {
  auto write = [&](const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; };
  auto file_of = [](const std::string& op, const std::string& choice) {
    return fmt::format(
        R"({{"clutch_tuning": 1, "entries": [{{"device": "a device", "driver": "a driver", "op": "{}", "shape_class": "small", "choice": "{}", "seconds": 1, "untuned_seconds": 2}}]}})",
        op, choice);
  };
  write("a.json", file_of("x", "one")), write("b.json", file_of("y", "two")), write("c.json", file_of("x", "three"));
  tune::load(path("a.json")), tune::load(path("b.json"));
  EXPECT_EQ(tune::entries(), (std::vector{entry_of("x", "one"), entry_of("y", "two")}));
  tune::load(path("c.json"));
  EXPECT_EQ(tune::entries(), (std::vector{entry_of("x", "three"), entry_of("y", "two")}));
  // Saving keeps what the file has besides.
  tune::clear();
  tune::load(path("a.json"));
  tune::save(path("b.json"));
  tune::clear();
  EXPECT_TRUE(tune::entries().empty());
  tune::load(path("b.json"));
  EXPECT_EQ(tune::entries(), (std::vector{entry_of("x", "one"), entry_of("y", "two")}));
  write("bad.json", "{\"clutch_tuning\": 1");
  write("other.json", "{\"clutch_tuning\": 2, \"entries\": []}");
  write("short.json", "{\"clutch_tuning\": 1, \"entries\": [{\"device\": \"x\"}]}");
  for (const char* name : {"bad.json", "other.json", "short.json"}) EXPECT_EQ(code_of([&] { tune::load(path(name)); }), ErrorCode::invalid_argument) << name;
  EXPECT_EQ(code_of([&] { tune::load(path("none.json")); }), ErrorCode::io);
  EXPECT_EQ(code_of([&] { tune::save(path("a.json/below.json")); }), ErrorCode::io);
  EXPECT_EQ(tune::entries().size(), 2u) << "what fails changes nothing";
}

TEST_F(Tune, FilesThatOthersMayWriteAreNotUsed) {
  const Device& device = test_devices().front();
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level <= LogLevel::warn) lines.emplace_back(text);
  });
  auto measured = [&] {
    auto ways = [&] { return std::vector{detail::TuneWay{"", [device] { return full({10}, 1, {.device = device}); }}}; };
    return detail::tuned_choice(detail::runtime_for(device), "test", "class", current_stream(device), ways);
  };
  // The settings' file, whose folder may be anyone's, and the cache's, whose folder is judged.
  const fs::path cache = folder_ / "cache";
  for (bool in_cache : {false, true}) {
    const fs::path file = in_cache ? cache / "tuning.json" : fs::path(path("tuning.json"));
    detail::SettingsOverride on(in_cache ? detail::parse_settings({{"CLUTCH_AUTOTUNE", "1"}, {"CLUTCH_CACHE_DIR", cache.string()}}) : settings("1"));
    const mode_t before = ::umask(0);
    tune::save(file.string());
    ::umask(before);
    for (const fs::path& of : in_cache ? std::vector{cache, file} : std::vector{file}) {
      struct stat right {};
      ASSERT_EQ(::stat(of.c_str(), &right), 0);
      EXPECT_EQ(right.st_mode & 0022, 0u) << of;
      for (unsigned mode : {0720u, 0702u}) {
        ASSERT_EQ(::chmod(of.c_str(), mode), 0);
        const auto written = fs::last_write_time(file);
        lines.clear();
        detail::forget_tuning();
        EXPECT_TRUE(tune::entries().empty());
        EXPECT_EQ(measured(), "");
        EXPECT_EQ(fs::last_write_time(file), written) << "what is not read is not written either";
        ASSERT_EQ(lines.size(), 1u);
        EXPECT_NE(lines[0].find(of.string() + " is not used: others may write to it"), std::string::npos) << lines[0];
        ASSERT_EQ(::chmod(of.c_str(), right.st_mode & 07777), 0);
      }
    }
  }
  set_log_sink({});
}

TEST_F(Tune, TheFastestSoundWayWinsAndIsOnDisk) {
  CLUTCH_EACH_DEVICE(device) {
    tune::clear();
    fs::remove(path("tuning.json"));
    detail::SettingsOverride on(settings("1"));
    detail::Runtime& runtime = detail::runtime_for(device);
    Stream stream = current_stream(device);
    int ran = 0;
    double now = 0;  // only the ways take time
    auto way = [&](const std::string& choice, double milliseconds, float value) {
      return detail::TuneWay{choice, [&ran, &now, device, milliseconds, value] {
                               ++ran, now += milliseconds / 1000;
                               return full({10}, value, {.device = device});
                             }};
    };
    auto choose = [&](const char* shape_class, const std::function<std::vector<detail::TuneWay>()>& ways) {
      return detail::tuned_choice(runtime, "test", shape_class, stream, ways, [&now] { return now; });
    };
    auto ways = [&] {
      detail::TuneWay failing = way("failing", 0, 1);
      failing.run = []() -> Tensor { throw Error(ErrorCode::not_supported, "test", "needs more, the device has less"); };
      detail::TuneWay library = way("library", 1, 1.00001f);
      library.exact = false;
      return std::vector{way("", 8, 1), way("slow", 12, 1), way("wrong", 0, 2), failing, way("fast", 4, 1), library};
    };
    EXPECT_EQ(choose("class", ways), "library");
    ASSERT_TRUE(fs::exists(path("tuning.json")));
    const int before = ran;
    EXPECT_EQ(choose("class", ways), "library");
    EXPECT_EQ(ran, before) << "what is known is not measured again";
    tune::clear();
    tune::load(path("tuning.json"));
    ASSERT_EQ(tune::entries().size(), 1u);
    EXPECT_EQ(tune::entries()[0].choice, "library");
    EXPECT_LT(tune::entries()[0].seconds, tune::entries()[0].untuned_seconds);
    // The op's own choice, where nothing is clearly faster.
    EXPECT_EQ(choose("other", [&] { return std::vector{way("", 2, 1), way("a hundredth less", 1.98, 1)}; }), "");
    EXPECT_EQ(tune::entries().size(), 2u);
    // Never while capturing.
    Graph graph;
    graph.capture_begin(stream);
    EXPECT_EQ(choose("captured", ways), "");
    graph.capture_end();
    EXPECT_EQ(tune::entries().size(), 2u);
    detail::SettingsOverride off(settings("0"));
    EXPECT_EQ(choose("not asked for", ways), "");
    EXPECT_EQ(tune::entries().size(), 2u);
  }
}

TEST_F(Tune, MatmulIsTunedWithEqualBits) {
  CLUTCH_EACH_DEVICE(device) {
    tune::clear();
    fs::remove(path("tuning.json"));
    Tensor a = randn({60, 70}, {.device = device, .seed = 1}), b = randn({70, 128}, {.device = device, .seed = 2});
    const std::vector<std::uint8_t> untuned = linalg::matmul(a, b).to_bytes();
    if (!last_plan().starts_with("matmul_panels")) continue;  // it has one way elsewhere
    detail::SettingsOverride on(settings("1"));
    EXPECT_EQ(linalg::matmul(a, b).to_bytes(), untuned);
    ASSERT_EQ(tune::entries().size(), 1u);
    EXPECT_EQ(tune::entries()[0].op, "linalg::matmul");
    EXPECT_EQ(linalg::matmul(a, b).to_bytes(), untuned);
    EXPECT_EQ(linalg::matmul(a.slice(0, 0, 59), b.slice(1, 0, 128)).to_bytes(), linalg::matmul(a, b).slice(0, 0, 59).to_bytes()) << "the same class";
    EXPECT_EQ(tune::entries().size(), 1u);
    // What a file says is taken.
    tune::Entry e = tune::entries()[0];
    std::ifstream in(path("tuning.json"));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::string key = "\"choice\": \"" + e.choice + "\"";
    ASSERT_NE(text.find(key), std::string::npos);
    text.replace(text.find(key), key.size(), "\"choice\": \"inside 8x3 k128 t2\"");
    std::ofstream(path("given.json")) << text;
    tune::clear();
    tune::load(path("given.json"));
    EXPECT_EQ(linalg::matmul(a, b).to_bytes(), untuned);
    EXPECT_NE(last_plan().find("B_AT=2"), std::string::npos) << last_plan();
    EXPECT_NE(last_plan().find("ROWS=8"), std::string::npos) << last_plan();
  }
}

/// A file that cannot be used costs an op its tuning, not its result; who reads it by name is told.
TEST_F(Tune, FilesThatAreOfNoUseAreLoggedFallbacks) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = randn({60, 70}, {.device = device, .seed = 1}), b = randn({70, 128}, {.device = device, .seed = 2});
    const std::vector<std::uint8_t> want = linalg::matmul(a, b).to_bytes();
    if (!last_plan().starts_with("matmul_panels")) continue;  // others are not tuned
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
    fs::create_directories(path("folder"));
    std::ofstream(path("damaged.json")) << "{\"clutch_tuning\": 1, \"entries\": [{\"device\": 3}]}";
    std::ofstream(path("cut.json")) << "{\"clutch_tun";
    std::ofstream(path("future.json")) << "{\"clutch_tuning\": 2, \"entries\": []}";
    for (const std::string name : {"folder", "damaged.json", "cut.json", "future.json", "cut.json/below.json"})
      for (const char* autotune : {"0", "1"}) {
        SCOPED_TRACE(name + " " + autotune);
        auto given = detail::parse_settings({{"CLUTCH_AUTOTUNE", autotune}, {"CLUTCH_TUNING_FILE", path(name)}});
        detail::SettingsOverride on(given);
        detail::forget_tuning();
        const std::uint64_t before = fallback_count("untuned");
        EXPECT_EQ(linalg::matmul(a, b).to_bytes(), want);
        const bool none = name.ends_with("below.json");  // is not there, and cannot be made
        EXPECT_EQ(fallback_count("untuned") > before, !none);
        const bool told = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(path(name)) != std::string::npos; });
        EXPECT_EQ(told, !none || autotune[0] == '1');
        // What was measured is known all the same.
        EXPECT_EQ(tune::entries().size(), autotune[0] == '1' ? 1u : 0u);
        EXPECT_EQ(linalg::matmul(a, b).to_bytes(), want);
        if (none) continue;
        EXPECT_EQ(code_of([&] { tune::load(path(name)); }), name == "folder" ? ErrorCode::io : ErrorCode::invalid_argument);
        given = detail::parse_settings({{"CLUTCH_STRICT", "untuned"}, {"CLUTCH_TUNING_FILE", path(name)}});
        detail::SettingsOverride strict(given);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(code_of([&] { linalg::matmul(a, b); }), ErrorCode::strict) << "not once alone";
      }
    set_log_sink({});
    EXPECT_TRUE(fs::is_directory(path("folder")));
    EXPECT_EQ(fs::file_size(path("cut.json")), 12u) << "nothing is written over what could not be read";
  }
}

/// The library that a tuning file chooses is chosen in captures, too.
TEST_F(Tune, ChoicesDoNotDependOnCapturing) {
  CLUTCH_EACH_DEVICE(device) {
    detail::Runtime& runtime = detail::runtime_for(device);
    Tensor a = randn({64, 64}, {.device = device, .seed = 1}), b = randn({64, 32}, {.device = device, .seed = 2});
    const linalg::MatrixOperand operand(b);
    const ExprFunction none;
    detail::MatmulCall call = detail::check_matmul(nullptr, a, operand, none, {}, {});
    call.sizes = {64, 32};
    const detail::MatmulProblem problem{.a = DType::f32, .b = DType::f32, .output = DType::f32};
    if (!detail::fits_clblast(device.traits(), problem).empty()) continue;  // a build without it
    const detail::DeviceRecord& d = runtime.device();
    std::ofstream(path("given.json")) << fmt::format(
        R"({{"clutch_tuning": 1, "entries": [{{"device": "{}", "driver": "{} {}", "op": "linalg::matmul", "shape_class": "f32 f32 m2^6 n2^5 k2^6 b2^0 unit whole", "choice": "clblast", "seconds": 1, "untuned_seconds": 2}}]}})",
        d.facts.name, d.facts.platform_name, d.driver_version);
    tune::load(path("given.json"));
    Stream stream(device);
    EXPECT_TRUE(detail::library_is_faster(call, problem, stream));
    Graph graph;
    graph.capture_begin(stream);
    EXPECT_TRUE(detail::library_is_faster(call, problem, stream));
    graph.capture_abandon();
    // A choice is for a class of shapes. Operands that CLBlast cannot take go by the library's own kernels.
    const Tensor repeated = randn({1, 32}, {.device = device, .seed = 2}).expand({64, 32});
    const linalg::MatrixOperand of_repeated(repeated);
    call.b = &of_repeated;
    EXPECT_FALSE(detail::library_is_faster(call, problem, stream));
    const Tensor transposed = b.mT().contiguous().mT();
    const linalg::MatrixOperand of_transposed(transposed);
    call.b = &of_transposed;
    EXPECT_TRUE(detail::library_is_faster(call, problem, stream)) << "columns one after another";
  }
}

TEST_F(Tune, SparseProductsAreTunedWithEqualBits) {
  CLUTCH_EACH_DEVICE(device) {
    tune::clear();
    fs::remove(path("tuning.json"));
    const sparse::SemiStructured w = sparse::compress(sparse::prune_2_4(randn({50, 72}, {.device = device, .seed = 1})));
    Tensor x = randn({130, 72}, {.device = device, .seed = 2});
    const std::vector<std::uint8_t> untuned = sparse::matmul_transposed(x, w).to_bytes();
    if (!last_plan().starts_with("matmul_sparse_panels")) continue;  // it has one way elsewhere
    detail::SettingsOverride on(settings("1"));
    EXPECT_EQ(sparse::matmul_transposed(x, w).to_bytes(), untuned);
    ASSERT_EQ(tune::entries().size(), 1u);
    EXPECT_EQ(tune::entries()[0].op, "sparse::matmul");
    EXPECT_EQ(sparse::matmul_transposed(x, w).to_bytes(), untuned);
    EXPECT_EQ(tune::entries().size(), 1u);
  }
}

}}  // namespace clutch::testing
