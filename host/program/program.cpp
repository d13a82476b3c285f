// SPDX-License-Identifier: Apache-2.0
#include "program/program.hpp"

#include <clutch/version.hpp>

#include "program/binary_check.hpp"
#include "program/disk_cache.hpp"
#include "program/kernel_table.hpp"
#include "program/pack_record.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace clutch { inline namespace v0 {
namespace detail {

Interned::Interned(std::string_view text) {
  struct Texts {
    std::mutex mutex;
    std::set<std::string, std::less<>> all;
  };
  static auto* texts = new Texts;
  std::lock_guard lock(texts->mutex);
  auto found = texts->all.find(text);
  text_ = &*(found != texts->all.end() ? found : texts->all.emplace(text).first);
}

const std::string& Interned::str() const noexcept {
  static const auto* none = new std::string;
  return text_ ? *text_ : *none;
}

namespace {

std::atomic<std::uint64_t> g_built{0}, g_loaded{0}, g_saved{0}, g_packed{0};

struct BuildLogs {
  static constexpr std::size_t kMost = 256;
  std::mutex mutex;
  std::vector<std::string> lines;
};
BuildLogs& logs_so_far() {
  static auto* all = new BuildLogs;
  return *all;
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

ClProgram load_binary(Runtime& runtime, std::string_view binary, const std::string& options) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  std::size_t size = binary.size();
  cl_int status = CL_SUCCESS, binary_status = CL_SUCCESS;
  cl_device_id device = runtime.device().id;
  ClProgram program(clCreateProgramWithBinary(runtime.context(), 1, &device, &size, &bytes, &binary_status, &status));
  if (status != CL_SUCCESS || binary_status != CL_SUCCESS) return {};
  if (clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr) != CL_SUCCESS) return {};
  return program;
}

/// A program of SPIR-V. Errors: not_supported if the device takes none.
ClProgram program_of_spirv(Runtime& runtime, const ProgramRequest& request) {
  const DeviceRecord& device = runtime.device();
  cl_int status = CL_SUCCESS;
  const bool core = device.platform_version >= "OpenCL 2.1", extension = device.has_extension("cl_khr_il_program");
  // An old driver does not know the query.
  std::size_t size = 0;
  const bool asked = clGetDeviceInfo(device.id, CL_DEVICE_IL_VERSION, 0, nullptr, &size) == CL_SUCCESS;
  const std::string takes = asked ? device_text(device.id, CL_DEVICE_IL_VERSION) : std::string();
  if ((!core && !extension) || takes.find("SPIR-V") == std::string::npos)
    throw Error(ErrorCode::not_supported, request.entry,
                fmt::format("device {} ({}) must take SPIR-V, got '{}' as the languages that it takes", device.index, device.facts.name, takes));
  using Create = cl_program(CL_API_CALL*)(cl_context, const void*, std::size_t, cl_int*);
  Create create = clCreateProgramWithIL;
  if (!core) create = reinterpret_cast<Create>(clGetExtensionFunctionAddressForPlatform(device.platform, "clCreateProgramWithILKHR"));
  if (!create) throw Error(ErrorCode::opencl, request.entry, "the driver must have clCreateProgramWithILKHR, which its extension promises, got none");
  ClProgram program(create(runtime.context(), request.spirv.data(), request.spirv.size(), &status));
  check_cl(status, request.entry, "clCreateProgramWithIL");
  return program;
}

/// True if PoCL failed for no fault of the program: of processes that build one program at the same time, some find files of its cache half-made.
bool is_race_of_builds(cl_int status, std::string_view log) {
  return status == CL_BUILD_PROGRAM_FAILURE && log.starts_with("Device ") && log.ends_with("failed to build the program") &&
         log.find('\n') == std::string_view::npos;
}

ClProgram build_source(Runtime& runtime, const ProgramRequest& request, std::string_view source, const std::string& options) {
  const char* text = source.data();
  std::size_t size = source.size();
  cl_int status = CL_SUCCESS;
  cl_device_id device = runtime.device().id;
  ClProgram program;
  std::string log;
  constexpr int kMost = 10;
  for (int tries = 1; tries == 1 || (is_race_of_builds(status, log) && tries <= kMost); ++tries) {
    program = request.spirv.empty() ? ClProgram(clCreateProgramWithSource(runtime.context(), 1, &text, &size, &status)) : program_of_spirv(runtime, request);
    check_cl(status, request.entry, "clCreateProgramWithSource");
    status = clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
    log = build_log(program.get(), device);
  }
  // Short memory says nothing of the program: who tries whether a device builds it must not take that for an answer.
  if (status != CL_SUCCESS)
    throw Error(
        status == CL_OUT_OF_HOST_MEMORY ? ErrorCode::out_of_memory : ErrorCode::build_failure, request.entry,
        fmt::format("{} of {} does not build on device {} ({}): {}\noptions: {}\ndefines: {}\n{}", request.entry, request.file, runtime.device().index,
                    runtime.device().facts.name, cl_error_name(status), options, request.defines.to_string(), log.empty() ? "(the driver gave no log)" : log),
        status);
  if (!log.empty()) {
    std::string line = fmt::format("{}: {}", request.entry, log);
    log_line(LogLevel::debug, line);
    BuildLogs& logs = logs_so_far();
    std::lock_guard lock(logs.mutex);
    if (logs.lines.size() < BuildLogs::kMost) logs.lines.push_back(std::move(line));
  }
  return program;
}

struct Mutation {
  std::mutex mutex;
  std::string from, to, after;
  int applied = 0;
};
Mutation& mutation() {
  static auto* one = new Mutation;
  return *one;
}
void mutate(std::string& source) {
  Mutation& m = mutation();
  std::lock_guard lock(m.mutex);
  if (m.from.empty()) return;
  auto begin = m.after.empty() ? std::string::npos : source.find(m.after);
  auto at = begin == std::string::npos ? begin : source.find(m.from, begin);
  if (at == std::string::npos) at = source.find(m.from);
  if (at == std::string::npos) return;
  source.replace(at, m.from.size(), m.to);
  ++m.applied;
}

/// Name of the kernel that a request launches.
std::string_view launched_name(const ProgramRequest& request) { return request.wrapper_name.empty() ? request.entry : request.wrapper_name; }

std::string assemble(const ProgramRequest& request) {
  std::string source;
  source.reserve(request.text.size() + request.wrapper_text.size() + 1024);
  for (const auto& [name, value] : request.defines.entries()) source += fmt::format("#define {} {}\n", name, value);
  source += fmt::format("#line 1 \"{}\"\n", request.file);
  constexpr std::string_view kInclude = "#include \"expression.clh\"\n";
  auto at = request.text.find(kInclude);
  if (at == std::string_view::npos) {
    source += request.text;
  } else {
    auto line = std::count(request.text.begin() + static_cast<std::ptrdiff_t>(request.text.rfind("#line", at)),
                           request.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    source += fmt::format("{}#line 1 \"<traced function>\"\n{}#line {} \"{}\"\n{}", request.text.substr(0, at), request.expression, line, request.file,
                          request.text.substr(at + kInclude.size()));
  }
  source += fmt::format("\n{}", request.wrapper_text);
  mutate(source);
  return source;
}

std::string build_options(const Runtime& runtime, std::string_view more) {
  std::string options =
      runtime.device().opencl_version.starts_with("OpenCL 1.0") || runtime.device().opencl_version.starts_with("OpenCL 1.1") ? "" : "-cl-std=CL1.2";
  auto single = device_value<cl_device_fp_config>(runtime.device().id, CL_DEVICE_SINGLE_FP_CONFIG);
  if (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (!more.empty()) options += fmt::format(" {}", more);
  return options;
}

}  // namespace

std::vector<std::string> build_logs() {
  BuildLogs& logs = logs_so_far();
  std::lock_guard lock(logs.mutex);
  return logs.lines;
}

Program::Program(Runtime& runtime, ClProgram program, std::filesystem::path file, const Digest& key, const Digest& saved)
    : runtime_(runtime),
      program_(std::move(program)),
      file_(std::move(file)),
      key_(key),
      saved_(saved),
      links_at_launch_(detail::links_at_launch(runtime.device().facts.platform_name, runtime.device().platform_version, runtime.device().facts.type)) {}

void Program::set_origin(ProgramOrigin origin, std::string_view binary, std::string_view entry, const Digest& key) {
  origin_ = origin, pack_key_ = key;
  if (links_at_launch_ && origin != ProgramOrigin::built) contained_ = local_sizes_in(binary, entry);
}

bool Program::contains(const LocalSize& size) const {
  if (!links_at_launch_) return origin_ == ProgramOrigin::packed;
  return std::find(contained_.begin(), contained_.end(), size) != contained_.end();
}

std::string Program::binary() const {
  // A context may name sub-devices after the device; some drivers refuse to leave out the binaries of those.
  cl_uint devices = 0;
  if (clGetProgramInfo(program_.get(), CL_PROGRAM_NUM_DEVICES, sizeof devices, &devices, nullptr) != CL_SUCCESS || devices == 0) return {};
  std::vector<cl_device_id> ids(devices);
  std::vector<std::size_t> sizes(devices);
  if (clGetProgramInfo(program_.get(), CL_PROGRAM_DEVICES, devices * sizeof ids[0], ids.data(), nullptr) != CL_SUCCESS ||
      clGetProgramInfo(program_.get(), CL_PROGRAM_BINARY_SIZES, devices * sizeof sizes[0], sizes.data(), nullptr) != CL_SUCCESS)
    return {};
  const auto own = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), runtime_.device().id) - ids.begin());
  if (own == ids.size() || sizes[own] == 0) return {};
  std::vector<std::string> binaries;
  for (const std::size_t size : sizes) binaries.emplace_back(size, '\0');
  std::vector<unsigned char*> bytes;
  for (std::string& binary : binaries) bytes.push_back(reinterpret_cast<unsigned char*>(binary.data()));
  if (clGetProgramInfo(program_.get(), CL_PROGRAM_BINARIES, devices * sizeof bytes[0], bytes.data(), nullptr) != CL_SUCCESS) return {};
  return std::move(binaries[own]);
}

