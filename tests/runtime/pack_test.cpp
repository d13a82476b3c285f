// SPDX-License-Identifier: Apache-2.0
// Kernel packs on devices: recorded by child processes (runtime/pack_child.cpp), looked up by these and by new contexts of this process.
#include <clutch/version.hpp>

#include "layer/fault_layer.hpp"
#include "program/binary_check.hpp"
#include "program/pack_file.hpp"
#include "runtime/registry.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"
#include "support/mutation.hpp"
#include "support/system.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <thread>

namespace clutch::testing { namespace {

namespace fs = std::filesystem;
using detail::PackContents, detail::PackFile, detail::PackProgram;

/// A folder of the test's own.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = fs::temp_directory_path() / ("clutch-pack-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// An empty folder.
  std::string empty(const std::string& name) const {
    fs::remove_all(path_ / name);
    fs::create_directories(path_ / name);
    return file(name);
  }

 private:
  fs::path path_;
};

/// Output of pack_child. `environment`: further variables, which the words before are set, too.
std::string child(const std::string& environment, const std::string& mode) {
  const char* program = std::getenv("PACK_CHILD");  // set by ctest
  if (!program) throw std::runtime_error("PACK_CHILD must name the program pack_child");
  FILE* pipe =
      ::popen(("env -u OPENCL_LAYERS CLUTCH_SELF_TEST=cached CLUTCH_POISON_SCRATCH=0 " + environment + " " + program + " " + mode + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (pipe && std::fgets(buffer.data(), buffer.size(), pipe)) text += buffer.data();
  const int status = pipe ? ::pclose(pipe) : -1;
  EXPECT_EQ(status == 0, !mode.starts_with("killed")) << text;
  return text;
}

/// The number behind a word of a child's output; -1 if the word is not there.
double number_after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + word.size() + 1, nullptr);
}

PackContents read(const std::string& file) {
  const PackFile::Opened opened = PackFile::open(file);
  EXPECT_TRUE(opened.file) << opened.problem;
  std::string problem;
  PackContents all = opened.file ? opened.file->contents(problem) : PackContents{};
  EXPECT_EQ(problem, "");
  return all;
}

/// The pack of a recording, as clutch-pack build makes it; `edit` changes it before it is written.
std::string make_pack(const Folder& folder, const std::string& recording, const std::function<void(PackContents&)>& edit = {}) {
  PackContents pack = read(recording);
  pack.recording = false;
  for (PackProgram& p : pack.programs) p.source.clear();
  if (edit) edit(pack);
  const std::string file = folder.file("test.clutchpack");
  EXPECT_EQ(write_pack(file, std::move(pack)), "");
  return file;
}

/// The recording of the ops of pack_child, or of a kernel of its own; made once by this process, since it builds what it records.
const std::string& recording_of(const std::string& mode) {
  struct Recordings {
    Folder folder;
    std::map<std::string, std::string> files;
  };
  static auto* all = new std::unique_ptr<Recordings>;
  if (!*all) {
    *all = std::make_unique<Recordings>();
    std::atexit([] { all->reset(); });
  }
  auto [at, added] = (*all)->files.try_emplace(mode);
  if (added) {
    at->second = (*all)->folder.file("recording" + std::to_string((*all)->files.size()));
    const std::string said =
        child("CLUTCH_CACHE=off CLUTCH_PACK=off CLUTCH_PACK_RECORD=" + at->second + " POCL_CACHE_DIR=" + (*all)->folder.empty("pocl"), mode);
    EXPECT_GE(number_after(said, "built"), 1) << said;
  }
  return at->second;
}

/// The environment of a process that finds neither a compiler's programs nor anything that was built before.
std::string bare(const Folder& folder) { return "PATH= CLUTCH_CACHE=on CLUTCH_CACHE_DIR=" + folder.empty("cache") + " POCL_CACHE_DIR=" + folder.empty("pocl"); }

bool is_linking_pocl() {
  const detail::DeviceRecord& record = *default_device().record();
  return detail::links_at_launch(record.facts.platform_name, record.platform_version, record.facts.type);
}

/// One op in a context that has no programs yet, with packs of the setting; the lines that it logs as warnings.
std::vector<std::string> run_with(const std::string& packs) {
  auto settings = detail::the_settings();
  settings.pack.value = packs;
  settings.cache.value = "off";
  const detail::SettingsOverride here(settings);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level <= LogLevel::warn) lines.emplace_back(text);
  });
  ForeignContext context(default_device());
  context.run([&](const Stream&) {
    const Tensor t = full({1000}, 2, {.device = default_device()});
    EXPECT_EQ(addcdiv(t, t, t).to_host<float>()[999], 3);
    return "";
  });
  set_log_sink({});
  return lines;
}

