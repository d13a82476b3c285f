// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_optim_sgd_release(const clutch_optim_sgd_t* sgd) { release(sgd); }
void clutch_optim_adam_release(const clutch_optim_adam_t* adam) { release(adam); }
void clutch_optim_adamw_release(const clutch_optim_adamw_t* adamw) { release(adamw); }
void clutch_optim_adagrad_release(const clutch_optim_adagrad_t* adagrad) { release(adagrad); }
void clutch_optim_rmsprop_release(const clutch_optim_rmsprop_t* rmsprop) { release(rmsprop); }
void clutch_optim_grad_scaler_release(const clutch_optim_grad_scaler_t* grad_scaler) { release(grad_scaler); }
void clutch_optim_lr_scheduler_release(const clutch_optim_lr_scheduler_t* lr_scheduler) { release(lr_scheduler); }
clutch_status_t clutch_optim_sgd_create(const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_sgd_options_t* options,
    const clutch_stream_t* stream, clutch_optim_sgd_t** result) {
  return guarded("clutch_optim_sgd_create", [&] { clear(result); *result = new clutch_optim_sgd_t{optim::SGD(capi::tensors(params, params_count, "params"),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_adam_create(const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adam_options_t* options,
    const clutch_stream_t* stream, clutch_optim_adam_t** result) {
  return guarded("clutch_optim_adam_create", [&] { clear(result); *result = new clutch_optim_adam_t{optim::Adam(capi::tensors(params, params_count, "params"),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_adamw_create(const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adamw_options_t* options,
    const clutch_stream_t* stream, clutch_optim_adamw_t** result) {
  return guarded("clutch_optim_adamw_create", [&] { clear(result); *result = new clutch_optim_adamw_t{optim::AdamW(capi::tensors(params, params_count,
    "params"), capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_adagrad_create(const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adagrad_options_t* options,
    const clutch_stream_t* stream, clutch_optim_adagrad_t** result) {
  return guarded("clutch_optim_adagrad_create", [&] { clear(result); *result = new clutch_optim_adagrad_t{optim::Adagrad(capi::tensors(params, params_count,
    "params"), capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_rmsprop_create(const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_rmsprop_options_t* options,
    const clutch_stream_t* stream, clutch_optim_rmsprop_t** result) {
  return guarded("clutch_optim_rmsprop_create", [&] { clear(result); *result = new clutch_optim_rmsprop_t{optim::RMSprop(capi::tensors(params, params_count,
    "params"), capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_sgd_add_param_group(clutch_optim_sgd_t* sgd, const clutch_tensor_t* const* params, size_t params_count,
    const clutch_optim_sgd_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_sgd_add_param_group", [&] { need(sgd, "sgd").add_param_group(capi::tensors(params, params_count, "params"), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adam_add_param_group(clutch_optim_adam_t* adam, const clutch_tensor_t* const* params, size_t params_count,
    const clutch_optim_adam_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adam_add_param_group", [&] { need(adam, "adam").add_param_group(capi::tensors(params, params_count, "params"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adamw_add_param_group(clutch_optim_adamw_t* adamw, const clutch_tensor_t* const* params, size_t params_count,
    const clutch_optim_adamw_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adamw_add_param_group", [&] { need(adamw, "adamw").add_param_group(capi::tensors(params, params_count, "params"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adagrad_add_param_group(clutch_optim_adagrad_t* adagrad, const clutch_tensor_t* const* params, size_t params_count,
    const clutch_optim_adagrad_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adagrad_add_param_group", [&] { need(adagrad, "adagrad").add_param_group(capi::tensors(params, params_count, "params"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_rmsprop_add_param_group(clutch_optim_rmsprop_t* rmsprop, const clutch_tensor_t* const* params, size_t params_count,
    const clutch_optim_rmsprop_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_rmsprop_add_param_group", [&] { need(rmsprop, "rmsprop").add_param_group(capi::tensors(params, params_count, "params"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_sgd_step(clutch_optim_sgd_t* sgd, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_sgd_step", [&] { clear(result); *result = share<clutch_tensor_t>(need(sgd, "sgd").step(capi::tensors(grads, grads_count,
    "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_adam_step(clutch_optim_adam_t* adam, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_adam_step", [&] { clear(result); *result = share<clutch_tensor_t>(need(adam, "adam").step(capi::tensors(grads, grads_count,
    "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_adamw_step(clutch_optim_adamw_t* adamw, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_adamw_step", [&] { clear(result); *result = share<clutch_tensor_t>(need(adamw, "adamw").step(capi::tensors(grads, grads_count,
    "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_adagrad_step(clutch_optim_adagrad_t* adagrad, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_adagrad_step", [&] { clear(result); *result = share<clutch_tensor_t>(need(adagrad, "adagrad").step(capi::tensors(grads,
    grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_rmsprop_step(clutch_optim_rmsprop_t* rmsprop, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_rmsprop_step", [&] { clear(result); *result = share<clutch_tensor_t>(need(rmsprop, "rmsprop").step(capi::tensors(grads,
    grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_sgd_groups(const clutch_optim_sgd_t* sgd, uint64_t* result) {
  return guarded("clutch_optim_sgd_groups", [&] { *cleared(result) = need(sgd, "sgd").groups(); });
}
clutch_status_t clutch_optim_adam_groups(const clutch_optim_adam_t* adam, uint64_t* result) {
  return guarded("clutch_optim_adam_groups", [&] { *cleared(result) = need(adam, "adam").groups(); });
}
clutch_status_t clutch_optim_adamw_groups(const clutch_optim_adamw_t* adamw, uint64_t* result) {
  return guarded("clutch_optim_adamw_groups", [&] { *cleared(result) = need(adamw, "adamw").groups(); });
}
clutch_status_t clutch_optim_adagrad_groups(const clutch_optim_adagrad_t* adagrad, uint64_t* result) {
  return guarded("clutch_optim_adagrad_groups", [&] { *cleared(result) = need(adagrad, "adagrad").groups(); });
}
clutch_status_t clutch_optim_rmsprop_groups(const clutch_optim_rmsprop_t* rmsprop, uint64_t* result) {
  return guarded("clutch_optim_rmsprop_groups", [&] { *cleared(result) = need(rmsprop, "rmsprop").groups(); });
}
clutch_status_t clutch_optim_sgd_lr(const clutch_optim_sgd_t* sgd, uint64_t group, double* result) {
  return guarded("clutch_optim_sgd_lr", [&] { *cleared(result) = need(sgd, "sgd").lr(group); });
}
clutch_status_t clutch_optim_adam_lr(const clutch_optim_adam_t* adam, uint64_t group, double* result) {
  return guarded("clutch_optim_adam_lr", [&] { *cleared(result) = need(adam, "adam").lr(group); });
}
clutch_status_t clutch_optim_adamw_lr(const clutch_optim_adamw_t* adamw, uint64_t group, double* result) {
  return guarded("clutch_optim_adamw_lr", [&] { *cleared(result) = need(adamw, "adamw").lr(group); });
}
clutch_status_t clutch_optim_adagrad_lr(const clutch_optim_adagrad_t* adagrad, uint64_t group, double* result) {
  return guarded("clutch_optim_adagrad_lr", [&] { *cleared(result) = need(adagrad, "adagrad").lr(group); });
}
clutch_status_t clutch_optim_rmsprop_lr(const clutch_optim_rmsprop_t* rmsprop, uint64_t group, double* result) {
  return guarded("clutch_optim_rmsprop_lr", [&] { *cleared(result) = need(rmsprop, "rmsprop").lr(group); });
}
clutch_status_t clutch_optim_sgd_set_lr(clutch_optim_sgd_t* sgd, double lr, uint64_t group) {
  return guarded("clutch_optim_sgd_set_lr", [&] { need(sgd, "sgd").set_lr(lr, group); });
}
clutch_status_t clutch_optim_adam_set_lr(clutch_optim_adam_t* adam, double lr, uint64_t group) {
  return guarded("clutch_optim_adam_set_lr", [&] { need(adam, "adam").set_lr(lr, group); });
}
clutch_status_t clutch_optim_adamw_set_lr(clutch_optim_adamw_t* adamw, double lr, uint64_t group) {
  return guarded("clutch_optim_adamw_set_lr", [&] { need(adamw, "adamw").set_lr(lr, group); });
}
clutch_status_t clutch_optim_adagrad_set_lr(clutch_optim_adagrad_t* adagrad, double lr, uint64_t group) {
  return guarded("clutch_optim_adagrad_set_lr", [&] { need(adagrad, "adagrad").set_lr(lr, group); });
}
clutch_status_t clutch_optim_rmsprop_set_lr(clutch_optim_rmsprop_t* rmsprop, double lr, uint64_t group) {
  return guarded("clutch_optim_rmsprop_set_lr", [&] { need(rmsprop, "rmsprop").set_lr(lr, group); });
}
clutch_status_t clutch_optim_sgd_params(const clutch_optim_sgd_t* sgd, uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_sgd_params", [&] { put_objects(need(sgd, "sgd").params(group), results, capacity, count); });
}
clutch_status_t clutch_optim_adam_params(const clutch_optim_adam_t* adam, uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_adam_params", [&] { put_objects(need(adam, "adam").params(group), results, capacity, count); });
}
clutch_status_t clutch_optim_adamw_params(const clutch_optim_adamw_t* adamw, uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_adamw_params", [&] { put_objects(need(adamw, "adamw").params(group), results, capacity, count); });
}
clutch_status_t clutch_optim_adagrad_params(const clutch_optim_adagrad_t* adagrad, uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_adagrad_params", [&] { put_objects(need(adagrad, "adagrad").params(group), results, capacity, count); });
}
clutch_status_t clutch_optim_rmsprop_params(const clutch_optim_rmsprop_t* rmsprop, uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_rmsprop_params", [&] { put_objects(need(rmsprop, "rmsprop").params(group), results, capacity, count); });
}
clutch_status_t clutch_optim_sgd_save(const clutch_optim_sgd_t* sgd, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_sgd_save", [&] { need(sgd, "sgd").save(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adam_save(const clutch_optim_adam_t* adam, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adam_save", [&] { need(adam, "adam").save(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adamw_save(const clutch_optim_adamw_t* adamw, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adamw_save", [&] { need(adamw, "adamw").save(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adagrad_save(const clutch_optim_adagrad_t* adagrad, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adagrad_save", [&] { need(adagrad, "adagrad").save(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_rmsprop_save(const clutch_optim_rmsprop_t* rmsprop, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_rmsprop_save", [&] { need(rmsprop, "rmsprop").save(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_sgd_load(clutch_optim_sgd_t* sgd, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_sgd_load", [&] { need(sgd, "sgd").load(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adam_load(clutch_optim_adam_t* adam, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adam_load", [&] { need(adam, "adam").load(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adamw_load(clutch_optim_adamw_t* adamw, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adamw_load", [&] { need(adamw, "adamw").load(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adagrad_load(clutch_optim_adagrad_t* adagrad, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adagrad_load", [&] { need(adagrad, "adagrad").load(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_rmsprop_load(clutch_optim_rmsprop_t* rmsprop, const char* path, const clutch_stream_t* stream) {
  return guarded("clutch_optim_rmsprop_load", [&] { need(rmsprop, "rmsprop").load(capi::text(path), capi::ref(stream)); });
}
clutch_status_t clutch_optim_sgd_state(const clutch_optim_sgd_t* sgd, char* names, size_t names_capacity, size_t* names_length, clutch_tensor_t** results,
    size_t capacity, size_t* count) {
  return guarded("clutch_optim_sgd_state", [&] { put_state(need(sgd, "sgd").state(), names, names_capacity, names_length, results, capacity, count); });
}
clutch_status_t clutch_optim_adam_state(const clutch_optim_adam_t* adam, char* names, size_t names_capacity, size_t* names_length, clutch_tensor_t** results,
    size_t capacity, size_t* count) {
  return guarded("clutch_optim_adam_state", [&] { put_state(need(adam, "adam").state(), names, names_capacity, names_length, results, capacity, count); });
}
clutch_status_t clutch_optim_adamw_state(const clutch_optim_adamw_t* adamw, char* names, size_t names_capacity, size_t* names_length, clutch_tensor_t** results,
    size_t capacity, size_t* count) {
  return guarded("clutch_optim_adamw_state", [&] { put_state(need(adamw, "adamw").state(), names, names_capacity, names_length, results, capacity, count); });
}
clutch_status_t clutch_optim_adagrad_state(const clutch_optim_adagrad_t* adagrad, char* names, size_t names_capacity, size_t* names_length,
    clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_adagrad_state", [&] { put_state(need(adagrad, "adagrad").state(), names, names_capacity, names_length, results, capacity,
    count); });
}
clutch_status_t clutch_optim_rmsprop_state(const clutch_optim_rmsprop_t* rmsprop, char* names, size_t names_capacity, size_t* names_length,
    clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_rmsprop_state", [&] { put_state(need(rmsprop, "rmsprop").state(), names, names_capacity, names_length, results, capacity,
    count); });
}
clutch_status_t clutch_optim_sgd_load_state(clutch_optim_sgd_t* sgd, const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream) {
  return guarded("clutch_optim_sgd_load_state", [&] { need(sgd, "sgd").load_state(capi::state(names, capi::tensors(tensors, count, "tensors"), count),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_adam_load_state(clutch_optim_adam_t* adam, const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream) {
  return guarded("clutch_optim_adam_load_state", [&] { need(adam, "adam").load_state(capi::state(names, capi::tensors(tensors, count, "tensors"), count),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_adamw_load_state(clutch_optim_adamw_t* adamw, const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream) {
  return guarded("clutch_optim_adamw_load_state", [&] { need(adamw, "adamw").load_state(capi::state(names, capi::tensors(tensors, count, "tensors"), count),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_adagrad_load_state(clutch_optim_adagrad_t* adagrad, const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream) {
  return guarded("clutch_optim_adagrad_load_state", [&] { need(adagrad, "adagrad").load_state(capi::state(names, capi::tensors(tensors, count, "tensors"),
    count), capi::ref(stream)); });
}
clutch_status_t clutch_optim_rmsprop_load_state(clutch_optim_rmsprop_t* rmsprop, const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream) {
  return guarded("clutch_optim_rmsprop_load_state", [&] { need(rmsprop, "rmsprop").load_state(capi::state(names, capi::tensors(tensors, count, "tensors"),
    count), capi::ref(stream)); });
}
clutch_status_t clutch_optim_lr_scheduler_create_sgd(const clutch_optim_sgd_t* optimizer, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result) {
  return guarded("clutch_optim_lr_scheduler_create_sgd", [&] { clear(result); *result = new clutch_optim_lr_scheduler_t{optim::LRScheduler(capi::ref(optimizer),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_lr_scheduler_create_adam(const clutch_optim_adam_t* optimizer, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result) {
  return guarded("clutch_optim_lr_scheduler_create_adam",
    [&] { clear(result); *result = new clutch_optim_lr_scheduler_t{optim::LRScheduler(capi::ref(optimizer), capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_optim_lr_scheduler_create_adamw(const clutch_optim_adamw_t* optimizer, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result) {
  return guarded("clutch_optim_lr_scheduler_create_adamw",
    [&] { clear(result); *result = new clutch_optim_lr_scheduler_t{optim::LRScheduler(capi::ref(optimizer), capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_optim_lr_scheduler_create_adagrad(const clutch_optim_adagrad_t* optimizer, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result) {
  return guarded("clutch_optim_lr_scheduler_create_adagrad",
    [&] { clear(result); *result = new clutch_optim_lr_scheduler_t{optim::LRScheduler(capi::ref(optimizer), capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_optim_lr_scheduler_create_rmsprop(const clutch_optim_rmsprop_t* optimizer, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result) {
  return guarded("clutch_optim_lr_scheduler_create_rmsprop",
    [&] { clear(result); *result = new clutch_optim_lr_scheduler_t{optim::LRScheduler(capi::ref(optimizer), capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_optim_lr_scheduler_create(const double* rates, size_t rates_count, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_device_t* device, const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result) {
  return guarded("clutch_optim_lr_scheduler_create", [&] { clear(result); *result = new clutch_optim_lr_scheduler_t{optim::LRScheduler(capi::f64s(rates,
    rates_count, "rates"), capi::read(options, "options"), capi::ref(device), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_lr_scheduler_lr(const clutch_optim_lr_scheduler_t* lr_scheduler, clutch_tensor_t** result) {
  return guarded("clutch_optim_lr_scheduler_lr", [&] { clear(result); *result = new clutch_tensor_t{need(lr_scheduler, "lr_scheduler").lr()}; });
}
clutch_status_t clutch_optim_lr_scheduler_step(clutch_optim_lr_scheduler_t* lr_scheduler, const clutch_stream_t* stream) {
  return guarded("clutch_optim_lr_scheduler_step", [&] { need(lr_scheduler, "lr_scheduler").step(capi::ref(stream)); });
}
clutch_status_t clutch_optim_lr_scheduler_state(const clutch_optim_lr_scheduler_t* lr_scheduler, char* names, size_t names_capacity, size_t* names_length,
    clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_lr_scheduler_state", [&] { put_state(need(lr_scheduler, "lr_scheduler").state(), names, names_capacity, names_length, results,
    capacity, count); });
}
clutch_status_t clutch_optim_lr_scheduler_load_state(clutch_optim_lr_scheduler_t* lr_scheduler, const char* const* names, const clutch_tensor_t* const* tensors,
    size_t count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_lr_scheduler_load_state", [&] { need(lr_scheduler, "lr_scheduler").load_state(capi::state(names, capi::tensors(tensors, count,
    "tensors"), count), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_create(const clutch_optim_grad_scaler_options_t* options, const clutch_device_t* device, const clutch_stream_t* stream,
    clutch_optim_grad_scaler_t** result) {
  return guarded("clutch_optim_grad_scaler_create", [&] { clear(result); *result = new clutch_optim_grad_scaler_t{optim::GradScaler(capi::read(options,
    "options"), capi::ref(device), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_grad_scaler_scale(const clutch_optim_grad_scaler_t* grad_scaler, const clutch_tensor_t* loss, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_scale", [&] { clear(result); *result = new clutch_tensor_t{need(grad_scaler, "grad_scaler").scale(capi::ref(loss),
    capi::ref(stream))}; });
}
clutch_status_t clutch_optim_grad_scaler_unscale_sgd(clutch_optim_grad_scaler_t* grad_scaler, const clutch_optim_sgd_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_unscale_sgd", [&] { need(grad_scaler, "grad_scaler").unscale_(capi::ref(optimizer), capi::tensors(grads, grads_count,
    "grads"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_unscale_adam(clutch_optim_grad_scaler_t* grad_scaler, const clutch_optim_adam_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_unscale_adam", [&] { need(grad_scaler, "grad_scaler").unscale_(capi::ref(optimizer), capi::tensors(grads,
    grads_count, "grads"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_unscale_adamw(clutch_optim_grad_scaler_t* grad_scaler, const clutch_optim_adamw_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_unscale_adamw", [&] { need(grad_scaler, "grad_scaler").unscale_(capi::ref(optimizer), capi::tensors(grads,
    grads_count, "grads"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_unscale_adagrad(clutch_optim_grad_scaler_t* grad_scaler, const clutch_optim_adagrad_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_unscale_adagrad", [&] { need(grad_scaler, "grad_scaler").unscale_(capi::ref(optimizer), capi::tensors(grads,
    grads_count, "grads"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_unscale_rmsprop(clutch_optim_grad_scaler_t* grad_scaler, const clutch_optim_rmsprop_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_unscale_rmsprop", [&] { need(grad_scaler, "grad_scaler").unscale_(capi::ref(optimizer), capi::tensors(grads,
    grads_count, "grads"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_step_sgd(clutch_optim_grad_scaler_t* grad_scaler, clutch_optim_sgd_t* optimizer, const clutch_tensor_t* const* grads,
    size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_step_sgd", [&] { clear(result); *result = share<clutch_tensor_t>(need(grad_scaler,
    "grad_scaler").step(capi::need(optimizer, "optimizer"), capi::tensors(grads, grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_grad_scaler_step_adam(clutch_optim_grad_scaler_t* grad_scaler, clutch_optim_adam_t* optimizer, const clutch_tensor_t* const* grads,
    size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_step_adam", [&] { clear(result); *result = share<clutch_tensor_t>(need(grad_scaler,
    "grad_scaler").step(capi::need(optimizer, "optimizer"), capi::tensors(grads, grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_grad_scaler_step_adamw(clutch_optim_grad_scaler_t* grad_scaler, clutch_optim_adamw_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_step_adamw", [&] { clear(result); *result = share<clutch_tensor_t>(need(grad_scaler,
    "grad_scaler").step(capi::need(optimizer, "optimizer"), capi::tensors(grads, grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_grad_scaler_step_adagrad(clutch_optim_grad_scaler_t* grad_scaler, clutch_optim_adagrad_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_step_adagrad", [&] { clear(result); *result = share<clutch_tensor_t>(need(grad_scaler,
    "grad_scaler").step(capi::need(optimizer, "optimizer"), capi::tensors(grads, grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_grad_scaler_step_rmsprop(clutch_optim_grad_scaler_t* grad_scaler, clutch_optim_rmsprop_t* optimizer,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_step_rmsprop", [&] { clear(result); *result = share<clutch_tensor_t>(need(grad_scaler,
    "grad_scaler").step(capi::need(optimizer, "optimizer"), capi::tensors(grads, grads_count, "grads"), capi::read(options, "options"), capi::ref(stream))); });
}
clutch_status_t clutch_optim_grad_scaler_update(clutch_optim_grad_scaler_t* grad_scaler, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_update", [&] { need(grad_scaler, "grad_scaler").update(capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_update_scale(clutch_optim_grad_scaler_t* grad_scaler, double new_scale, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_update_scale", [&] { need(grad_scaler, "grad_scaler").update(new_scale, capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_scale_tensor(const clutch_optim_grad_scaler_t* grad_scaler, clutch_tensor_t** result) {
  return guarded("clutch_optim_grad_scaler_scale_tensor", [&] { clear(result); *result = new clutch_tensor_t{need(grad_scaler,
    "grad_scaler").scale_tensor()}; });
}
clutch_status_t clutch_optim_grad_scaler_get_scale(const clutch_optim_grad_scaler_t* grad_scaler, const clutch_stream_t* stream, double* result) {
  return guarded("clutch_optim_grad_scaler_get_scale", [&] { *cleared(result) = need(grad_scaler, "grad_scaler").get_scale(capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_scaler_enabled(const clutch_optim_grad_scaler_t* grad_scaler, int64_t* result) {
  return guarded("clutch_optim_grad_scaler_enabled", [&] { *cleared(result) = need(grad_scaler, "grad_scaler").enabled(); });
}
clutch_status_t clutch_optim_grad_scaler_state(const clutch_optim_grad_scaler_t* grad_scaler, char* names, size_t names_capacity, size_t* names_length,
    clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_optim_grad_scaler_state", [&] { put_state(need(grad_scaler, "grad_scaler").state(), names, names_capacity, names_length, results,
    capacity, count); });
}
clutch_status_t clutch_optim_grad_scaler_load_state(clutch_optim_grad_scaler_t* grad_scaler, const char* const* names, const clutch_tensor_t* const* tensors,
    size_t count, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_scaler_load_state", [&] { need(grad_scaler, "grad_scaler").load_state(capi::state(names, capi::tensors(tensors, count,
    "tensors"), count), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_norm_out(const clutch_optim_grad_norm_t* out, const clutch_tensor_t* const* grads, size_t grads_count, double max_norm,
    const clutch_optim_clip_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_norm_out", [&] { clutch::optim::grad_norm_out(capi::read(out, "out"), capi::tensors(grads, grads_count, "grads"), max_norm,
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_grad_norms_out(const clutch_tensor_t* out, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_clip_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_grad_norms_out", [&] { clutch::optim::grad_norms_out(capi::ref(out), capi::tensors(grads, grads_count, "grads"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_clip_grad_norm_(const clutch_tensor_t* const* grads, size_t grads_count, double max_norm,
    const clutch_optim_clip_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_optim_clip_grad_norm_", [&] { clear(result); *result = new clutch_tensor_t{clutch::optim::clip_grad_norm_(capi::tensors(grads,
    grads_count, "grads"), max_norm, capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_optim_schedule_(const clutch_tensor_t* lr, const clutch_tensor_t* rates, const clutch_tensor_t* step, int64_t advance,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_schedule_", [&] { clutch::optim::schedule_(capi::ref(lr), capi::ref(rates), capi::ref(step), advance, capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_check_and_unscale_(const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* found_inf,
    const clutch_tensor_t* scale, const clutch_stream_t* stream) {
  return guarded("clutch_optim_check_and_unscale_", [&] { clutch::optim::check_and_unscale_(capi::tensors(grads, grads_count, "grads"), capi::ref(found_inf),
    capi::ref(scale), capi::ref(stream)); });
}
clutch_status_t clutch_optim_update_scale_(const clutch_tensor_t* scale, const clutch_tensor_t* growth_tracker, const clutch_tensor_t* found_inf,
    const clutch_optim_grad_scaler_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_update_scale_", [&] { clutch::optim::update_scale_(capi::ref(scale), capi::ref(growth_tracker), capi::ref(found_inf),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_sgd_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count, const clutch_tensor_t* steps, const clutch_optim_sgd_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_sgd_", [&] { clutch::optim::sgd_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count, "grads"),
    capi::tensors(momentum_buffers, momentum_buffers_count, "momentum_buffers"), capi::ref(steps), capi::read(options, "options"), capi::read(step_options,
    "step_options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_sgd_steps_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count, const clutch_tensor_t* const* steps, size_t steps_count,
    const clutch_optim_sgd_options_t* options, const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_sgd_steps_", [&] { clutch::optim::sgd_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count, "grads"),
    capi::tensors(momentum_buffers, momentum_buffers_count, "momentum_buffers"), capi::tensors(steps, steps_count, "steps"), capi::read(options, "options"),
    capi::read(step_options, "step_options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adam_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* exp_avgs, size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
    const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count, const clutch_tensor_t* steps, const clutch_optim_adam_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adam_", [&] { clutch::optim::adam_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count, "grads"),
    capi::tensors(exp_avgs, exp_avgs_count, "exp_avgs"), capi::tensors(exp_avg_sqs, exp_avg_sqs_count, "exp_avg_sqs"), capi::tensors(max_exp_avg_sqs,
    max_exp_avg_sqs_count, "max_exp_avg_sqs"), capi::ref(steps), capi::read(options, "options"), capi::read(step_options, "step_options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_adam_steps_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* exp_avgs, size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
    const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count, const clutch_tensor_t* const* steps, size_t steps_count,
    const clutch_optim_adam_options_t* options, const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adam_steps_", [&] { clutch::optim::adam_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count,
    "grads"), capi::tensors(exp_avgs, exp_avgs_count, "exp_avgs"), capi::tensors(exp_avg_sqs, exp_avg_sqs_count, "exp_avg_sqs"), capi::tensors(max_exp_avg_sqs,
    max_exp_avg_sqs_count, "max_exp_avg_sqs"), capi::tensors(steps, steps_count, "steps"), capi::read(options, "options"), capi::read(step_options,
    "step_options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adamw_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* exp_avgs, size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
    const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count, const clutch_tensor_t* steps, const clutch_optim_adamw_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adamw_", [&] { clutch::optim::adamw_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count, "grads"),
    capi::tensors(exp_avgs, exp_avgs_count, "exp_avgs"), capi::tensors(exp_avg_sqs, exp_avg_sqs_count, "exp_avg_sqs"), capi::tensors(max_exp_avg_sqs,
    max_exp_avg_sqs_count, "max_exp_avg_sqs"), capi::ref(steps), capi::read(options, "options"), capi::read(step_options, "step_options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_adamw_steps_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* exp_avgs, size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
    const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count, const clutch_tensor_t* const* steps, size_t steps_count,
    const clutch_optim_adamw_options_t* options, const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adamw_steps_", [&] { clutch::optim::adamw_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count,
    "grads"), capi::tensors(exp_avgs, exp_avgs_count, "exp_avgs"), capi::tensors(exp_avg_sqs, exp_avg_sqs_count, "exp_avg_sqs"), capi::tensors(max_exp_avg_sqs,
    max_exp_avg_sqs_count, "max_exp_avg_sqs"), capi::tensors(steps, steps_count, "steps"), capi::read(options, "options"), capi::read(step_options,
    "step_options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_adagrad_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* sums, size_t sums_count, const clutch_tensor_t* steps, const clutch_optim_adagrad_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adagrad_", [&] { clutch::optim::adagrad_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count,
    "grads"), capi::tensors(sums, sums_count, "sums"), capi::ref(steps), capi::read(options, "options"), capi::read(step_options, "step_options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_adagrad_steps_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* sums, size_t sums_count, const clutch_tensor_t* const* steps, size_t steps_count,
    const clutch_optim_adagrad_options_t* options, const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_adagrad_steps_", [&] { clutch::optim::adagrad_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count,
    "grads"), capi::tensors(sums, sums_count, "sums"), capi::tensors(steps, steps_count, "steps"), capi::read(options, "options"), capi::read(step_options,
    "step_options"), capi::ref(stream)); });
}
clutch_status_t clutch_optim_rmsprop_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* square_avgs, size_t square_avgs_count, const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
    const clutch_tensor_t* const* grad_avgs, size_t grad_avgs_count, const clutch_tensor_t* steps, const clutch_optim_rmsprop_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_rmsprop_", [&] { clutch::optim::rmsprop_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count,
    "grads"), capi::tensors(square_avgs, square_avgs_count, "square_avgs"), capi::tensors(momentum_buffers, momentum_buffers_count, "momentum_buffers"),
    capi::tensors(grad_avgs, grad_avgs_count, "grad_avgs"), capi::ref(steps), capi::read(options, "options"), capi::read(step_options, "step_options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_optim_rmsprop_steps_(const clutch_tensor_t* const* params, size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* square_avgs, size_t square_avgs_count, const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
    const clutch_tensor_t* const* grad_avgs, size_t grad_avgs_count, const clutch_tensor_t* const* steps, size_t steps_count,
    const clutch_optim_rmsprop_options_t* options, const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream) {
  return guarded("clutch_optim_rmsprop_steps_", [&] { clutch::optim::rmsprop_(capi::tensors(params, params_count, "params"), capi::tensors(grads, grads_count,
    "grads"), capi::tensors(square_avgs, square_avgs_count, "square_avgs"), capi::tensors(momentum_buffers, momentum_buffers_count, "momentum_buffers"),
    capi::tensors(grad_avgs, grad_avgs_count, "grad_avgs"), capi::tensors(steps, steps_count, "steps"), capi::read(options, "options"), capi::read(step_options,
    "step_options"), capi::ref(stream)); });
}

}  // extern "C"
