// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 300
#include "cases/addc.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"
#include "support/compare.hpp"

#include <clutch/interop_cl.hpp>

namespace clutch::bench {

void register_addc(Rows& rows);

namespace {

using cases::Addc;
using cases::AddcCase;
constexpr double kValue = -0.1;

/// Operands on the device and, for the peer, on the host.
struct Operands {
  std::vector<std::uint8_t> raw[3];
  Tensor out, in[3];
  std::vector<omp::Buffer> host;
};

std::shared_ptr<Operands> make_operands(const Device& device, DType dtype, std::int64_t n) {
  auto o = std::make_shared<Operands>();
  o->out = empty({n}, {.dtype = dtype, .device = device});
  for (std::size_t k = 0; k < 3; ++k) {
    o->raw[k] = model::make_values(static_cast<std::size_t>(n), dtype, 100 + k, false);
    o->in[k] = from_bytes(o->raw[k].data(), o->raw[k].size(), {n}, {.dtype = dtype, .device = device});
    o->host.emplace_back(o->raw[k].size());
    std::memcpy(o->host[k].data(), o->raw[k].data(), o->raw[k].size());
  }
  o->host.emplace_back(o->raw[0].size());
  synchronize(device);
  return o;
}

Work work_of(const Device& device, Addc op, DType dtype, std::int64_t n) {
  auto o = make_operands(device, dtype, n);
  auto call = [o, op](const Stream& stream) {
    auto f = op == Addc::quotient ? addcdiv_out : addcmul_out;
    f(o->out, o->in[0], o->in[1], o->in[2], {.value = kValue}, stream);
  };
  Work work;
  work.run = [call, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) call(stream);
    stream.synchronize();
  };
  work.check = [o, op, dtype, n, device] {
    std::vector<std::uint8_t> want(o->raw[0].size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      AddcCase::reference(op, AddcOrder::fma_of_quotient, dtype, kValue, want.data(), i, o->raw[0].data(), i, o->raw[1].data(), i, o->raw[2].data(), i);
    return testing::compare_bits(o->out.to_bytes(), want, dtype, !device.traits().denormals);
  };
  work.peers.push_back({omp::name(), [o, op, dtype, n](int reps) {
                          auto f = op == Addc::quotient ? omp::addcdiv : omp::addcmul;
                          for (int i = 0; i < reps; ++i) f(dtype, o->host[3].data(), o->host[0].data(), o->host[1].data(), o->host[2].data(), kValue, n);
                        }});
  if (n >= kTriadFrom) work.peers.push_back(triad_peer(device, AddcCase::bytes(n, dtype)));
  add_torch_peer(work, device,
                 fmt::format("x, a, b = (torch.rand({}).to(device, {}) + 0.5 for _ in range(3)); out = torch.empty_like(x)", n, torch_dtype(dtype)),
                 fmt::format("torch.{}(x, a, b, value={}, out=out)", op == Addc::quotient ? "addcdiv" : "addcmul", kValue));
  return work;
}

/// The kernel that addcdiv_out launches, launched by bare OpenCL calls: every argument set for each call.
class Bare {
 public:
  Bare(const Device& device, std::shared_ptr<Operands> operands) : operands_(std::move(operands)) {
    addcdiv_out(operands_->out, operands_->in[0], operands_->in[1], operands_->in[2], {.value = kValue}, current_stream(device));
    launched_ = interop::last_launch();
    cl_int status = CL_SUCCESS;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    queue_ = clCreateCommandQueue(interop::context(current_stream(device)), interop::device_id(device), CL_QUEUE_PROFILING_ENABLE, &status);
#pragma GCC diagnostic pop
    if (status != CL_SUCCESS) throw std::runtime_error("clCreateCommandQueue failed");
  }
  ~Bare() {
    clReleaseKernel(launched_.kernel);
    clReleaseCommandQueue(queue_);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void run(int reps) {
    const Tensor* tensors[4] = {&operands_->out, &operands_->in[0], &operands_->in[1], &operands_->in[2]};
    cl_mem mem[4];
    cl_ulong offset[4], n = static_cast<cl_ulong>(operands_->out.numel());
    for (int k = 0; k < 4; ++k) mem[k] = interop::mem(*tensors[k]), offset[k] = interop::offset(*tensors[k]);
    auto value = static_cast<cl_float>(kValue);
    cl_uint streaming = 0;
    std::size_t global = launched_.geometry.global, local = launched_.geometry.local;
    for (int i = 0; i < reps; ++i) {
      for (cl_uint k = 0; k < 4; ++k) {
        clSetKernelArg(launched_.kernel, 2 * k, sizeof(cl_mem), &mem[k]);
        clSetKernelArg(launched_.kernel, 2 * k + 1, sizeof(cl_ulong), &offset[k]);
      }
      clSetKernelArg(launched_.kernel, 8, sizeof n, &n);
      clSetKernelArg(launched_.kernel, 9, sizeof value, &value);
      clSetKernelArg(launched_.kernel, 10, sizeof streaming, &streaming);
      if (clEnqueueNDRangeKernel(queue_, launched_.kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr) != CL_SUCCESS)
        throw std::runtime_error("clEnqueueNDRangeKernel failed");
    }
    clFinish(queue_);
  }

 private:
  std::shared_ptr<Operands> operands_;
  interop::Launched launched_{};
  cl_command_queue queue_ = nullptr;
};

/// 1000 calls and one finish are one unit; real_time is a call's.
Work dispatch_work(const Device& device) {
  constexpr std::int64_t kElements = 1024;
  static constexpr int kCalls = 1000;
  Work work = work_of(device, Addc::quotient, DType::f32, kElements);
  auto one = work.run;
  work.peers.clear();
  auto bare = std::make_shared<Bare>(device, make_operands(device, DType::f32, kElements));
  work.run = [one](int reps) {
    for (int i = 0; i < reps; i += kCalls) one(std::min(kCalls, reps - i));
  };
  work.peers.push_back({"bare", [bare](int reps) {
                          for (int i = 0; i < reps; i += kCalls) bare->run(std::min(kCalls, reps - i));
                        }});
  return work;
}

}  // namespace

void register_addc(Rows& rows) {
  for (auto [op, title] : {std::pair{Addc::quotient, "addcdiv"}, std::pair{Addc::product, "addcmul"}})
    for (DType dtype : AddcCase::kFloats)
      for (SweptSize size : element_sizes()) {
        bool quick = size.in_quick && op == Addc::quotient && (dtype == DType::f32 || dtype == DType::f16);
        rows.push_back({.name = row_name(title, dtype, size.n),
                        .bytes = kStated,
                        .in_default = size.in_default,
                        .in_quick = quick,
                        .prepare = [op = op, dtype, n = size.n](const Device& device) { return work_of(device, op, dtype, n); }});
      }
  rows.push_back({.name = "dispatch/addcdiv_1024", .in_quick = true, .prepare = dispatch_work});
}

}  // namespace clutch::bench
