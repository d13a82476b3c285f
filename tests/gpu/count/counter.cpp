// SPDX-License-Identifier: Apache-2.0
// A plugin of Oclgrind 21.10 that counts each launch by model.hpp: OCLGRIND_PLUGINS=libclutch_gpu_counter.so. For each launch it appends two lines to the file
// GPU_COUNT_FILE, for sub-groups of 32 and of 64: label, kernel, local size, global size and counts, apart by tabs; where Oclgrind finds an error,
// "error: " and its words instead of counts. The label is GPU_COUNT_LABEL.
//
// What an instruction of LLVM weighs is what a GPU issues for it, roughly: an element of a vector one; 64-bit integers two, their products four; a division of
// integers 16, of 64 bits 64; names for values that are there already (casts of pointers, phi, parts of vectors) none; addresses that are
// constants away from another one of their block none; a floating number's sign that arithmetic changes or takes away none, since GPUs' instructions do
// so with what they read. Loads and stores are issued by their pieces. A kernel's arguments are free.
#include "model.hpp"

#include <oclgrind/Context.h>
#include <oclgrind/KernelInvocation.h>
#include <oclgrind/Memory.h>
#include <oclgrind/Plugin.h>
#include <oclgrind/WorkGroup.h>
#include <oclgrind/WorkItem.h>

#include <fstream>
#include <optional>
#include <string_view>
#include <unordered_map>

// The part of LLVM's C interface that is used here. Its functions and numbers stay the same from release to release, and Oclgrind has loaded the library.
extern "C" {
struct LLVMOpaqueValue;
struct LLVMOpaqueType;
struct LLVMOpaqueBasicBlock;
struct LLVMOpaqueUse;
int LLVMGetInstructionOpcode(LLVMOpaqueValue*);
LLVMOpaqueType* LLVMTypeOf(LLVMOpaqueValue*);
int LLVMGetTypeKind(LLVMOpaqueType*);
unsigned LLVMGetVectorSize(LLVMOpaqueType*);
LLVMOpaqueType* LLVMGetElementType(LLVMOpaqueType*);
unsigned LLVMGetIntTypeWidth(LLVMOpaqueType*);
unsigned LLVMGetPointerAddressSpace(LLVMOpaqueType*);
int LLVMGetNumOperands(LLVMOpaqueValue*);
LLVMOpaqueValue* LLVMGetOperand(LLVMOpaqueValue*, unsigned);
const char* LLVMGetValueName2(LLVMOpaqueValue*, std::size_t*);
LLVMOpaqueValue* LLVMIsAArgument(LLVMOpaqueValue*);
LLVMOpaqueValue* LLVMIsAConstant(LLVMOpaqueValue*);
LLVMOpaqueValue* LLVMIsAInstruction(LLVMOpaqueValue*);
LLVMOpaqueValue* LLVMGetParamParent(LLVMOpaqueValue*);
LLVMOpaqueBasicBlock* LLVMGetInstructionParent(LLVMOpaqueValue*);
LLVMOpaqueValue* LLVMGetFirstInstruction(LLVMOpaqueBasicBlock*);
LLVMOpaqueValue* LLVMGetNextInstruction(LLVMOpaqueValue*);
LLVMOpaqueValue* LLVMGetBasicBlockParent(LLVMOpaqueBasicBlock*);
LLVMOpaqueValue* LLVMGetCalledValue(LLVMOpaqueValue*);
int LLVMIsDeclaration(LLVMOpaqueValue*);
unsigned LLVMGetAlignment(LLVMOpaqueValue*);
LLVMOpaqueUse* LLVMGetFirstUse(LLVMOpaqueValue*);
LLVMOpaqueUse* LLVMGetNextUse(LLVMOpaqueUse*);
LLVMOpaqueValue* LLVMGetUser(LLVMOpaqueUse*);
void LLVMParseCommandLineOptions(int, const char* const*, const char*);
}