void Program::save() noexcept {
  const bool is_cached = !file_.empty() && cache_is_written();
  // Tested before binary(), for which some drivers build the program again.
  if (!is_cached && (pack_key_ == Digest{} || !records_packs())) return;
  try {
    std::lock_guard lock(mutex_);
    std::string binary = this->binary();
    if (binary.empty()) return;
    if (pack_key_ != Digest{} && records_packs())
      record_launches(runtime_.device(), pack_key_, links_at_launch_ ? local_sizes_in(binary, kernel_->launched_name()) : kernel_->launched(), binary);
    Digest now = sha256(binary);
    if (!is_cached || now == saved_) return;
    if (cache_write(file_, key_, binary)) {
      g_saved.fetch_add(1);
      saved_ = now;
    }
  } catch (const std::exception& e) {
    log_once(LogLevel::warn, fmt::format("a program could not be saved: {}", e.what()));
  }
}

SourceMutation::SourceMutation(std::string_view from, std::string_view to, std::string_view after) {
  std::lock_guard lock(mutation().mutex);
  mutation().from = from;
  mutation().to = to;
  mutation().after = after;
  mutation().applied = 0;
}
SourceMutation::~SourceMutation() {
  std::lock_guard lock(mutation().mutex);
  mutation().from.clear();
}
int SourceMutation::applied() const {
  std::lock_guard lock(mutation().mutex);
  return mutation().applied;
}

