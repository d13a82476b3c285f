// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#pragma once
#include "capi/convert.hpp"

struct clutch_device_t {
  using Value = clutch::Device;
  Value value;
};
struct clutch_stream_t {
  using Value = clutch::Stream;
  Value value;
};
struct clutch_event_t {
  using Value = clutch::Event;
  Value value;
};
struct clutch_tensor_t {
  using Value = clutch::Tensor;
  Value value;
};
struct clutch_storage_handle_t {
  using Value = clutch::StorageHandle;
  Value value;
};
struct clutch_generator_t {
  using Value = clutch::Generator;
  Value value;
};
struct clutch_partition_t {
  using Value = clutch::Partition;
  Value value;
};
struct clutch_partition_guard_t {
  using Value = clutch::PartitionGuard;
  Value value;
};
struct clutch_mem_pool_t {
  using Value = clutch::MemPool;
  Value value;
};
struct clutch_pool_guard_t {
  using Value = clutch::PoolGuard;
  Value value;
};
struct clutch_memory_label_guard_t {
  using Value = clutch::MemoryLabelGuard;
  Value value;
};
struct clutch_host_mapping_t {
  using Value = clutch::HostMapping;
  Value value;
};
struct clutch_safetensors_t {
  using Value = clutch::Safetensors;
  Value value;
};
struct clutch_expr_function_t {
  using Value = clutch::ExprFunction;
  Value value;
};
struct clutch_row_function_t {
  using Value = clutch::RowFunction;
  Value value;
};
struct clutch_linalg_packed_matrix_t {
  using Value = clutch::linalg::PackedMatrix;
  Value value;
};
struct clutch_sparse_semi_structured_t {
  using Value = clutch::sparse::SemiStructured;
  Value value;
};
struct clutch_attention_mask_mod_t {
  using Value = clutch::attention::MaskMod;
  Value value;
};
struct clutch_attention_score_mod_t {
  using Value = clutch::attention::ScoreMod;
  Value value;
};
struct clutch_attention_block_mask_t {
  using Value = clutch::attention::BlockMask;
  Value value;
};
struct clutch_attention_paged_cache_t {
  using Value = clutch::attention::PagedCache;
  Value value;
};
struct clutch_attention_sdpa_backends_t {
  using Value = clutch::attention::SdpaBackends;
  Value value;
};
struct clutch_optim_sgd_t {
  using Value = clutch::optim::SGD;
  Value value;
};
struct clutch_optim_adam_t {
  using Value = clutch::optim::Adam;
  Value value;
};
struct clutch_optim_adamw_t {
  using Value = clutch::optim::AdamW;
  Value value;
};
struct clutch_optim_adagrad_t {
  using Value = clutch::optim::Adagrad;
  Value value;
};
struct clutch_optim_rmsprop_t {
  using Value = clutch::optim::RMSprop;
  Value value;
};
struct clutch_optim_grad_scaler_t {
  using Value = clutch::optim::GradScaler;
  Value value;
};
struct clutch_optim_lr_scheduler_t {
  using Value = clutch::optim::LRScheduler;
  Value value;
};
struct clutch_graph_t {
  using Value = clutch::Graph;
  Value value;
};
struct clutch_graph_annotation_t {
  using Value = clutch::GraphAnnotation;
  Value value;
};
struct clutch_profiler_t {
  using Value = clutch::profiler::Profiler;
  Value value;
};
struct clutch_profiler_range_t {
  using Value = clutch::profiler::Range;
  Value value;
};
struct clutch_graph_program_t {
  using Value = clutch::GraphProgram;
  Value value;
};