namespace clutch::gpu_count { namespace {

using Value = LLVMOpaqueValue*;

// Numbers of llvm-c/Core.h.
enum Opcode : int {
  kRet = 1,
  kBr = 2,
  kSwitch = 3,
  kAdd = 8,
  kFAdd = 9,
  kSub = 10,
  kFSub = 11,
  kMul = 12,
  kFMul = 13,
  kUDiv = 14,
  kSDiv = 15,
  kFDiv = 16,
  kURem = 17,
  kSRem = 18,
  kFRem = 19,
  kShl = 20,
  kXor = 25,
  kAlloca = 26,
  kLoad = 27,
  kStore = 28,
  kGetElementPtr = 29,
  kTrunc = 30,
  kZExt = 31,
  kSExt = 32,
  kFPToUI = 33,
  kUIToFP = 35,

  kFPExt = 38,
  kPtrToInt = 39,
  kIntToPtr = 40,
  kBitCast = 41,
  kICmp = 42,
  kFCmp = 43,
  kPhi = 44,
  kCall = 45,
  kSelect = 46,
  kAddrSpaceCast = 60,
  kFNeg = 66,
};
enum TypeKind : int { kHalf = 1, kFloat = 2, kDouble = 3, kInteger = 8, kPointer = 12, kVector = 13 };
constexpr unsigned kConstantSpace = 2;

std::string_view name_of(Value value) {
  std::size_t length = 0;
  const char* name = LLVMGetValueName2(value, &length);
  return {name, length};
}

struct Type {
  int kind;
  std::uint32_t elements, bits;
};
Type type_of(Value value) {
  LLVMOpaqueType* type = LLVMTypeOf(value);
  Type result{LLVMGetTypeKind(type), 1, 0};
  if (result.kind == kVector) {
    result.elements = LLVMGetVectorSize(type);
    type = LLVMGetElementType(type);
    result.kind = LLVMGetTypeKind(type);
  }
  result.bits = result.kind == kInteger ? LLVMGetIntTypeWidth(type) : result.kind == kHalf ? 16 : result.kind == kFloat ? 32 : 64;
  return result;
}

struct Cost {
  Pipe pipe;
  std::uint32_t weight;
};
/// What takes one issue for an element.
Cost simple(Type type) {
  if (type.kind == kDouble) return {Pipe::f64, type.elements};
  if (type.kind == kFloat || type.kind == kHalf) return {Pipe::f32, type.elements};
  return {Pipe::integer, type.elements * (type.bits > 32 ? 2 : 1)};
}

/// Of "_Z3fmafff" "fma"; of other names all.
std::string_view unmangled(std::string_view name) {
  if (!name.starts_with("_Z")) return name;
  std::size_t length = 0, at = 2;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at) length = length * 10 + static_cast<std::size_t>(name[at] - '0');
  return name.substr(at, length);
}

/// The function that stands for a matrix instruction: a call of it is one, and what it does itself is none.
constexpr std::string_view kMatrixInstruction = "matrix_instruction";

/// Whether all that reads a floating number is arithmetic, whose instructions can change or take away the sign of what they read.
bool is_read_by_arithmetic(Value number) {
  for (LLVMOpaqueUse* use = LLVMGetFirstUse(number); use; use = LLVMGetNextUse(use)) {
    const Value user = LLVMGetUser(use);
    if (!LLVMIsAInstruction(user)) return false;
    switch (LLVMGetInstructionOpcode(user)) {
      case kFAdd:
      case kFSub:
      case kFMul:
      case kFCmp: break;
      case kCall:
        if (const std::string_view name = unmangled(name_of(LLVMGetCalledValue(user))); name != "fma" && name != "mad" && name != "fmin" && name != "fmax")
          return false;
        break;
      default: return false;
    }
  }
  return true;
}

Cost cost_of_call(Value call) {
  const Value callee = LLVMGetCalledValue(call);
  if (name_of(callee) == kMatrixInstruction) return {Pipe::matrix, 1};
  if (!LLVMIsDeclaration(callee)) return {Pipe::control, 1};
  const std::string_view name = unmangled(name_of(callee));
  if (name.starts_with("llvm.lifetime") || name.starts_with("llvm.dbg")) return {Pipe::control, 0};
  for (const char* accesses : {"vload", "vstore", "atom", "llvm.mem"})
    if (name.starts_with(accesses)) return {Pipe::memory, 0};  // by their pieces
  if (name == "barrier" || name == "mem_fence") return {Pipe::control, 1};
  if (name.starts_with("get_")) return {Pipe::integer, 1};
  Type type = type_of(call);
  const bool floats = type.kind == kFloat || type.kind == kDouble || type.kind == kHalf;
  if (name.starts_with("as_")) return {Pipe::integer, 0};
  if (name == "isnan" || name == "isinf" || name == "isfinite" || name == "signbit") {
    const Type argument = type_of(LLVMGetOperand(call, 0));
    return simple(argument);
  }
  if (!floats || name.starts_with("convert_")) {
    Cost cost = simple(type);
    if (name == "mul_hi" || name == "mad_hi") cost.weight *= type.bits > 32 ? 2 : 1;
    return cost;
  }
  static constexpr std::string_view kOne[]{"fma",  "mad",   "fabs", "fmin",  "fmax",  "min",  "max", "copysign", "floor",
                                           "ceil", "trunc", "rint", "round", "clamp", "sign", "mix", "select",   "bitselect"};
  if ((name == "fabs" || name.starts_with("llvm.fabs")) && is_read_by_arithmetic(call)) return {Pipe::f32, 0};
  if (std::find(std::begin(kOne), std::end(kOne), name) != std::end(kOne) || name.starts_with("llvm.fabs") || name.starts_with("llvm.fmuladd"))
    return simple(type);
  return {Pipe::special, type.elements};
}

/// Whether an earlier address of the block differs from this one in constants alone: loads and stores of GPUs have constants for that. Elements of a vector
/// that the simulator's compiler takes apart have such addresses.
bool is_constant_step(Value address) {
  const int operands = LLVMGetNumOperands(address);
  for (Value other = LLVMGetFirstInstruction(LLVMGetInstructionParent(address)); other != address; other = LLVMGetNextInstruction(other)) {
    if (LLVMGetInstructionOpcode(other) != kGetElementPtr || LLVMGetNumOperands(other) != operands) continue;
    bool same = LLVMGetOperand(other, 0) == LLVMGetOperand(address, 0);
    for (unsigned i = 1; same && i < static_cast<unsigned>(operands); ++i) {
      const Value mine = LLVMGetOperand(address, i), its = LLVMGetOperand(other, i);
      same = mine == its || (LLVMIsAConstant(mine) && LLVMIsAConstant(its));
    }
    if (same) return true;
  }
  return false;
}

Cost cost_of(Value instruction) {
  const int opcode = LLVMGetInstructionOpcode(instruction);
  const Type type = type_of(instruction);
  switch (opcode) {
    case kRet:
    case kSwitch: return {Pipe::control, 1};
    case kBr: return {Pipe::control, LLVMGetNumOperands(instruction) > 1 ? 1u : 0u};
    case kLoad:
    case kStore: return {Pipe::memory, 0};
    case kCall: return cost_of_call(instruction);
    case kFDiv:
    case kFRem: return {Pipe::special, type.elements};
    case kUDiv:
    case kSDiv:
    case kURem:
    case kSRem: return {Pipe::integer, type.elements * (type.bits > 32 ? 64 : 16)};
    case kMul: return {Pipe::integer, type.elements * (type.bits > 32 ? 4 : 1)};
    case kICmp:
    case kFCmp: return simple(type_of(LLVMGetOperand(instruction, 0)));
    case kGetElementPtr: {
      for (int i = 1; i < LLVMGetNumOperands(instruction); ++i)
        if (!LLVMIsAConstant(LLVMGetOperand(instruction, static_cast<unsigned>(i)))) return {Pipe::integer, is_constant_step(instruction) ? 0u : 1u};
      return {Pipe::integer, 0};
    }
    case kSExt: return {Pipe::integer, type.elements};
    case kFNeg:
      if (is_read_by_arithmetic(instruction)) return {Pipe::f32, 0};
      return simple(type);
    case kSelect: return simple(type);
    default: break;
  }
  if ((opcode >= kAdd && opcode <= kXor) || (opcode >= kFPToUI && opcode <= kFPExt)) return simple(type);
  return {Pipe::integer, 0};
}

/// What is known to divide the address of a load or store; 0 of other instructions.
std::uint32_t alignment_of(Value instruction) {
  const int opcode = LLVMGetInstructionOpcode(instruction);
  return opcode == kLoad || opcode == kStore ? LLVMGetAlignment(instruction) : 0;
}

/// Whether a pointer leads into constant memory.
bool reads_constant(Value instruction) {
  for (int i = 0; i < LLVMGetNumOperands(instruction); ++i) {
    LLVMOpaqueType* type = LLVMTypeOf(LLVMGetOperand(instruction, static_cast<unsigned>(i)));
    if (LLVMGetTypeKind(type) == kPointer && LLVMGetPointerAddressSpace(type) == kConstantSpace) return true;
  }
  return false;
}

/// Whether all accesses by a pointer to a private array are loads and stores of elements that constants name: compilers for GPUs keep it in registers, also
/// where the simulator's compiler unrolled its loops too late for that.
bool named_by_constants(Value pointer) {
  for (LLVMOpaqueUse* use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
    const Value user = LLVMGetUser(use);
    if (!LLVMIsAInstruction(user)) return false;
    const int opcode = LLVMGetInstructionOpcode(user);
    if (opcode == kLoad || (opcode == kStore && LLVMGetOperand(user, 0) != pointer)) continue;
    if (opcode == kCall) {
      const std::string_view name = name_of(LLVMGetCalledValue(user));
      if (name.starts_with("llvm.lifetime") || name.starts_with("llvm.dbg") || name == kMatrixInstruction) continue;
      return false;
    }
    if (opcode != kGetElementPtr && opcode != kBitCast) return false;
    for (int i = 1; i < LLVMGetNumOperands(user); ++i)
      if (!LLVMIsAConstant(LLVMGetOperand(user, static_cast<unsigned>(i)))) return false;
    if (!named_by_constants(user)) return false;
  }
  return true;
}

/// Whether an access to private memory is none on a GPU: one to an argument of the kernel that was passed by value, or to an array that is in registers.
bool is_in_registers(Value instruction, Value kernel) {
  for (int i = 0; i < LLVMGetNumOperands(instruction); ++i) {
    Value at = LLVMGetOperand(instruction, static_cast<unsigned>(i));
    if (LLVMGetTypeKind(LLVMTypeOf(at)) != kPointer) continue;
    while (LLVMIsAInstruction(at)) {
      const int opcode = LLVMGetInstructionOpcode(at);
      if (opcode == kAlloca) return named_by_constants(at);
      if (opcode != kGetElementPtr && opcode != kBitCast && opcode != kAddrSpaceCast) break;
      at = LLVMGetOperand(at, 0);
    }
    if (LLVMIsAArgument(at) && LLVMGetParamParent(at) == kernel) return true;
  }
  return false;
}

// Oclgrind keeps a vector's true as 255 and a scalar's as 1, and does not cut results to one bit: what optimised code does with truth values goes wrong (the
// negation of a vector's true, by xor with 1, is 254, which is true). So their results are put right here, before another instruction reads them.
enum class Repair : std::uint8_t { none, truth, truths, widened, converted, impossible };
Repair repair_of(Value instruction) {
  auto is_truths = [](Type type) { return type.kind == kInteger && type.bits == 1 && type.elements > 1; };
  const Type type = type_of(instruction);
  if (is_truths(type)) return Repair::truths;
  if (type.kind == kInteger && type.bits == 1) return Repair::truth;
  const int opcode = LLVMGetInstructionOpcode(instruction);
  if (opcode != kZExt && opcode != kUIToFP && opcode != kBitCast) return Repair::none;
  if (!is_truths(type_of(LLVMGetOperand(instruction, 0)))) return Repair::none;
  return opcode == kZExt ? Repair::widened : opcode == kUIToFP ? Repair::converted : Repair::impossible;
}

std::string text(const oclgrind::Size3& size) {
  std::string all = std::to_string(size.x);
  if (size.y > 1 || size.z > 1) all += "x" + std::to_string(size.y);
  if (size.z > 1) all += "x" + std::to_string(size.z);
  return all;
}

class Counter final : public oclgrind::Plugin {
 public:
  explicit Counter(const oclgrind::Context* context) : Plugin(context) {
    if (const char* path = std::getenv("GPU_COUNT_FILE")) file_.open(path, std::ios::app);
  }
  bool isThreadSafe() const override { return false; }