std::string device_key(const Runtime& runtime) {
  const DeviceRecord& d = runtime.device();
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", d.facts.platform_name, d.platform_version, d.facts.name, d.facts.vendor, d.driver_version, d.opencl_version,
                     claimed_traits(d).address_bits, CLUTCH_VERSION);
}

std::unique_ptr<Program> ProgramStore::make(const ProgramRequest& request, std::string_view source, const std::string& options, std::string_view given) {
  std::filesystem::path folder = cache_folder(), file;
  const Digest of_source = detail::pack_key(options, request.entry, source), key = sha256(fmt::format("{}\n{}", device_key(runtime_), to_hex(of_source)));
  // SPIR-V, of which packs have none, is no source that another process could be given.
  const Digest pack_key = request.spirv.empty() ? of_source : Digest{};
  if (records_packs() && request.spirv.empty()) record_program(runtime_.device(), pack_key, request.entry, options, source);
  ClProgram program;
  std::optional<std::string> binary;
  if (!folder.empty()) {
    file = folder / "programs" / (to_hex(key) + ".bin");
    binary = cache_read(file, key);
  }
  bool asks_packs = request.spirv.empty();
  for (const bool is_given : {false, true}) {
    if (program || (is_given && given.empty()) || (!is_given && !binary)) continue;
    if (is_given) binary = std::string(given);
    if (asks_packs && is_in_pack_alone(request, pack_key, *binary)) {
      if (std::unique_ptr<Program> made = make_packed(request, options, file, key, pack_key)) return made;
      asks_packs = false;
    }
    program = load_binary(runtime_, *binary, options);
  }
  if (!program && asks_packs)
    if (std::unique_ptr<Program> made = make_packed(request, options, file, key, pack_key)) return made;
  const ProgramOrigin origin = program ? ProgramOrigin::loaded : ProgramOrigin::built;
  if (program) {
    g_loaded.fetch_add(1);
  } else {
    program = build_source(runtime_, request, source, options);
    g_built.fetch_add(1);
    log_line(LogLevel::info, fmt::format("built {} [{}] on device {}", request.entry, request.defines.to_string(), runtime_.device().index));
  }
  const bool is_loaded = origin == ProgramOrigin::loaded;
  auto made = std::make_unique<Program>(runtime_, std::move(program), file, key, is_loaded ? sha256(*binary) : Digest{});
  made->set_origin(origin, is_loaded ? std::string_view(*binary) : std::string_view(), launched_name(request), pack_key);
  made->set_kernel(std::make_unique<Kernel>(*made, request.entry, std::string(request.wrapper_name)));
  return made;
}

