// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include "opencl_c_text.hpp"
#include "program/sha256.hpp"
#include "support/private_folder.hpp"
#include "support/system.hpp"
#include "translate.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace clutch_threads {
namespace {

namespace system = clutch::detail;

/// A program's binary: this, the digest of what follows, and a shared library. One that was cut would end the process that loads it.
constexpr std::string_view kMagic = "clutch threads 1\n";
constexpr std::size_t kDigest = 64, kHead = kMagic.size() + kDigest;
std::string with_head(const std::string& library) { return std::string(kMagic) + system::to_hex(system::sha256(library)) + library; }

/// Names that OpenCL C's preprocessor knows.
constexpr std::string_view kNames = R"(
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1p-1022
#define DBL_EPSILON 0x1p-52
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define M_PI 3.14159265358979323846
#define M_PI_F 3.14159274101257f
#line 1
)";

/// A folder for one build, removed with what is in it.
class Folder {
 public:
  Folder() : path_(system::make_temporary_folder()) {
    if (path_.empty()) throw BuildError("a folder for temporary files could not be made");
  }
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw BuildError("a temporary file could not be written: " + file.string());
}
std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Runs the compiler; its messages are the text of the error.
void compile(const std::vector<std::string>& arguments) {
  const system::ProgramRun run = system::run_program(compiler(), arguments, system::Keep::errors, std::chrono::minutes(10));
  if (run.end == system::ProgramRun::End::exited && run.status == 0) return;
  throw BuildError(run.end == system::ProgramRun::End::not_started ? compiler() + " could not be started: " + run.problem
                   : run.end == system::ProgramRun::End::exited    ? run.kept
                                                                   : compiler() + " was ended from outside: " + run.kept);
}

/// -D and -I of clBuildProgram's options. Of the others what this compiler does already.
std::vector<std::string> definitions(std::string_view options) {
  std::vector<std::string> kept;
  std::stringstream words{std::string(options)};
  for (std::string word; words >> word;) {
    if (!word.starts_with("-D") && !word.starts_with("-I") && !word.starts_with("-U")) continue;
    kept.push_back(word);
    if (word.size() == 2 && words >> word) kept.back() += word;
  }
  return kept;
}

}  // namespace

const std::string& compiler() {
  static const std::string& found = *new std::string([] {
    // A name with a folder is looked for in that alone.
    if (const char* named = std::getenv("THREADS_PLUGIN_CXX"); named && *named) {
      std::error_code none;
      if (std::string_view(named).find('/') == std::string_view::npos) return system::in_search_path(named).string();
      return std::filesystem::exists(named, none) ? std::string(named) : std::string();
    }
    for (const char* name : {"c++", "g++", "clang++"})
      if (std::string file = system::in_search_path(name).string(); !file.empty()) return file;
    return std::string();
  }());
  return found;
}

std::unique_ptr<Program> Program::build(std::string_view text, std::string_view options) {
  if (compiler().empty()) {
    const char* named = std::getenv("THREADS_PLUGIN_CXX");
    throw BuildError(named && *named ? std::string("THREADS_PLUGIN_CXX must name a C++ compiler, got '") + named + "', which is not there"
                                     : "kernels need a C++ compiler on this device; PATH has neither c++, g++ nor clang++, and THREADS_PLUGIN_CXX names none");
  }
  Folder folder;
  const auto source = folder / "program.cl", preprocessed = folder / "program.i", translated = folder / "program.cpp", library = folder / "program.so";
  write(source, std::string(kNames) + std::string(text));
  std::vector<std::string> arguments{"-E",
                                     "-x",
                                     "c",
                                     "-undef",
                                     "-nostdinc",
                                     "-w",
                                     "-D__OPENCL_VERSION__=120",
                                     "-D__OPENCL_C_VERSION__=120",
                                     "-D__ENDIAN_LITTLE__=1",
                                     "-DCL_VERSION_1_0=100",
                                     "-DCL_VERSION_1_1=110",
                                     "-DCL_VERSION_1_2=120",
                                     "-Dcl_khr_fp64=1"};
  for (std::string& one : definitions(options)) arguments.push_back(std::move(one));
  arguments.insert(arguments.end(), {source.string(), "-o", preprocessed.string()});
  compile(arguments);
  std::string program(kOpenClC);
  try {
    program += translate(read(preprocessed));
  } catch (const std::runtime_error& error) {
    throw BuildError(error.what());
  }
  write(translated, program);
  if (const char* keep = std::getenv("THREADS_PLUGIN_KEEP"); keep && *keep) {
    std::error_code none;
    std::filesystem::copy(translated, std::filesystem::path(keep) / (folder / "").parent_path().filename().concat(".cpp"), none);
  }
  compile({
    "-x", "c++", "-std=gnu++20", "-O2",
#if defined(__x86_64__)
        "-march=native",
#elif defined(__aarch64__)
        "-mcpu=native",
#endif
        // A product and a sum are two roundings unless the text says fma. Memory is read by other types than it was written by.
        "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fPIC",
        "-shared", "-w", "-fpermissive", "-Wno-psabi", "-fno-diagnostics-show-caret", translated.string(), "-o", library.string(), "-lm"
  });
  return std::unique_ptr<Program>(new Program(with_head(read(library))));
}

std::unique_ptr<Program> Program::load(std::string_view binary) {
  if (!binary.starts_with(kMagic) || binary.size() < kHead) throw NotAProgram("the binary must be one of this device, got other bytes");
  if (binary.substr(kMagic.size(), kDigest) != system::to_hex(system::sha256(binary.substr(kHead))))
    throw NotAProgram("the binary must be whole, got one whose digest is another");
  return std::unique_ptr<Program>(new Program(std::string(binary)));
}

Program::Program(std::string binary) : binary_(std::move(binary)) {
  Folder folder;
  const auto file = folder / "program.so";
  write(file, std::string_view(binary_).substr(kHead));
  std::string why;
  library_ = system::load_library(file.string().c_str(), why);
  if (!library_) throw NotAProgram("the binary must be a library of this machine, got: " + why);
  set_item_ = reinterpret_cast<void (*)(const Item*)>(system::find_symbol(library_, "clutch_set_item"));
  if (!set_item_) throw NotAProgram("the binary must be a program of this device, got a library without clutch_set_item");
}

const KernelFacts* Program::kernel(const std::string& name) const {
  return static_cast<const KernelFacts*>(system::find_symbol(library_, ("clutch_kernel_" + name).c_str()));
}

}  // namespace clutch_threads