  void kernelBegin(const oclgrind::KernelInvocation*) override {
    launch_.emplace();
    error_.clear();
    known_.clear();
    blocks_.clear();
    recent_.fill({});
    kernel_ = nullptr;
  }
  void kernelEnd(const oclgrind::KernelInvocation* invocation) override {
    const char* label = std::getenv("GPU_COUNT_LABEL");
    const std::string kernel(kernel_ ? name_of(kernel_) : std::string_view());
    for (const Counts& counts : launch_->counts())
      file_ << (label ? label : "") << "\t" << kernel << "\t" << text(invocation->getLocalSize()) << "\t" << text(invocation->getGlobalSize()) << "\t"
            << (error_.empty() ? to_text(counts) : "error: " + error_) << "\n";
    file_.flush();
    launch_.reset();
  }
  void log(oclgrind::MessageType type, const char* message) override {
    if (type != oclgrind::ERROR || !error_.empty()) return;
    for (const char* at = message; *at; ++at) error_ += *at == '\n' || *at == '\t' ? ' ' : *at;
    error_.erase(0, error_.find_first_not_of(' '));
  }
  void workGroupBegin(const oclgrind::WorkGroup* group) override {
    size_ = group->getGroupSize();
    item_ = nullptr;
    launch_->begin_group(static_cast<std::uint32_t>(size_.x * size_.y * size_.z));
  }
  void workGroupBarrier(const oclgrind::WorkGroup*, std::uint32_t) override { launch_->barrier(); }
  void workGroupComplete(const oclgrind::WorkGroup*) override { launch_->end_group(); }