bool ProgramStore::is_in_pack_alone(const ProgramRequest& request, const Digest& pack_key, std::string_view binary) {
  const DeviceRecord& device = runtime_.device();
  if (!links_at_launch(device.facts.platform_name, device.platform_version, device.facts.type) || may_link()) return false;
  const std::vector<LocalSize> needed = packs_.launches(device, pack_key), has = local_sizes_in(binary, launched_name(request));
  return std::any_of(needed.begin(), needed.end(), [&](const LocalSize& l) { return std::find(has.begin(), has.end(), l) == has.end(); });
}

std::unique_ptr<Program> ProgramStore::make_packed(const ProgramRequest& request, const std::string& options, const std::filesystem::path& file,
                                                   const Digest& key, const Digest& pack_key) {
  const DeviceRecord& device = runtime_.device();
  std::optional<PackStore::Found> found = packs_.find(device, pack_key, request.entry);
  if (!found) return nullptr;
  std::string why = fault_of_binary(device.facts.platform_name, device.platform_version, found->binary);
  try {
    if (ClProgram program = why.empty() ? load_binary(runtime_, found->binary, options) : ClProgram()) {
      auto made = std::make_unique<Program>(runtime_, std::move(program), file, key, Digest{});
      made->set_origin(ProgramOrigin::packed, found->binary, launched_name(request), pack_key);
      made->set_kernel(std::make_unique<Kernel>(*made, request.entry, std::string(request.wrapper_name)));
      g_packed.fetch_add(1);
      log_line(LogLevel::debug, fmt::format("loaded {} from {}", request.entry, found->pack));
      return made;
    }
    if (why.empty()) why = fmt::format("the driver {} {} of device {} refuses it", device.facts.platform_name, device.driver_version, device.index);
  } catch (const Error& e) {
    why = e.what();
  }
  log_once(LogLevel::warn, fmt::format("kernel pack: the program of {} in {} is not used: {}; it is built from source", request.entry, found->pack, why));
  return nullptr;
}

std::unique_ptr<Program> ProgramStore::make_given(const ProgramRequest& request) {
  const DeviceFacts& device = runtime_.device().facts;
  const std::string what = fmt::format("the binary of {}, {} bytes,", request.entry, request.binary.size());
  if (std::string fault = fault_of_binary(device.platform_name, runtime_.device().platform_version, request.binary); !fault.empty())
    throw Error(ErrorCode::build_failure, request.entry,
                fmt::format("{} must be one that device {} ({}) gave: {}", what, runtime_.device().index, device.name, fault));
  ClProgram program = load_binary(runtime_, request.binary, std::string(request.options));
  if (!program)
    throw Error(ErrorCode::build_failure, request.entry,
                fmt::format("{} must be one that the driver takes, got a refusal from device {} ({}, {} {})", what, runtime_.device().index, device.name,
                            device.platform_name, runtime_.device().driver_version));
  g_loaded.fetch_add(1);
  auto made = std::make_unique<Program>(runtime_, std::move(program), std::filesystem::path(), Digest{}, Digest{});
  made->set_origin(ProgramOrigin::loaded, request.binary, request.entry, Digest{});
  made->set_kernel(std::make_unique<Kernel>(*made, request.entry, std::string()));
  return made;
}