/// Counts what `run_with` took from where.
struct Took {
  BuildCounters before = build_counters();
  std::uint64_t built() const { return build_counters().built - before.built; }
  std::uint64_t packed() const { return build_counters().packed - before.packed; }
};

/// Nothing came from the pack, and one line says why.
void expect_refused(const std::string& packs, const std::string& why) {
  const Took took;
  const std::vector<std::string> lines = run_with(packs);
  EXPECT_EQ(took.packed(), 0u);
  EXPECT_EQ(took.built(), 2u);
  ASSERT_EQ(lines.size(), 1u) << why;
  EXPECT_NE(lines[0].find(why), std::string::npos) << lines[0];
}

TEST(Packs, AProcessWithoutACompilerGetsItsFirstResultFromThePack) {
  const Folder folder;
  const std::string pack = make_pack(folder, recording_of("ops"));
  double first = 1e9, all = 1e9, processors = 1e9;
  for (int run = 0; run < 5; ++run) {
    const std::string said = child(bare(folder) + " CLUTCH_PACK=" + pack, "ops");
    EXPECT_NE(said.find("results 3 64 0.015625"), std::string::npos) << said;
    EXPECT_EQ(number_after(said, "built"), 0) << said;
    EXPECT_EQ(number_after(said, "loaded"), 0) << said;
    EXPECT_EQ(number_after(said, "packed"), static_cast<double>(read(pack).programs.size())) << said;
    EXPECT_EQ(number_after(said, "children"), 0) << said;
    first = std::min(first, number_after(said, "first") - number_after(said, "driver"));
    all = std::min(all, number_after(said, "all") - number_after(said, "driver"));
    processors = std::min(processors, number_after(said, "of processors"));
  }
  std::printf("first result %.1f ms (%.1f ms of processors), three ops %.1f ms after the driver's own start\n", first, processors, all);
  if (is_linking_pocl()) {
#ifndef __SANITIZE_ADDRESS__  // which takes several times as long
    EXPECT_LE(processors, 60);
#endif
    const std::string control = child("CLUTCH_CACHE=off CLUTCH_PACK=off POCL_CACHE_DIR=" + folder.empty("pocl"), "ops");
    EXPECT_GT(number_after(control, "children"), 0) << "the count sees a linker that runs: " << control;
  }
}

TEST(Packs, WithoutALinkerALaunchOfAnotherSizeIsAnError) {
  if (skip_without(default_device(), "PoCL", is_linking_pocl())) return;
  const Folder folder;
  const std::string pack = make_pack(folder, recording_of("own 4"));
  EXPECT_NE(child(bare(folder) + " CLUTCH_PACK=" + pack, "own 4").find("own 11\nbuilt 0 "), std::string::npos);
  const std::string refused = child(bare(folder) + " CLUTCH_PACK=" + pack, "own 2");
  EXPECT_NE(refused.find("Error build_failure"), std::string::npos) << refused;
  EXPECT_NE(refused.find("must find the linker `ld` in PATH to compile own for 2 x 1 x 1 work-items"), std::string::npos) << refused;
  // With one the driver compiles it, which is told.
  const std::string compiled = child("CLUTCH_LOG=info CLUTCH_CACHE=off CLUTCH_PACK=" + pack + " POCL_CACHE_DIR=" + folder.empty("pocl"), "own 2");
  EXPECT_NE(compiled.find("own 9\nbuilt 0 "), std::string::npos) << compiled;
  EXPECT_NE(compiled.find("was not recorded with 2 x 1 x 1 work-items"), std::string::npos) << compiled;
}

/// What self-tests found before is in the cache, but a machine without a compiler must find the self-tests' programs in the pack.
TEST(Packs, SelfTestsAreRecordedThoughTheirResultsAreKept) {
  const Folder folder;
  const std::string recording = folder.file("recording"), cached = "CLUTCH_CACHE=on CLUTCH_CACHE_DIR=" + folder.empty("kept") + " CLUTCH_PACK=off ";
  for (const std::string& more : {std::string(), "CLUTCH_PACK_RECORD=" + recording}) child(cached + more + " POCL_CACHE_DIR=" + folder.empty("pocl"), "ops");
  const PackContents all = read(recording);
  for (const char* entry : {"self_test_rounding", "self_test_args"})
    EXPECT_TRUE(std::any_of(all.programs.begin(), all.programs.end(), [&](const PackProgram& p) { return p.entry == entry && !p.binary.empty(); })) << entry;
  const std::string said = child(bare(folder) + " CLUTCH_PACK=" + make_pack(folder, recording), "ops");
  EXPECT_NE(said.find("results 3 64 0.015625\n"), std::string::npos) << said;
  EXPECT_NE(said.find("built 0 loaded 0 "), std::string::npos) << said;
}