  void instructionExecuted(const oclgrind::WorkItem* item, const llvm::Instruction* instruction, const oclgrind::TypedValue& result) override {
    const Known& known = look_up(instruction);
    if (known.repair != Repair::none) repair(known.repair, result);
    launch_->instruction(lane(item), known.number, known.cost.pipe, known.cost.weight);
  }
  void memoryLoad(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, std::size_t address, std::size_t bytes) override {
    access(memory, item, Action::load, address, bytes);
  }
  void memoryStore(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, std::size_t address, std::size_t bytes, const std::uint8_t*) override {
    access(memory, item, Action::store, address, bytes);
  }
  // An atomic operation loads always; it stores too if it does not compare in vain.
  void memoryAtomicLoad(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, oclgrind::AtomicOp, std::size_t address, std::size_t bytes) override {
    access(memory, item, Action::atomic, address, bytes);
  }
  using Plugin::memoryLoad;
  using Plugin::memoryStore;

 private:
  struct Known {
    std::uint32_t number = 0;
    Cost cost{};
    bool constant = false, in_registers = false;
    Repair repair = Repair::none;
    Place place{};
  };

  const Known& look_up(const llvm::Instruction* instruction) {
    auto& slot = recent_[reinterpret_cast<std::uintptr_t>(instruction) / 16 % recent_.size()];
    if (slot.first == instruction) return *slot.second;
    const auto [found, fresh] = known_.try_emplace(instruction);
    if (fresh) {
      // The C interface's values are these, and it does not know const.
      const auto value = reinterpret_cast<Value>(const_cast<llvm::Instruction*>(instruction));
      if (!kernel_) kernel_ = LLVMGetBasicBlockParent(LLVMGetInstructionParent(value));  // the first instruction is the kernel's own
      const auto block = blocks_.try_emplace(LLVMGetInstructionParent(value), static_cast<std::uint32_t>(blocks_.size() + 1)).first->second;
      const std::uint32_t aligned = alignment_of(value);
      const bool within = name_of(LLVMGetBasicBlockParent(LLVMGetInstructionParent(value))) == kMatrixInstruction;
      found->second = {.number = static_cast<std::uint32_t>(known_.size() - 1),
                       .cost = within ? Cost{Pipe::control, 0} : cost_of(value),
                       .constant = reads_constant(value),
                       .in_registers = within || is_in_registers(value, kernel_),
                       .repair = repair_of(value),
                       .place = {.block = aligned > 0 ? block : 0, .aligned = aligned}};
    }
    slot = {instruction, &found->second};
    return found->second;
  }