std::shared_ptr<ProgramStore::Slot> ProgramStore::slot_of(std::string key, std::string_view* kept) {
  std::lock_guard lock(mutex_);
  auto& [known, found] = *slots_.try_emplace(std::move(key)).first;
  if (!found) found = std::make_shared<Slot>();
  if (kept) *kept = known;
  return found;
}

Kernel& ProgramStore::find(const ProgramRequest& request) {
  return request.binary.empty() && request.spirv.empty() ? find_whole(request, assemble(request)) : find_compiled(request);
}

Kernel& ProgramStore::find_compiled(const ProgramRequest& request) {
  const bool is_binary = !request.binary.empty();
  // No source begins like these keys: its options stand in their place.
  auto slot =
      slot_of(fmt::format("{}\n<{}>\n{}\n{}", request.entry, is_binary ? "binary" : "SPIR-V", request.options, is_binary ? request.binary : request.spirv));
  std::lock_guard building(slot->building);
  if (!slot->program) {
    slot->program = is_binary ? make_given(request) : make(request, request.spirv, std::string(request.options), {});
    slot->program->set_text({}, request.options);
  }
  return slot->program->kernel();
}

Kernel& ProgramStore::find_whole(const ProgramRequest& request, std::string source, std::string_view binary) {
  std::string options = build_options(runtime_, request.options);
  std::string_view known;
  auto slot = slot_of(fmt::format("{}\n{}\n{}", request.entry, options, source), &known);
  std::lock_guard building(slot->building);
  if (!slot->program) {
    slot->program = make(request, source, options, binary);
    slot->program->set_text(known.substr(known.size() - source.size()), request.options);
  }
  return slot->program->kernel();
}

Kernel* ProgramStore::predicated(Kernel& kernel) {
  if (Kernel* known = kernel.predicated_.load(std::memory_order_acquire)) [[likely]]
    return known;
  const Program& program = kernel.program();
  if (program.source().find("CLUTCH_PREDICATED") == std::string_view::npos) return nullptr;
  Kernel& made = find_whole(
      {.text = {}, .file = "<with a predicate>", .entry = kernel.name(), .defines = {}, .options = program.options(), .wrapper_name = kernel.wrapper()},
      fmt::format("#define CLUTCH_PREDICATED 1\n{}", program.source()));
  if (made.argument_count() != kernel.argument_count() + 2) return nullptr;
  kernel.predicated_.store(&made, std::memory_order_release);
  return &made;
}

Kernel& ProgramStore::find(std::string_view stem, std::string_view entry, const Defines& defines, std::string_view expression, std::string_view options) {
  const KernelText& text = find_kernel_text(stem, entry);
  Defines all = defines;
  all.set(fmt::format("CLUTCH_ENTRY_{}", entry), 1);
  // The self-test's kernels are built before the traits are known.
  if (stem != "self_test" && !runtime_.traits().args_by_value) all.set("CLUTCH_ARGS_IN_MEMORY", 1);
  std::string file = fmt::format("kernels/{}.cl", stem);
  return find({.text = text.text, .file = file, .entry = entry, .defines = all, .options = options, .expression = expression});
}

const KernelText& find_kernel_text(std::string_view stem, std::string_view entry) {
  for (const KernelText& row : kernel_table()) {
    if (row.stem != stem) continue;
    if (std::find(row.entries.begin(), row.entries.end(), entry) != row.entries.end()) return row;
  }
  throw Error(ErrorCode::internal, entry, fmt::format("kernels/{}.cl has no such entry", stem));
}

}  // namespace detail

BuildCounters build_counters() noexcept { return {detail::g_built.load(), detail::g_loaded.load(), detail::g_saved.load(), detail::g_packed.load()}; }

}}  // namespace clutch::v0