/// Local sizes that the driver chooses: a pack must have them, so clutch chooses.
TEST(Packs, ALocalSizeThatNobodyChoseIsInThePack) {
  const Folder folder;
  const std::string pack = make_pack(folder, recording_of("own 0"));
  const std::string said = child(bare(folder) + " CLUTCH_PACK=" + pack, "own 0");
  EXPECT_NE(said.find("\nbuilt 0 "), std::string::npos) << said;
  EXPECT_EQ(said.find("Error"), std::string::npos) << said;
}

/// The cache has the program as an earlier process launched it; the pack has more local sizes.
TEST(Packs, ThePackIsTakenWhereTheCacheHasFewerLocalSizes) {
  if (skip_without(default_device(), "PoCL", is_linking_pocl())) return;
  const Folder folder;
  const std::string recording = folder.file("recording"), pocl = " POCL_CACHE_DIR=" + folder.empty("pocl");
  const std::string records = "CLUTCH_CACHE=off CLUTCH_PACK=off CLUTCH_PACK_RECORD=" + recording + pocl;
  for (const char* mode : {"own 2", "own 4"}) child(records, mode);
  const std::string cache = " CLUTCH_CACHE=on CLUTCH_CACHE_DIR=" + folder.empty("kept");
  child("CLUTCH_PACK=off POCL_CACHE_DIR=" + folder.empty("other") + cache, "own 2");
  const std::string pack = " CLUTCH_PACK=" + make_pack(folder, recording), bare = "PATH= POCL_CACHE_DIR=";
  for (const char* mode : {"own 4", "own 2"}) {
    std::string with_both = bare;
    with_both.append(folder.empty("pocl")).append(cache).append(pack);
    const std::string said = child(with_both, mode);
    EXPECT_NE(said.find("\nbuilt 0 "), std::string::npos) << said;
    EXPECT_EQ(said.find("Error"), std::string::npos) << said;
  }
}

/// The linker as PoCL's LLVM looks for it; a kernel of PoCL's own cache needs none.
TEST(Packs, ALinkerIsFoundAsTheDriverFindsIt) {
  if (skip_without(default_device(), "PoCL", is_linking_pocl())) return;
  const Folder folder;
  const std::string start = " CLUTCH_CACHE=off CLUTCH_PACK=off CLUTCH_SELF_TEST=off POCL_CACHE_DIR=", warm = folder.empty("warm");
  EXPECT_NE(child(start + folder.empty("pocl") + " /usr/bin/env -u PATH", "own 4").find("Error build_failure"), std::string::npos)
      << "LLVM finds nothing without PATH";
  fs::create_directories(folder.file("bin/ld"));
  EXPECT_NE(child("PATH=" + folder.file("bin") + start + folder.empty("pocl"), "own 4").find("Error build_failure"), std::string::npos)
      << "a folder is no linker";
#if defined(__x86_64__)
  fs::create_symlink("/usr/bin/ld", folder.file("bin/x86_64-pc-linux-gnu-ld"));
  EXPECT_NE(child("PATH=" + folder.file("bin") + start + folder.empty("pocl"), "own 4").find("own 11"), std::string::npos);
#endif
  child(start + warm, "own 4");
  EXPECT_NE(child("PATH=" + start + warm, "own 4").find("Error build_failure"), std::string::npos);
  EXPECT_NE(child("PATH= CLUTCH_LINKER=assume" + start + warm, "own 4").find("own 11"), std::string::npos);
}