namespace clutch { inline namespace v0 { namespace capi {

template <>
struct Enumerators<DType> {
  static constexpr std::array kNames{std::string_view("f64"), std::string_view("f32"), std::string_view("f16"), std::string_view("bf16"),
    std::string_view("f8e4m3fn"), std::string_view("f8e5m2"), std::string_view("f8e8m0fnu"), std::string_view("f6e2m3"), std::string_view("f6e3m2"),
    std::string_view("f4e2m1"), std::string_view("i8"), std::string_view("u8"), std::string_view("i16"), std::string_view("i32"), std::string_view("i64"),
    std::string_view("boolean"), std::string_view("c64"), std::string_view("c128"), std::string_view("u16"), std::string_view("u32"), std::string_view("u64")};
};
static_assert(static_cast<int>(DType::f64) == 0);
static_assert(static_cast<int>(DType::f32) == 1);
static_assert(static_cast<int>(DType::f16) == 2);
static_assert(static_cast<int>(DType::bf16) == 3);
static_assert(static_cast<int>(DType::f8e4m3fn) == 4);
static_assert(static_cast<int>(DType::f8e5m2) == 5);
static_assert(static_cast<int>(DType::f8e8m0fnu) == 6);
static_assert(static_cast<int>(DType::f6e2m3) == 7);
static_assert(static_cast<int>(DType::f6e3m2) == 8);
static_assert(static_cast<int>(DType::f4e2m1) == 9);
static_assert(static_cast<int>(DType::i8) == 10);
static_assert(static_cast<int>(DType::u8) == 11);
static_assert(static_cast<int>(DType::i16) == 12);
static_assert(static_cast<int>(DType::i32) == 13);
static_assert(static_cast<int>(DType::i64) == 14);
static_assert(static_cast<int>(DType::boolean) == 15);
static_assert(static_cast<int>(DType::c64) == 16);
static_assert(static_cast<int>(DType::c128) == 17);
static_assert(static_cast<int>(DType::u16) == 18);
static_assert(static_cast<int>(DType::u32) == 19);
static_assert(static_cast<int>(DType::u64) == 20);
template <>
struct Enumerators<DeviceType> {
  static constexpr std::array kNames{std::string_view("cpu"), std::string_view("gpu"), std::string_view("accelerator"), std::string_view("other")};
};
static_assert(static_cast<int>(DeviceType::cpu) == 0);
static_assert(static_cast<int>(DeviceType::gpu) == 1);
static_assert(static_cast<int>(DeviceType::accelerator) == 2);
static_assert(static_cast<int>(DeviceType::other) == 3);
template <>
struct Enumerators<StreamPriority> {
  static constexpr std::array kNames{std::string_view("normal"), std::string_view("low"), std::string_view("high")};
};
static_assert(static_cast<int>(StreamPriority::normal) == 0);
static_assert(static_cast<int>(StreamPriority::low) == 1);
static_assert(static_cast<int>(StreamPriority::high) == 2);
template <>
struct Enumerators<Isolation> {
  static constexpr std::array kNames{std::string_view("none"), std::string_view("threads"), std::string_view("cores")};
};
static_assert(static_cast<int>(Isolation::none) == 0);
static_assert(static_cast<int>(Isolation::threads) == 1);
static_assert(static_cast<int>(Isolation::cores) == 2);
template <>
struct Enumerators<Overflow> {
  static constexpr std::array kNames{std::string_view("nonfinite"), std::string_view("saturate")};
};
static_assert(static_cast<int>(Overflow::nonfinite) == 0);
static_assert(static_cast<int>(Overflow::saturate) == 1);
template <>
struct Enumerators<interop::DlpackMemory> {
  static constexpr std::array kNames{std::string_view("device"), std::string_view("host")};
};
static_assert(static_cast<int>(interop::DlpackMemory::device) == 0);
static_assert(static_cast<int>(interop::DlpackMemory::host) == 1);
template <>
struct Enumerators<MapAccess> {
  static constexpr std::array kNames{std::string_view("read"), std::string_view("write"), std::string_view("read_write")};
};
static_assert(static_cast<int>(MapAccess::read) == 0);
static_assert(static_cast<int>(MapAccess::write) == 1);
static_assert(static_cast<int>(MapAccess::read_write) == 2);
template <>
struct Enumerators<AddcOrder> {
  static constexpr std::array kNames{std::string_view("fma_of_quotient"), std::string_view("product_first"), std::string_view("unfused")};
};
static_assert(static_cast<int>(AddcOrder::fma_of_quotient) == 0);
static_assert(static_cast<int>(AddcOrder::product_first) == 1);
static_assert(static_cast<int>(AddcOrder::unfused) == 2);
template <>
struct Enumerators<GeluForm> {
  static constexpr std::array kNames{std::string_view("erf"), std::string_view("tanh")};
};
static_assert(static_cast<int>(GeluForm::erf) == 0);
static_assert(static_cast<int>(GeluForm::tanh) == 1);
template <>
struct Enumerators<Reduce> {
  static constexpr std::array kNames{std::string_view("sum"), std::string_view("prod"), std::string_view("amin"), std::string_view("amax"),
    std::string_view("mean"), std::string_view("any"), std::string_view("all")};
};
static_assert(static_cast<int>(Reduce::sum) == 0);
static_assert(static_cast<int>(Reduce::prod) == 1);
static_assert(static_cast<int>(Reduce::amin) == 2);
static_assert(static_cast<int>(Reduce::amax) == 3);
static_assert(static_cast<int>(Reduce::mean) == 4);
static_assert(static_cast<int>(Reduce::any) == 5);
static_assert(static_cast<int>(Reduce::all) == 6);
template <>
struct Enumerators<nn::Reduction> {
  static constexpr std::array kNames{std::string_view("mean"), std::string_view("sum"), std::string_view("none")};
};
static_assert(static_cast<int>(nn::Reduction::mean) == 0);
static_assert(static_cast<int>(nn::Reduction::sum) == 1);
static_assert(static_cast<int>(nn::Reduction::none) == 2);
template <>
struct Enumerators<nn::Activation> {
  static constexpr std::array kNames{std::string_view("none"), std::string_view("relu"), std::string_view("gelu"), std::string_view("gelu_tanh"),
    std::string_view("silu")};
};
static_assert(static_cast<int>(nn::Activation::none) == 0);
static_assert(static_cast<int>(nn::Activation::relu) == 1);
static_assert(static_cast<int>(nn::Activation::gelu) == 2);
static_assert(static_cast<int>(nn::Activation::gelu_tanh) == 3);
static_assert(static_cast<int>(nn::Activation::silu) == 4);
template <>
struct Enumerators<linalg::Numerics> {
  static constexpr std::array kNames{std::string_view("chain"), std::string_view("blocks"), std::string_view("tf32"), std::string_view("f8")};
};
static_assert(static_cast<int>(linalg::Numerics::chain) == 0);
static_assert(static_cast<int>(linalg::Numerics::blocks) == 1);
static_assert(static_cast<int>(linalg::Numerics::tf32) == 2);
static_assert(static_cast<int>(linalg::Numerics::f8) == 3);
template <>
struct Enumerators<linalg::Uplo> {
  static constexpr std::array kNames{std::string_view("lower"), std::string_view("upper")};
};
static_assert(static_cast<int>(linalg::Uplo::lower) == 0);
static_assert(static_cast<int>(linalg::Uplo::upper) == 1);
template <>
struct Enumerators<linalg::EighDriver> {
  static constexpr std::array kNames{std::string_view("automatic"), std::string_view("closed"), std::string_view("jacobi_lanes"),
    std::string_view("jacobi_group"), std::string_view("qr_lanes"), std::string_view("qr_group"), std::string_view("device_wide"),
    std::string_view("jacobi_items"), std::string_view("qr_items"), std::string_view("host")};
};
static_assert(static_cast<int>(linalg::EighDriver::automatic) == 0);
static_assert(static_cast<int>(linalg::EighDriver::closed) == 1);
static_assert(static_cast<int>(linalg::EighDriver::jacobi_lanes) == 2);
static_assert(static_cast<int>(linalg::EighDriver::jacobi_group) == 3);
static_assert(static_cast<int>(linalg::EighDriver::qr_lanes) == 4);
static_assert(static_cast<int>(linalg::EighDriver::qr_group) == 5);
static_assert(static_cast<int>(linalg::EighDriver::device_wide) == 6);
static_assert(static_cast<int>(linalg::EighDriver::jacobi_items) == 7);
static_assert(static_cast<int>(linalg::EighDriver::qr_items) == 8);
static_assert(static_cast<int>(linalg::EighDriver::host) == 9);
template <>
struct Enumerators<linalg::EighAccuracy> {
  static constexpr std::array kNames{std::string_view("norm"), std::string_view("relative")};
};
static_assert(static_cast<int>(linalg::EighAccuracy::norm) == 0);
static_assert(static_cast<int>(linalg::EighAccuracy::relative) == 1);
template <>
struct Enumerators<linalg::EighPhase> {
  static constexpr std::array kNames{std::string_view("free"), std::string_view("positive")};
};
static_assert(static_cast<int>(linalg::EighPhase::free) == 0);
static_assert(static_cast<int>(linalg::EighPhase::positive) == 1);
template <>
struct Enumerators<sparse::PruneRule> {
  static constexpr std::array kNames{std::string_view("groups"), std::string_view("tile_values"), std::string_view("tile_magnitudes"),
    std::string_view("causal1122")};
};
static_assert(static_cast<int>(sparse::PruneRule::groups) == 0);
static_assert(static_cast<int>(sparse::PruneRule::tile_values) == 1);
static_assert(static_cast<int>(sparse::PruneRule::tile_magnitudes) == 2);
static_assert(static_cast<int>(sparse::PruneRule::causal1122) == 3);
template <>
struct Enumerators<attention::Causal> {
  static constexpr std::array kNames{std::string_view("no"), std::string_view("upper_left"), std::string_view("lower_right")};
};
static_assert(static_cast<int>(attention::Causal::no) == 0);
static_assert(static_cast<int>(attention::Causal::upper_left) == 1);
static_assert(static_cast<int>(attention::Causal::lower_right) == 2);
template <>
struct Enumerators<attention::SdpaBackend> {
  static constexpr std::array kNames{std::string_view("flash"), std::string_view("math")};
};
static_assert(static_cast<int>(attention::SdpaBackend::flash) == 0);
static_assert(static_cast<int>(attention::SdpaBackend::math) == 1);
template <>
struct Enumerators<optim::Numerics> {
  static constexpr std::array kNames{std::string_view("automatic"), std::string_view("source"), std::string_view("torch_cpu"), std::string_view("f32"),
    std::string_view("composed")};
};
static_assert(static_cast<int>(optim::Numerics::automatic) == 0);
static_assert(static_cast<int>(optim::Numerics::source) == 1);
static_assert(static_cast<int>(optim::Numerics::torch_cpu) == 2);
static_assert(static_cast<int>(optim::Numerics::f32) == 3);
static_assert(static_cast<int>(optim::Numerics::composed) == 4);
template <>
struct Enumerators<optim::StateType> {
  static constexpr std::array kNames{std::string_view("same"), std::string_view("f32"), std::string_view("bf16")};
};
static_assert(static_cast<int>(optim::StateType::same) == 0);
static_assert(static_cast<int>(optim::StateType::f32) == 1);
static_assert(static_cast<int>(optim::StateType::bf16) == 2);
template <>
struct Enumerators<optim::Rounding> {
  static constexpr std::array kNames{std::string_view("nearest"), std::string_view("stochastic"), std::string_view("kahan")};
};
static_assert(static_cast<int>(optim::Rounding::nearest) == 0);
static_assert(static_cast<int>(optim::Rounding::stochastic) == 1);
static_assert(static_cast<int>(optim::Rounding::kahan) == 2);
template <>
struct Enumerators<optim::NormType> {
  static constexpr std::array kNames{std::string_view("two"), std::string_view("one"), std::string_view("inf")};
};
static_assert(static_cast<int>(optim::NormType::two) == 0);
static_assert(static_cast<int>(optim::NormType::one) == 1);
static_assert(static_cast<int>(optim::NormType::inf) == 2);
template <>
struct Enumerators<optim::Decay> {
  static constexpr std::array kNames{std::string_view("constant"), std::string_view("linear"), std::string_view("cosine")};
};
static_assert(static_cast<int>(optim::Decay::constant) == 0);
static_assert(static_cast<int>(optim::Decay::linear) == 1);
static_assert(static_cast<int>(optim::Decay::cosine) == 2);
template <>
struct Enumerators<CaptureMode> {
  static constexpr std::array kNames{std::string_view("global"), std::string_view("thread_local"), std::string_view("relaxed")};
};
static_assert(static_cast<int>(CaptureMode::global) == 0);
static_assert(static_cast<int>(CaptureMode::thread_local_) == 1);
static_assert(static_cast<int>(CaptureMode::relaxed) == 2);
template <>
struct Enumerators<GraphDump> {
  static constexpr std::array kNames{std::string_view("json"), std::string_view("dot"), std::string_view("html")};
};
static_assert(static_cast<int>(GraphDump::json) == 0);
static_assert(static_cast<int>(GraphDump::dot) == 1);
static_assert(static_cast<int>(GraphDump::html) == 2);
template <>
struct Enumerators<GraphNodeKind> {
  static constexpr std::array kNames{std::string_view("kernel"), std::string_view("copy"), std::string_view("fill"), std::string_view("host_task"),
    std::string_view("opaque")};
};
static_assert(static_cast<int>(GraphNodeKind::kernel) == 0);
static_assert(static_cast<int>(GraphNodeKind::copy) == 1);
static_assert(static_cast<int>(GraphNodeKind::fill) == 2);
static_assert(static_cast<int>(GraphNodeKind::host_task) == 3);
static_assert(static_cast<int>(GraphNodeKind::opaque) == 4);
template <>
struct Enumerators<Addressing> {
  static constexpr std::array kNames{std::string_view("pointer"), std::string_view("base_and_offset")};
};
static_assert(static_cast<int>(Addressing::pointer) == 0);
static_assert(static_cast<int>(Addressing::base_and_offset) == 1);
template <>
struct Enumerators<Argument::Kind> {
  static constexpr std::array kNames{std::string_view("input"), std::string_view("output"), std::string_view("inout"), std::string_view("value"),
    std::string_view("local")};
};
static_assert(static_cast<int>(Argument::Kind::input) == 0);
static_assert(static_cast<int>(Argument::Kind::output) == 1);
static_assert(static_cast<int>(Argument::Kind::inout) == 2);
static_assert(static_cast<int>(Argument::Kind::value) == 3);
static_assert(static_cast<int>(Argument::Kind::local) == 4);
template <>
struct Enumerators<profiler::TraceNames> {
  static constexpr std::array kNames{std::string_view("opencl"), std::string_view("hta")};
};
static_assert(static_cast<int>(profiler::TraceNames::opencl) == 0);
static_assert(static_cast<int>(profiler::TraceNames::hta) == 1);
template <>
struct Enumerators<profiler::ProfilerAction> {
  static constexpr std::array kNames{std::string_view("none"), std::string_view("warmup"), std::string_view("record"), std::string_view("record_and_save")};
};
static_assert(static_cast<int>(profiler::ProfilerAction::none) == 0);
static_assert(static_cast<int>(profiler::ProfilerAction::warmup) == 1);
static_assert(static_cast<int>(profiler::ProfilerAction::record) == 2);
static_assert(static_cast<int>(profiler::ProfilerAction::record_and_save) == 3);
static_assert(static_cast<int>(ErrorCode::ok) == CLUTCH_OK);
static_assert(static_cast<int>(ErrorCode::invalid_argument) == CLUTCH_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::invalid_shape) == CLUTCH_INVALID_SHAPE);
static_assert(static_cast<int>(ErrorCode::invalid_dtype) == CLUTCH_INVALID_DTYPE);
static_assert(static_cast<int>(ErrorCode::device_mismatch) == CLUTCH_DEVICE_MISMATCH);
static_assert(static_cast<int>(ErrorCode::invalid_overlap) == CLUTCH_INVALID_OVERLAP);
static_assert(static_cast<int>(ErrorCode::invalid_setting) == CLUTCH_INVALID_SETTING);
static_assert(static_cast<int>(ErrorCode::no_platform) == CLUTCH_NO_PLATFORM);
static_assert(static_cast<int>(ErrorCode::no_device) == CLUTCH_NO_DEVICE);
static_assert(static_cast<int>(ErrorCode::not_supported) == CLUTCH_NOT_SUPPORTED);
static_assert(static_cast<int>(ErrorCode::out_of_memory) == CLUTCH_OUT_OF_MEMORY);
static_assert(static_cast<int>(ErrorCode::build_failure) == CLUTCH_BUILD_FAILURE);
static_assert(static_cast<int>(ErrorCode::opencl) == CLUTCH_OPENCL);
static_assert(static_cast<int>(ErrorCode::stream_failed) == CLUTCH_STREAM_FAILED);
static_assert(static_cast<int>(ErrorCode::device_lost) == CLUTCH_DEVICE_LOST);
static_assert(static_cast<int>(ErrorCode::strict) == CLUTCH_STRICT);
static_assert(static_cast<int>(ErrorCode::io) == CLUTCH_IO);
static_assert(static_cast<int>(ErrorCode::capturing) == CLUTCH_CAPTURING);
static_assert(static_cast<int>(ErrorCode::internal) == CLUTCH_INTERNAL);
static_assert(static_cast<int>(ErrorCode::not_converged) == CLUTCH_NOT_CONVERGED);
static_assert(static_cast<int>(ErrorCode::timed_out) == CLUTCH_TIMED_OUT);
static_assert(static_cast<int>(ErrorCode::peer_failed) == CLUTCH_PEER_FAILED);
static_assert(static_cast<int>(ErrorCode::mismatch) == CLUTCH_MISMATCH);

template <>
struct Initial<clutch_device_traits_t> {
  static constexpr std::string_view kName = "clutch_device_traits_t";
  static clutch_device_traits_t value() { return CLUTCH_DEVICE_TRAITS_INIT; }
};
static_assert(sizeof(clutch_device_traits_t) == 8 * 34);
DeviceTraits read(const clutch_device_traits_t* given, std::string_view what);
template <>
struct Initial<clutch_stream_options_t> {
  static constexpr std::string_view kName = "clutch_stream_options_t";
  static clutch_stream_options_t value() { return CLUTCH_STREAM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_stream_options_t) == 8 * 2);
StreamOptions read(const clutch_stream_options_t* given, std::string_view what);
template <>
struct Initial<clutch_tensor_options_t> {
  static constexpr std::string_view kName = "clutch_tensor_options_t";
  static clutch_tensor_options_t value() { return CLUTCH_TENSOR_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_tensor_options_t) == 8 * 3);
TensorOptions read(const clutch_tensor_options_t* given, std::string_view what);
template <>
struct Initial<clutch_cast_options_t> {
  static constexpr std::string_view kName = "clutch_cast_options_t";
  static clutch_cast_options_t value() { return CLUTCH_CAST_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_cast_options_t) == 8 * 2);
CastOptions read(const clutch_cast_options_t* given, std::string_view what);
template <>
struct Initial<clutch_copy_options_t> {
  static constexpr std::string_view kName = "clutch_copy_options_t";
  static clutch_copy_options_t value() { return CLUTCH_COPY_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_copy_options_t) == 8 * 3);
CopyOptions read(const clutch_copy_options_t* given, std::string_view what);
template <>
struct Initial<clutch_fill_options_t> {
  static constexpr std::string_view kName = "clutch_fill_options_t";
  static clutch_fill_options_t value() { return CLUTCH_FILL_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_fill_options_t) == 8 * 2);
FillOptions read(const clutch_fill_options_t* given, std::string_view what);
template <>
struct Initial<clutch_generator_state_t> {
  static constexpr std::string_view kName = "clutch_generator_state_t";
  static clutch_generator_state_t value() { return CLUTCH_GENERATOR_STATE_INIT; }
};
static_assert(sizeof(clutch_generator_state_t) == 8 * 3);
GeneratorState read(const clutch_generator_state_t* given, std::string_view what);
template <>
struct Initial<clutch_partition_options_t> {
  static constexpr std::string_view kName = "clutch_partition_options_t";
  static clutch_partition_options_t value() { return CLUTCH_PARTITION_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_partition_options_t) == 8 * 4);
PartitionOptions read(const clutch_partition_options_t* given, std::string_view what);
template <>
struct Initial<clutch_mem_pool_options_t> {
  static constexpr std::string_view kName = "clutch_mem_pool_options_t";
  static clutch_mem_pool_options_t value() { return CLUTCH_MEM_POOL_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_mem_pool_options_t) == 8 * 3);
MemPoolOptions read(const clutch_mem_pool_options_t* given, std::string_view what);
template <>
struct Initial<clutch_pool_id_t> {
  static constexpr std::string_view kName = "clutch_pool_id_t";
  static clutch_pool_id_t value() { return CLUTCH_POOL_ID_INIT; }
};
static_assert(sizeof(clutch_pool_id_t) == 8 * 3);
PoolId read(const clutch_pool_id_t* given, std::string_view what);
template <>
struct Initial<clutch_memory_info_t> {
  static constexpr std::string_view kName = "clutch_memory_info_t";
  static clutch_memory_info_t value() { return CLUTCH_MEMORY_INFO_INIT; }
};
static_assert(sizeof(clutch_memory_info_t) == 8 * 4);
MemoryInfo read(const clutch_memory_info_t* given, std::string_view what);
template <>
struct Initial<clutch_memory_history_options_t> {
  static constexpr std::string_view kName = "clutch_memory_history_options_t";
  static clutch_memory_history_options_t value() { return CLUTCH_MEMORY_HISTORY_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_memory_history_options_t) == 8 * 3);
MemoryHistoryOptions read(const clutch_memory_history_options_t* given, std::string_view what);
template <>
struct Initial<clutch_cache_usage_t> {
  static constexpr std::string_view kName = "clutch_cache_usage_t";
  static clutch_cache_usage_t value() { return CLUTCH_CACHE_USAGE_INIT; }
};
static_assert(sizeof(clutch_cache_usage_t) == 8 * 4);
CacheUsage read(const clutch_cache_usage_t* given, std::string_view what);
template <>
struct Initial<clutch_build_counters_t> {
  static constexpr std::string_view kName = "clutch_build_counters_t";
  static clutch_build_counters_t value() { return CLUTCH_BUILD_COUNTERS_INIT; }
};
static_assert(sizeof(clutch_build_counters_t) == 8 * 5);
BuildCounters read(const clutch_build_counters_t* given, std::string_view what);
template <>
struct Initial<clutch_cost_t> {
  static constexpr std::string_view kName = "clutch_cost_t";
  static clutch_cost_t value() { return CLUTCH_COST_INIT; }
};
static_assert(sizeof(clutch_cost_t) == 8 * 4);
Cost read(const clutch_cost_t* given, std::string_view what);
template <>
struct Initial<clutch_addc_options_t> {
  static constexpr std::string_view kName = "clutch_addc_options_t";
  static clutch_addc_options_t value() { return CLUTCH_ADDC_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_addc_options_t) == 8 * 4);
AddcOptions read(const clutch_addc_options_t* given, std::string_view what);
template <>
struct Initial<clutch_map_options_t> {
  static constexpr std::string_view kName = "clutch_map_options_t";
  static clutch_map_options_t value() { return CLUTCH_MAP_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_map_options_t) == 8 * 4);
MapOptions read(const clutch_map_options_t* given, std::string_view what);
template <>
struct Initial<clutch_cat_options_t> {
  static constexpr std::string_view kName = "clutch_cat_options_t";
  static clutch_cat_options_t value() { return CLUTCH_CAT_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_cat_options_t) == 8 * 2);
CatOptions read(const clutch_cat_options_t* given, std::string_view what);
template <>
struct Initial<clutch_cumsum_options_t> {
  static constexpr std::string_view kName = "clutch_cumsum_options_t";
  static clutch_cumsum_options_t value() { return CLUTCH_CUMSUM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_cumsum_options_t) == 8 * 5);
CumsumOptions read(const clutch_cumsum_options_t* given, std::string_view what);
template <>
struct Initial<clutch_uniform_options_t> {
  static constexpr std::string_view kName = "clutch_uniform_options_t";
  static clutch_uniform_options_t value() { return CLUTCH_UNIFORM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_uniform_options_t) == 8 * 6);
UniformOptions read(const clutch_uniform_options_t* given, std::string_view what);
template <>
struct Initial<clutch_normal_options_t> {
  static constexpr std::string_view kName = "clutch_normal_options_t";
  static clutch_normal_options_t value() { return CLUTCH_NORMAL_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_normal_options_t) == 8 * 6);
NormalOptions read(const clutch_normal_options_t* given, std::string_view what);
template <>
struct Initial<clutch_random_options_t> {
  static constexpr std::string_view kName = "clutch_random_options_t";
  static clutch_random_options_t value() { return CLUTCH_RANDOM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_random_options_t) == 8 * 6);
RandomOptions read(const clutch_random_options_t* given, std::string_view what);
template <>
struct Initial<clutch_draw_options_t> {
  static constexpr std::string_view kName = "clutch_draw_options_t";
  static clutch_draw_options_t value() { return CLUTCH_DRAW_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_draw_options_t) == 8 * 4);
DrawOptions read(const clutch_draw_options_t* given, std::string_view what);
template <>
struct Initial<clutch_permutation_options_t> {
  static constexpr std::string_view kName = "clutch_permutation_options_t";
  static clutch_permutation_options_t value() { return CLUTCH_PERMUTATION_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_permutation_options_t) == 8 * 6);
PermutationOptions read(const clutch_permutation_options_t* given, std::string_view what);
template <>
struct Initial<clutch_reduce_options_t> {
  static constexpr std::string_view kName = "clutch_reduce_options_t";
  static clutch_reduce_options_t value() { return CLUTCH_REDUCE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_reduce_options_t) == 8 * 8);
ReduceOptions read(const clutch_reduce_options_t* given, std::string_view what);
template <>
struct Initial<clutch_rowwise_options_t> {
  static constexpr std::string_view kName = "clutch_rowwise_options_t";
  static clutch_rowwise_options_t value() { return CLUTCH_ROWWISE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_rowwise_options_t) == 8 * 6);
RowwiseOptions read(const clutch_rowwise_options_t* given, std::string_view what);
template <>
struct Initial<clutch_sort_options_t> {
  static constexpr std::string_view kName = "clutch_sort_options_t";
  static clutch_sort_options_t value() { return CLUTCH_SORT_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_sort_options_t) == 8 * 3);
SortOptions read(const clutch_sort_options_t* given, std::string_view what);
template <>
struct Initial<clutch_topk_options_t> {
  static constexpr std::string_view kName = "clutch_topk_options_t";
  static clutch_topk_options_t value() { return CLUTCH_TOPK_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_topk_options_t) == 8 * 3);
TopkOptions read(const clutch_topk_options_t* given, std::string_view what);
template <>
struct Initial<clutch_kthvalue_options_t> {
  static constexpr std::string_view kName = "clutch_kthvalue_options_t";
  static clutch_kthvalue_options_t value() { return CLUTCH_KTHVALUE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_kthvalue_options_t) == 8 * 3);
KthvalueOptions read(const clutch_kthvalue_options_t* given, std::string_view what);
template <>
struct Initial<clutch_sorted_t> {
  static constexpr std::string_view kName = "clutch_sorted_t";
  static clutch_sorted_t value() { return CLUTCH_SORTED_INIT; }
};
static_assert(sizeof(clutch_sorted_t) == 8 * 3);
Sorted read(const clutch_sorted_t* given, std::string_view what);
template <>
struct Initial<clutch_group_options_t> {
  static constexpr std::string_view kName = "clutch_group_options_t";
  static clutch_group_options_t value() { return CLUTCH_GROUP_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_group_options_t) == 8 * 2);
GroupOptions read(const clutch_group_options_t* given, std::string_view what);
template <>
struct Initial<clutch_groups_t> {
  static constexpr std::string_view kName = "clutch_groups_t";
  static clutch_groups_t value() { return CLUTCH_GROUPS_INIT; }
};
static_assert(sizeof(clutch_groups_t) == 8 * 3);
Groups read(const clutch_groups_t* given, std::string_view what);
template <>
struct Initial<clutch_index_put_options_t> {
  static constexpr std::string_view kName = "clutch_index_put_options_t";
  static clutch_index_put_options_t value() { return CLUTCH_INDEX_PUT_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_index_put_options_t) == 8 * 2);
IndexPutOptions read(const clutch_index_put_options_t* given, std::string_view what);
template <>
struct Initial<clutch_nonzero_options_t> {
  static constexpr std::string_view kName = "clutch_nonzero_options_t";
  static clutch_nonzero_options_t value() { return CLUTCH_NONZERO_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_nonzero_options_t) == 8 * 2);
NonzeroOptions read(const clutch_nonzero_options_t* given, std::string_view what);
template <>
struct Initial<clutch_nonzero_static_options_t> {
  static constexpr std::string_view kName = "clutch_nonzero_static_options_t";
  static clutch_nonzero_static_options_t value() { return CLUTCH_NONZERO_STATIC_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_nonzero_static_options_t) == 8 * 3);
NonzeroStaticOptions read(const clutch_nonzero_static_options_t* given, std::string_view what);
template <>
struct Initial<clutch_unique_options_t> {
  static constexpr std::string_view kName = "clutch_unique_options_t";
  static clutch_unique_options_t value() { return CLUTCH_UNIQUE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_unique_options_t) == 8 * 4);
UniqueOptions read(const clutch_unique_options_t* given, std::string_view what);
template <>
struct Initial<clutch_unique_t> {
  static constexpr std::string_view kName = "clutch_unique_t";
  static clutch_unique_t value() { return CLUTCH_UNIQUE_INIT; }
};
static_assert(sizeof(clutch_unique_t) == 8 * 4);
Unique read(const clutch_unique_t* given, std::string_view what);
template <>
struct Initial<clutch_segment_options_t> {
  static constexpr std::string_view kName = "clutch_segment_options_t";
  static clutch_segment_options_t value() { return CLUTCH_SEGMENT_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_segment_options_t) == 8 * 5);
SegmentOptions read(const clutch_segment_options_t* given, std::string_view what);
template <>
struct Initial<clutch_scatter_options_t> {
  static constexpr std::string_view kName = "clutch_scatter_options_t";
  static clutch_scatter_options_t value() { return CLUTCH_SCATTER_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_scatter_options_t) == 8 * 4);
ScatterOptions read(const clutch_scatter_options_t* given, std::string_view what);
template <>
struct Initial<clutch_scatter_gradients_t> {
  static constexpr std::string_view kName = "clutch_scatter_gradients_t";
  static clutch_scatter_gradients_t value() { return CLUTCH_SCATTER_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_scatter_gradients_t) == 8 * 3);
ScatterGradients read(const clutch_scatter_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_selective_scan_options_t> {
  static constexpr std::string_view kName = "clutch_selective_scan_options_t";
  static clutch_selective_scan_options_t value() { return CLUTCH_SELECTIVE_SCAN_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_selective_scan_options_t) == 8 * 7);
SelectiveScanOptions read(const clutch_selective_scan_options_t* given, std::string_view what);
template <>
struct Initial<clutch_selective_scan_result_t> {
  static constexpr std::string_view kName = "clutch_selective_scan_result_t";
  static clutch_selective_scan_result_t value() { return CLUTCH_SELECTIVE_SCAN_RESULT_INIT; }
};
static_assert(sizeof(clutch_selective_scan_result_t) == 8 * 3);
SelectiveScanResult read(const clutch_selective_scan_result_t* given, std::string_view what);
template <>
struct Initial<clutch_selective_scan_gradients_t> {
  static constexpr std::string_view kName = "clutch_selective_scan_gradients_t";
  static clutch_selective_scan_gradients_t value() { return CLUTCH_SELECTIVE_SCAN_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_selective_scan_gradients_t) == 8 * 10);
SelectiveScanGradients read(const clutch_selective_scan_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_norm_options_t> {
  static constexpr std::string_view kName = "clutch_nn_norm_options_t";
  static clutch_nn_norm_options_t value() { return CLUTCH_NN_NORM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_nn_norm_options_t) == 8 * 3);
nn::NormOptions read(const clutch_nn_norm_options_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_layer_norm_result_t> {
  static constexpr std::string_view kName = "clutch_nn_layer_norm_result_t";
  static clutch_nn_layer_norm_result_t value() { return CLUTCH_NN_LAYER_NORM_RESULT_INIT; }
};
static_assert(sizeof(clutch_nn_layer_norm_result_t) == 8 * 4);
nn::LayerNormResult read(const clutch_nn_layer_norm_result_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_layer_norm_gradients_t> {
  static constexpr std::string_view kName = "clutch_nn_layer_norm_gradients_t";
  static clutch_nn_layer_norm_gradients_t value() { return CLUTCH_NN_LAYER_NORM_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_nn_layer_norm_gradients_t) == 8 * 4);
nn::LayerNormGradients read(const clutch_nn_layer_norm_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_rms_norm_result_t> {
  static constexpr std::string_view kName = "clutch_nn_rms_norm_result_t";
  static clutch_nn_rms_norm_result_t value() { return CLUTCH_NN_RMS_NORM_RESULT_INIT; }
};
static_assert(sizeof(clutch_nn_rms_norm_result_t) == 8 * 3);
nn::RmsNormResult read(const clutch_nn_rms_norm_result_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_rms_norm_gradients_t> {
  static constexpr std::string_view kName = "clutch_nn_rms_norm_gradients_t";
  static clutch_nn_rms_norm_gradients_t value() { return CLUTCH_NN_RMS_NORM_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_nn_rms_norm_gradients_t) == 8 * 3);
nn::RmsNormGradients read(const clutch_nn_rms_norm_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_cross_entropy_options_t> {
  static constexpr std::string_view kName = "clutch_nn_cross_entropy_options_t";
  static clutch_nn_cross_entropy_options_t value() { return CLUTCH_NN_CROSS_ENTROPY_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_nn_cross_entropy_options_t) == 8 * 5);
nn::CrossEntropyOptions read(const clutch_nn_cross_entropy_options_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_cross_entropy_result_t> {
  static constexpr std::string_view kName = "clutch_nn_cross_entropy_result_t";
  static clutch_nn_cross_entropy_result_t value() { return CLUTCH_NN_CROSS_ENTROPY_RESULT_INIT; }
};
static_assert(sizeof(clutch_nn_cross_entropy_result_t) == 8 * 4);
nn::CrossEntropyResult read(const clutch_nn_cross_entropy_result_t* given, std::string_view what);
template <>
struct Initial<clutch_nn_embedding_backward_options_t> {
  static constexpr std::string_view kName = "clutch_nn_embedding_backward_options_t";
  static clutch_nn_embedding_backward_options_t value() { return CLUTCH_NN_EMBEDDING_BACKWARD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_nn_embedding_backward_options_t) == 8 * 3);
nn::EmbeddingBackwardOptions read(const clutch_nn_embedding_backward_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_matmul_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_matmul_options_t";
  static clutch_linalg_matmul_options_t value() { return CLUTCH_LINALG_MATMUL_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_matmul_options_t) == 8 * 7);
linalg::MatmulOptions read(const clutch_linalg_matmul_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_linear_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_linear_options_t";
  static clutch_linalg_linear_options_t value() { return CLUTCH_LINALG_LINEAR_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_linear_options_t) == 8 * 5);
linalg::LinearOptions read(const clutch_linalg_linear_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_matmul_gradients_t> {
  static constexpr std::string_view kName = "clutch_linalg_matmul_gradients_t";
  static clutch_linalg_matmul_gradients_t value() { return CLUTCH_LINALG_MATMUL_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_linalg_matmul_gradients_t) == 8 * 5);
linalg::MatmulGradients read(const clutch_linalg_matmul_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_matmul_backward_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_matmul_backward_options_t";
  static clutch_linalg_matmul_backward_options_t value() { return CLUTCH_LINALG_MATMUL_BACKWARD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_matmul_backward_options_t) == 8 * 2);
linalg::MatmulBackwardOptions read(const clutch_linalg_matmul_backward_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_linear_gradients_t> {
  static constexpr std::string_view kName = "clutch_linalg_linear_gradients_t";
  static clutch_linalg_linear_gradients_t value() { return CLUTCH_LINALG_LINEAR_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_linalg_linear_gradients_t) == 8 * 4);
linalg::LinearGradients read(const clutch_linalg_linear_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_scaled_matmul_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_scaled_matmul_options_t";
  static clutch_linalg_scaled_matmul_options_t value() { return CLUTCH_LINALG_SCALED_MATMUL_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_scaled_matmul_options_t) == 8 * 5);
linalg::ScaledMatmulOptions read(const clutch_linalg_scaled_matmul_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_quantization_t> {
  static constexpr std::string_view kName = "clutch_linalg_quantization_t";
  static clutch_linalg_quantization_t value() { return CLUTCH_LINALG_QUANTIZATION_INIT; }
};
static_assert(sizeof(clutch_linalg_quantization_t) == 8 * 3);
linalg::Quantization read(const clutch_linalg_quantization_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_quantized_matmul_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_quantized_matmul_options_t";
  static clutch_linalg_quantized_matmul_options_t value() { return CLUTCH_LINALG_QUANTIZED_MATMUL_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_quantized_matmul_options_t) == 8 * 5);
linalg::QuantizedMatmulOptions read(const clutch_linalg_quantized_matmul_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_eigh_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_eigh_options_t";
  static clutch_linalg_eigh_options_t value() { return CLUTCH_LINALG_EIGH_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_eigh_options_t) == 8 * 9);
linalg::EighOptions read(const clutch_linalg_eigh_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_eigh_status_t> {
  static constexpr std::string_view kName = "clutch_linalg_eigh_status_t";
  static clutch_linalg_eigh_status_t value() { return CLUTCH_LINALG_EIGH_STATUS_INIT; }
};
static_assert(sizeof(clutch_linalg_eigh_status_t) == 8 * 3);
linalg::EighStatus read(const clutch_linalg_eigh_status_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_eigh_backward_options_t> {
  static constexpr std::string_view kName = "clutch_linalg_eigh_backward_options_t";
  static clutch_linalg_eigh_backward_options_t value() { return CLUTCH_LINALG_EIGH_BACKWARD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_linalg_eigh_backward_options_t) == 8 * 2);
linalg::EighBackwardOptions read(const clutch_linalg_eigh_backward_options_t* given, std::string_view what);
template <>
struct Initial<clutch_linalg_eigh_gradient_t> {
  static constexpr std::string_view kName = "clutch_linalg_eigh_gradient_t";
  static clutch_linalg_eigh_gradient_t value() { return CLUTCH_LINALG_EIGH_GRADIENT_INIT; }
};
static_assert(sizeof(clutch_linalg_eigh_gradient_t) == 8 * 3);
linalg::EighGradient read(const clutch_linalg_eigh_gradient_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_prune_options_t> {
  static constexpr std::string_view kName = "clutch_sparse_prune_options_t";
  static clutch_sparse_prune_options_t value() { return CLUTCH_SPARSE_PRUNE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_sparse_prune_options_t) == 8 * 2);
sparse::PruneOptions read(const clutch_sparse_prune_options_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_compress_options_t> {
  static constexpr std::string_view kName = "clutch_sparse_compress_options_t";
  static clutch_sparse_compress_options_t value() { return CLUTCH_SPARSE_COMPRESS_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_sparse_compress_options_t) == 8 * 2);
sparse::CompressOptions read(const clutch_sparse_compress_options_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_cutlass_layout_t> {
  static constexpr std::string_view kName = "clutch_sparse_cutlass_layout_t";
  static clutch_sparse_cutlass_layout_t value() { return CLUTCH_SPARSE_CUTLASS_LAYOUT_INIT; }
};
static_assert(sizeof(clutch_sparse_cutlass_layout_t) == 8 * 3);
sparse::CutlassLayout read(const clutch_sparse_cutlass_layout_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_linear_backward_options_t> {
  static constexpr std::string_view kName = "clutch_sparse_linear_backward_options_t";
  static clutch_sparse_linear_backward_options_t value() { return CLUTCH_SPARSE_LINEAR_BACKWARD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_sparse_linear_backward_options_t) == 8 * 5);
sparse::LinearBackwardOptions read(const clutch_sparse_linear_backward_options_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_csr_t> {
  static constexpr std::string_view kName = "clutch_sparse_csr_t";
  static clutch_sparse_csr_t value() { return CLUTCH_SPARSE_CSR_INIT; }
};
static_assert(sizeof(clutch_sparse_csr_t) == 8 * 5);
sparse::Csr read(const clutch_sparse_csr_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_spmm_options_t> {
  static constexpr std::string_view kName = "clutch_sparse_spmm_options_t";
  static clutch_sparse_spmm_options_t value() { return CLUTCH_SPARSE_SPMM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_sparse_spmm_options_t) == 8 * 3);
sparse::SpmmOptions read(const clutch_sparse_spmm_options_t* given, std::string_view what);
template <>
struct Initial<clutch_sparse_spmm_gradients_t> {
  static constexpr std::string_view kName = "clutch_sparse_spmm_gradients_t";
  static clutch_sparse_spmm_gradients_t value() { return CLUTCH_SPARSE_SPMM_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_sparse_spmm_gradients_t) == 8 * 3);
sparse::SpmmGradients read(const clutch_sparse_spmm_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_block_size_t> {
  static constexpr std::string_view kName = "clutch_attention_block_size_t";
  static clutch_attention_block_size_t value() { return CLUTCH_ATTENTION_BLOCK_SIZE_INIT; }
};
static_assert(sizeof(clutch_attention_block_size_t) == 8 * 3);
attention::BlockSize read(const clutch_attention_block_size_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_block_mask_options_t> {
  static constexpr std::string_view kName = "clutch_attention_block_mask_options_t";
  static clutch_attention_block_mask_options_t value() { return CLUTCH_ATTENTION_BLOCK_MASK_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_attention_block_mask_options_t) == 8 * 8);
attention::BlockMaskOptions read(const clutch_attention_block_mask_options_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_varlen_t> {
  static constexpr std::string_view kName = "clutch_attention_varlen_t";
  static clutch_attention_varlen_t value() { return CLUTCH_ATTENTION_VARLEN_INIT; }
};
static_assert(sizeof(clutch_attention_varlen_t) == 8 * 8);
attention::Varlen read(const clutch_attention_varlen_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_flex_options_t> {
  static constexpr std::string_view kName = "clutch_attention_flex_options_t";
  static clutch_attention_flex_options_t value() { return CLUTCH_ATTENTION_FLEX_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_attention_flex_options_t) == 8 * 15);
attention::FlexOptions read(const clutch_attention_flex_options_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_flex_result_t> {
  static constexpr std::string_view kName = "clutch_attention_flex_result_t";
  static clutch_attention_flex_result_t value() { return CLUTCH_ATTENTION_FLEX_RESULT_INIT; }
};
static_assert(sizeof(clutch_attention_flex_result_t) == 8 * 5);
attention::FlexResult read(const clutch_attention_flex_result_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_flex_backward_options_t> {
  static constexpr std::string_view kName = "clutch_attention_flex_backward_options_t";
  static clutch_attention_flex_backward_options_t value() { return CLUTCH_ATTENTION_FLEX_BACKWARD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_attention_flex_backward_options_t) == 8 * 3);
attention::FlexBackwardOptions read(const clutch_attention_flex_backward_options_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_flex_gradients_t> {
  static constexpr std::string_view kName = "clutch_attention_flex_gradients_t";
  static clutch_attention_flex_gradients_t value() { return CLUTCH_ATTENTION_FLEX_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_attention_flex_gradients_t) == 8 * 6);
attention::FlexGradients read(const clutch_attention_flex_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_sdpa_options_t> {
  static constexpr std::string_view kName = "clutch_attention_sdpa_options_t";
  static clutch_attention_sdpa_options_t value() { return CLUTCH_ATTENTION_SDPA_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_attention_sdpa_options_t) == 8 * 9);
attention::SdpaOptions read(const clutch_attention_sdpa_options_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_sdpa_result_t> {
  static constexpr std::string_view kName = "clutch_attention_sdpa_result_t";
  static clutch_attention_sdpa_result_t value() { return CLUTCH_ATTENTION_SDPA_RESULT_INIT; }
};
static_assert(sizeof(clutch_attention_sdpa_result_t) == 8 * 4);
attention::SdpaResult read(const clutch_attention_sdpa_result_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_multi_head_weights_t> {
  static constexpr std::string_view kName = "clutch_attention_multi_head_weights_t";
  static clutch_attention_multi_head_weights_t value() { return CLUTCH_ATTENTION_MULTI_HEAD_WEIGHTS_INIT; }
};
static_assert(sizeof(clutch_attention_multi_head_weights_t) == 8 * 7);
attention::MultiHeadWeights read(const clutch_attention_multi_head_weights_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_multi_head_result_t> {
  static constexpr std::string_view kName = "clutch_attention_multi_head_result_t";
  static clutch_attention_multi_head_result_t value() { return CLUTCH_ATTENTION_MULTI_HEAD_RESULT_INIT; }
};
static_assert(sizeof(clutch_attention_multi_head_result_t) == 8 * 6);
attention::MultiHeadResult read(const clutch_attention_multi_head_result_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_multi_head_gradients_t> {
  static constexpr std::string_view kName = "clutch_attention_multi_head_gradients_t";
  static clutch_attention_multi_head_gradients_t value() { return CLUTCH_ATTENTION_MULTI_HEAD_GRADIENTS_INIT; }
};
static_assert(sizeof(clutch_attention_multi_head_gradients_t) == 8 * 6);
attention::MultiHeadGradients read(const clutch_attention_multi_head_gradients_t* given, std::string_view what);
template <>
struct Initial<clutch_attention_paged_cache_options_t> {
  static constexpr std::string_view kName = "clutch_attention_paged_cache_options_t";
  static clutch_attention_paged_cache_options_t value() { return CLUTCH_ATTENTION_PAGED_CACHE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_attention_paged_cache_options_t) == 8 * 10);
attention::PagedCacheOptions read(const clutch_attention_paged_cache_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_precision_t> {
  static constexpr std::string_view kName = "clutch_optim_precision_t";
  static clutch_optim_precision_t value() { return CLUTCH_OPTIM_PRECISION_INIT; }
};
static_assert(sizeof(clutch_optim_precision_t) == 8 * 6);
optim::Precision read(const clutch_optim_precision_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_sgd_options_t> {
  static constexpr std::string_view kName = "clutch_optim_sgd_options_t";
  static clutch_optim_sgd_options_t value() { return CLUTCH_OPTIM_SGD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_sgd_options_t) == 8 * 8);
optim::SGDOptions read(const clutch_optim_sgd_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_adam_options_t> {
  static constexpr std::string_view kName = "clutch_optim_adam_options_t";
  static clutch_optim_adam_options_t value() { return CLUTCH_OPTIM_ADAM_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_adam_options_t) == 8 * 10);
optim::AdamOptions read(const clutch_optim_adam_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_adamw_options_t> {
  static constexpr std::string_view kName = "clutch_optim_adamw_options_t";
  static clutch_optim_adamw_options_t value() { return CLUTCH_OPTIM_ADAMW_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_adamw_options_t) == 8 * 9);
optim::AdamWOptions read(const clutch_optim_adamw_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_adagrad_options_t> {
  static constexpr std::string_view kName = "clutch_optim_adagrad_options_t";
  static clutch_optim_adagrad_options_t value() { return CLUTCH_OPTIM_ADAGRAD_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_adagrad_options_t) == 8 * 8);
optim::AdagradOptions read(const clutch_optim_adagrad_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_rmsprop_options_t> {
  static constexpr std::string_view kName = "clutch_optim_rmsprop_options_t";
  static clutch_optim_rmsprop_options_t value() { return CLUTCH_OPTIM_RMSPROP_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_rmsprop_options_t) == 8 * 9);
optim::RMSpropOptions read(const clutch_optim_rmsprop_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_step_options_t> {
  static constexpr std::string_view kName = "clutch_optim_step_options_t";
  static clutch_optim_step_options_t value() { return CLUTCH_OPTIM_STEP_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_step_options_t) == 8 * 8);
optim::StepOptions read(const clutch_optim_step_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_clip_options_t> {
  static constexpr std::string_view kName = "clutch_optim_clip_options_t";
  static clutch_optim_clip_options_t value() { return CLUTCH_OPTIM_CLIP_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_clip_options_t) == 8 * 3);
optim::ClipOptions read(const clutch_optim_clip_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_grad_norm_t> {
  static constexpr std::string_view kName = "clutch_optim_grad_norm_t";
  static clutch_optim_grad_norm_t value() { return CLUTCH_OPTIM_GRAD_NORM_INIT; }
};
static_assert(sizeof(clutch_optim_grad_norm_t) == 8 * 3);
optim::GradNorm read(const clutch_optim_grad_norm_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_grad_scaler_options_t> {
  static constexpr std::string_view kName = "clutch_optim_grad_scaler_options_t";
  static clutch_optim_grad_scaler_options_t value() { return CLUTCH_OPTIM_GRAD_SCALER_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_grad_scaler_options_t) == 8 * 6);
optim::GradScalerOptions read(const clutch_optim_grad_scaler_options_t* given, std::string_view what);
template <>
struct Initial<clutch_optim_lr_scheduler_options_t> {
  static constexpr std::string_view kName = "clutch_optim_lr_scheduler_options_t";
  static clutch_optim_lr_scheduler_options_t value() { return CLUTCH_OPTIM_LR_SCHEDULER_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_optim_lr_scheduler_options_t) == 8 * 6);
optim::LRSchedulerOptions read(const clutch_optim_lr_scheduler_options_t* given, std::string_view what);
template <>
struct Initial<clutch_graph_options_t> {
  static constexpr std::string_view kName = "clutch_graph_options_t";
  static clutch_graph_options_t value() { return CLUTCH_GRAPH_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_graph_options_t) == 8 * 4);
GraphOptions read(const clutch_graph_options_t* given, std::string_view what);
template <>
struct Initial<clutch_capture_options_t> {
  static constexpr std::string_view kName = "clutch_capture_options_t";
  static clutch_capture_options_t value() { return CLUTCH_CAPTURE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_capture_options_t) == 8 * 3);
CaptureOptions read(const clutch_capture_options_t* given, std::string_view what);
template <>
struct Initial<clutch_graph_save_options_t> {
  static constexpr std::string_view kName = "clutch_graph_save_options_t";
  static clutch_graph_save_options_t value() { return CLUTCH_GRAPH_SAVE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_graph_save_options_t) == 8 * 2);
GraphSaveOptions read(const clutch_graph_save_options_t* given, std::string_view what);
template <>
struct Initial<clutch_geometry_t> {
  static constexpr std::string_view kName = "clutch_geometry_t";
  static clutch_geometry_t value() { return CLUTCH_GEOMETRY_INIT; }
};
static_assert(sizeof(clutch_geometry_t) == 8 * 7);
Geometry read(const clutch_geometry_t* given, std::string_view what);
template <>
struct Initial<clutch_kernel_source_t> {
  static constexpr std::string_view kName = "clutch_kernel_source_t";
  static clutch_kernel_source_t value() { return CLUTCH_KERNEL_SOURCE_INIT; }
};
static_assert(sizeof(clutch_kernel_source_t) == 8 * 12);
template <>
struct Initial<clutch_argument_t> {
  static constexpr std::string_view kName = "clutch_argument_t";
  static clutch_argument_t value() { return CLUTCH_ARGUMENT_INIT; }
};
static_assert(sizeof(clutch_argument_t) == 8 * 7);
template <>
struct Initial<clutch_profiler_options_t> {
  static constexpr std::string_view kName = "clutch_profiler_options_t";
  static clutch_profiler_options_t value() { return CLUTCH_PROFILER_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_profiler_options_t) == 8 * 7);
profiler::ProfilerOptions read(const clutch_profiler_options_t* given, std::string_view what);
template <>
struct Initial<clutch_profiler_profile_totals_t> {
  static constexpr std::string_view kName = "clutch_profiler_profile_totals_t";
  static clutch_profiler_profile_totals_t value() { return CLUTCH_PROFILER_PROFILE_TOTALS_INIT; }
};
static_assert(sizeof(clutch_profiler_profile_totals_t) == 8 * 7);
profiler::ProfileTotals read(const clutch_profiler_profile_totals_t* given, std::string_view what);
template <>
struct Initial<clutch_profiler_trace_options_t> {
  static constexpr std::string_view kName = "clutch_profiler_trace_options_t";
  static clutch_profiler_trace_options_t value() { return CLUTCH_PROFILER_TRACE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_profiler_trace_options_t) == 8 * 4);
profiler::TraceOptions read(const clutch_profiler_trace_options_t* given, std::string_view what);
template <>
struct Initial<clutch_profiler_table_options_t> {
  static constexpr std::string_view kName = "clutch_profiler_table_options_t";
  static clutch_profiler_table_options_t value() { return CLUTCH_PROFILER_TABLE_OPTIONS_INIT; }
};
static_assert(sizeof(clutch_profiler_table_options_t) == 8 * 4);
profiler::TableOptions read(const clutch_profiler_table_options_t* given, std::string_view what);
void write(const DeviceTraits& value, clutch_device_traits_t* result, std::string_view what);
void write(const MemoryInfo& value, clutch_memory_info_t* result, std::string_view what);
void write(const PoolId& value, clutch_pool_id_t* result, std::string_view what);
void write(const CacheUsage& value, clutch_cache_usage_t* result, std::string_view what);
void write(const BuildCounters& value, clutch_build_counters_t* result, std::string_view what);
void write(const Cost& value, clutch_cost_t* result, std::string_view what);
void write(const GeneratorState& value, clutch_generator_state_t* result, std::string_view what);
void write(const Unique& value, clutch_unique_t* result, std::string_view what);
void write(const attention::BlockSize& value, clutch_attention_block_size_t* result, std::string_view what);
void write(const attention::PagedCacheOptions& value, clutch_attention_paged_cache_options_t* result, std::string_view what);
void write(const attention::Varlen& value, clutch_attention_varlen_t* result, std::string_view what);
void write(const profiler::ProfileTotals& value, clutch_profiler_profile_totals_t* result, std::string_view what);

}}}  // namespace clutch::v0::capi