  void repair(Repair how, oclgrind::TypedValue result) {
    for (unsigned i = 0; i < result.num; ++i) {
      std::uint8_t* const at = result.data + std::size_t{i} * result.size;
      if (how == Repair::truth) *at &= 1;
      if (how == Repair::truths) *at = *at & 1 ? 0xFF : 0;
      if (how == Repair::widened) result.setUInt(result.getUInt(i) & 1, i);
      if (how == Repair::converted) result.setFloat(result.getFloat(i) != 0, i);
    }
    if (how == Repair::impossible && error_.empty()) error_ = "a cast of a vector of truth values, which Oclgrind gets wrong";
  }

  std::uint32_t lane(const oclgrind::WorkItem* item) {
    if (item != item_) {
      const oclgrind::Size3 id = item->getLocalID();
      item_ = item;
      lane_ = static_cast<std::uint32_t>(id.x + size_.x * (id.y + size_.y * id.z));
    }
    return lane_;
  }

  void access(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, Action action, std::size_t address, std::size_t bytes) {
    const Known& known = look_up(item->getCurrentInstruction());
    Space space = Space::global;
    switch (memory->getAddressSpace()) {
      case oclgrind::AddrSpacePrivate:
        if (known.in_registers) return;
        space = Space::scratch;
        break;
      case oclgrind::AddrSpaceLocal: space = Space::local; break;
      default: space = known.constant && action == Action::load ? Space::constant : Space::global;
    }
    launch_->access(lane(item), known.number, space, action, address, static_cast<std::uint32_t>(bytes), known.place);
  }