TEST(Packs, PacksThatDoNotFitAreToldAndNotUsed) {
  const Folder folder;
  const std::string& recording = recording_of("ops");
  default_device().traits();  // self-tests build programs of their own
  const Took took;
  EXPECT_TRUE(run_with(make_pack(folder, recording)).empty());
  EXPECT_EQ(took.packed(), 2u);
  EXPECT_EQ(took.built(), 0u);
  const std::string file = folder.file("test.clutchpack");
  auto edited = [&](const std::function<void(PackContents&)>& edit, const std::string& why) {
    const std::string made = make_pack(folder, recording, edit),
                      name = folder.file("edited" + std::to_string(why.size()));  // a line is logged once for each name
    fs::rename(made, name);
    expect_refused(name, why);
  };
  edited([](PackContents& p) { p.targets[0].isa = "ptx-sm_90"; }, "is not used: it is for ptx-sm_90, and device");
  edited([](PackContents& p) { p.targets[0].driver = "PoCL 9"; }, "is not used: it is for the driver 'PoCL 9', and device");
  edited([](PackContents& p) { p.version = "0.1.9"; }, "is not used: it is of clutch 0.1.9, and this is " CLUTCH_VERSION);
  if (is_linking_pocl()) edited([](PackContents& p) { p.targets[0].features = "avx2 abacus"; }, "is not used: it needs a processor with abacus");
  edited([](PackContents& p) { p.recording = true; }, "is a recording, of which clutch-pack build makes packs");
  expect_refused(folder.file("absent"), "absent is not there");
  std::ofstream(folder.file("text")) << "not a pack";
  expect_refused(folder.file("text"), "must be a kernel pack, which begins with CLUTCHPK");
  make_pack(folder, recording);
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  expect_refused(file, "is not used: others may write to it");
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    expect_refused(file, "is not used: it belongs to user 65534");
    ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  }
  // In a list the first that fits is used, and the others are no warning.
  const std::string other = folder.file("other");
  fs::rename(make_pack(folder, recording, [](PackContents& p) { p.targets[0].isa = "ptx-sm_90"; }), other);
  make_pack(folder, recording);
  EXPECT_TRUE(run_with(other + ":" + file).empty());
}

/// PoCL refuses programs of another of its devices, so these have names of their own.
TEST(Packs, EachDeviceOfPoclHasItsIsa) {
  if (skip_without(default_device(), "PoCL", is_linking_pocl())) return;
  const Folder folder;
  const std::string pack = make_pack(folder, recording_of("ops"));
  const std::string said = child("POCL_DEVICES=basic CLUTCH_CACHE=off CLUTCH_PACK=" + pack, "ops");
  EXPECT_NE(said.find(" packed 0 "), std::string::npos) << said;
  EXPECT_NE(said.find("is not used: it is for pocl-"), std::string::npos) << said;
  EXPECT_EQ(said.find("refuses"), std::string::npos) << said;
}

TEST(Packs, ADamagedProgramIsToldAndBuilt) {
  const Folder folder;
  default_device().traits();
  const std::string file = make_pack(folder, recording_of("ops"));
  const auto damage = [&](std::size_t from_end) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(fs::file_size(file) - from_end);
    f.seekg(at);
    const char c = static_cast<char>(f.get());
    f.seekp(at);
    f.put(static_cast<char>(c ^ 1));
  };
  std::size_t blobs = 0;
  for (const PackProgram& p : read(file).programs) blobs += p.binary.size();
  for (std::size_t at = 1000; at < blobs; at += 5000) damage(at);
  const Took took;
  const std::vector<std::string> lines = run_with(file);
  EXPECT_EQ(took.packed(), 0u);
  EXPECT_EQ(took.built(), 2u);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("has another digest than its index; it is built from source"), std::string::npos) << lines[0];
}

TEST(Packs, ABinaryWithoutSenseIsToldAndBuilt) {
  if (skip_without(default_device(), "PoCL", is_linking_pocl())) return;
  const Folder folder;
  default_device().traits();
  const std::string cut = make_pack(folder, recording_of("ops"), [](PackContents& pack) {
    for (PackProgram& p : pack.programs) p.binary.resize(p.binary.size() / 2);
  });
  const Took took;
  const std::vector<std::string> lines = run_with(cut);
  EXPECT_EQ(took.packed(), 0u);
  EXPECT_EQ(took.built(), 2u);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("its lengths do not fit"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("it is built from source"), std::string::npos) << lines[0];
}

TEST(Packs, ThreadsLoadAProgramOnce) {
  const Folder folder;
  default_device().traits();
  auto settings = detail::the_settings();
  settings.pack.value = make_pack(folder, recording_of("ops"));
  settings.cache.value = "off";
  const detail::SettingsOverride here(settings);
  const Took took;
  ForeignContext context(default_device());
  context.run([&](const Stream& stream) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const StreamGuard guard(stream);
        const Tensor x = full({1000}, 2, {.device = default_device()});
        EXPECT_EQ(addcdiv(x, x, x).to_host<float>()[999], 3);
      });
    for (std::thread& t : threads) t.join();
    return "";
  });
  EXPECT_EQ(took.packed(), 2u);
  EXPECT_EQ(took.built(), 0u);
}