  std::ofstream file_;
  std::optional<Launch> launch_;
  std::string error_;  // the first that Oclgrind says of the launch
  std::unordered_map<const llvm::Instruction*, Known> known_;
  std::unordered_map<LLVMOpaqueBasicBlock*, std::uint32_t> blocks_;
  std::array<std::pair<const llvm::Instruction*, const Known*>, 4096> recent_{};  // of known_, by address
  Value kernel_ = nullptr;
  oclgrind::Size3 size_;
  const oclgrind::WorkItem* item_ = nullptr;
  std::uint32_t lane_ = 0;
};

Counter* g_counter = nullptr;

}}  // namespace clutch::gpu_count

extern "C" {
__attribute__((visibility("default"))) void initializePlugins(oclgrind::Context* context) {
  // As GPUs' compilers do it, functions are inlined, and loops that a pragma asks for unrolled, however long they become: their arrays are registers then.
  const char* const options[] = {"oclgrind", "-pragma-unroll-threshold=4000000", "-inline-threshold=10000000"};
  LLVMParseCommandLineOptions(3, options, "");
  clutch::gpu_count::g_counter = new clutch::gpu_count::Counter(context);
  context->registerPlugin(clutch::gpu_count::g_counter);
}
__attribute__((visibility("default"))) void releasePlugins(oclgrind::Context* context) {
  context->unregisterPlugin(clutch::gpu_count::g_counter);
  delete clutch::gpu_count::g_counter;
}
}