TEST(Packs, ProcessesRecordIntoOneFile) {
  const Folder folder;
  const std::string file = folder.file("recording");
  const std::string environment = "CLUTCH_CACHE=off CLUTCH_PACK=off CLUTCH_PACK_RECORD=" + file + " POCL_CACHE_DIR=" + folder.empty("pocl");
  for (const char* mode : {"own 1", "own 4", "own 8"}) child(environment, mode);
  std::vector<std::thread> children;
  for (const char* mode : {"unsynchronized", "own 8", "ops", "unsynchronized"}) children.emplace_back([&environment, mode] { child(environment, mode); });
  for (std::thread& c : children) c.join();
  const PackContents all = read(file);
  EXPECT_TRUE(all.recording);
  ASSERT_EQ(all.targets.size(), 1u);
  const auto own = std::find_if(all.programs.begin(), all.programs.end(), [](const PackProgram& p) { return p.entry == "own"; });
  ASSERT_NE(own, all.programs.end());
  EXPECT_NE(own->source.find("7 + get_local_size(0)"), std::string::npos);
  EXPECT_FALSE(own->binary.empty());
  for (const std::uint32_t local : {1u, 4u, 8u})
    EXPECT_NE(std::find(own->launches.begin(), own->launches.end(), detail::LocalSize{.x = local, .y = 1, .z = 1}), own->launches.end()) << local;
  for (const char* entry : {"addc_contiguous", "fill_contiguous"})
    EXPECT_TRUE(std::any_of(all.programs.begin(), all.programs.end(), [&](const PackProgram& p) { return p.entry == entry; })) << entry;
  // What is no recording stays as it is.
  std::ofstream(folder.file("mine")) << "mine";
  const std::string said = child("CLUTCH_CACHE=off CLUTCH_PACK_RECORD=" + folder.file("mine"), "own 1");
  EXPECT_NE(said.find("nothing is recorded: "), std::string::npos) << said;
  EXPECT_EQ(fs::file_size(folder.file("mine")), 4u);
}

/// A process that is killed leaves what it recorded at first.
TEST(Packs, AKilledProcessLeavesARecording) {
  const Folder folder;
  const std::string file = folder.file("recording");
  const std::string environment = "CLUTCH_CACHE=off CLUTCH_PACK=off CLUTCH_PACK_RECORD=" + file + " POCL_CACHE_DIR=" + folder.empty("pocl");
  const std::string said = child(environment, "killed 0");
  EXPECT_EQ(said.find("built"), std::string::npos) << "it is killed: " << said;
  const PackContents all = read(file);
  EXPECT_TRUE(std::any_of(all.programs.begin(), all.programs.end(), [](const PackProgram& p) { return !p.binary.empty(); }));
  // What it launches within five seconds more is left once they have passed.
  child(environment, "killed 6");
  const PackContents later = read(file);
  EXPECT_TRUE(std::any_of(later.programs.begin(), later.programs.end(), [](const PackProgram& p) { return p.entry == "own" && !p.binary.empty(); }));
}

/// Whoever holds the lock of the file may be stopped.
TEST(Packs, AHeldLockDelaysARecordingProcessByItsLimit) {
  const Folder folder;
  const std::string file = folder.file("recording");
  std::string said;
  {
    const detail::FileLock held(file);
    ASSERT_EQ(held.problem(), "");
    const auto begin = std::chrono::steady_clock::now();
    said = child("CLUTCH_CACHE=off CLUTCH_PACK=off CLUTCH_PACK_RECORD=" + file + " POCL_CACHE_DIR=" + folder.empty("pocl"), "own 4");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  }
  EXPECT_NE(said.find("another process has held it"), std::string::npos) << said;
  EXPECT_NE(said.find("built"), std::string::npos) << said;
}

/// With the layer whose calls fail: a driver that refuses what a pack has.
TEST(PackFaults, ARefusedProgramIsToldAndBuilt) {
  const fault::Controls* layer = fault::loaded();
  ASSERT_NE(layer, nullptr) << "OPENCL_LAYERS must name the layer";
  const Folder folder;
  default_device().traits();
  for (const char* call : {"clCreateProgramWithBinary", "clBuildProgram", "clCreateKernel"}) {
    const std::string file = make_pack(folder, recording_of("ops")), name = folder.file(call);
    fs::rename(file, name);
    layer->reset();
    layer->fail_call(call, 1, CL_OUT_OF_HOST_MEMORY);
    const Took took;
    const std::vector<std::string> lines = run_with(name);
    EXPECT_STREQ(layer->failed(), call);
    layer->reset();
    EXPECT_EQ(took.packed(), 1u) << call << ": the other program";
    EXPECT_EQ(took.built(), 1u) << call;
    ASSERT_EQ(lines.size(), 1u) << call;
    EXPECT_NE(lines[0].find("it is built from source"), std::string::npos) << lines[0];
  }
}

}}  // namespace clutch::testing
