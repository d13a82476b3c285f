// SPDX-License-Identifier: Apache-2.0
// Runs the pieces of code of the pages, each with what it is given; run_guides includes them before this file.
#include <iostream>

namespace {

using clutch::Tensor;

Tensor normal(const clutch::Dims& sizes, std::uint64_t seed) { return clutch::randn(sizes, {.seed = seed}); }
Tensor whole(std::initializer_list<std::int32_t> numbers) { return clutch::from_host<std::int32_t>(numbers); }

Tensor g_counter;
void count() { clutch::add_(g_counter, 1); }

void attention(const clutch::Device& device) {
  const Tensor q = normal({1, 4, 64, 16}, 1), k = normal({1, 4, 64, 16}, 2), v = normal({1, 4, 64, 16}, 3);
  piece_docs_attention_md_1(q, k, v);
  const Tensor lq = normal({1, 2, 2048, 16}, 4), lk = normal({1, 2, 2048, 16}, 5), lv = normal({1, 2, 2048, 16}, 6);
  piece_docs_attention_md_2(device, clutch::attention::alibi_slopes(2), lq, lk, lv, lq);
  const Tensor next_k = normal({1, 4, 1, 64}, 7), next_v = normal({1, 4, 1, 64}, 8);
  piece_docs_attention_md_3(device, 0, 300, whole({0}), whole({5}).reshape({1, 1}), whole({6, 0, 0, 0, 0, 0, 0, 0}), normal({8, 4, 1, 64}, 9), next_k, next_v);
}

void graphs(const clutch::Device& device) {
  g_counter = clutch::zeros({100});
  clutch::synchronize(device);
  piece_docs_graphs_md_1(device, count);
  clutch::Stream stream(device);
  const Tensor weight = clutch::full({8}, 1, {}, stream), other = clutch::full({8}, 2, {}, stream), x = clutch::full({8}, 2, {}, stream);
  const Tensor y = clutch::full({8}, 3, {}, stream);
  clutch::Graph graph;
  {
    clutch::GraphCapture capture(graph, stream);
    clutch::addcmul_(y, weight, x, {.value = 2});
  }
  piece_docs_graphs_md_2(std::move(graph), stream, weight, other, x, y);
  if (y.to_host<float>(stream)[0] != 11) throw std::runtime_error("the replay with another tensor did not count");
  piece_docs_graphs_md_3(normal({4, 8}, 1), normal({3, 8}, 2), normal({4, 8}, 3));
  piece_docs_graphs_md_4({normal({8, 8}, 1), normal({8, 8}, 2)}, {normal({8}, 3), normal({8}, 4)}, normal({4, 8}, 5));
  clutch::Graph counting;
  {
    clutch::GraphCapture capture(counting, stream);
    clutch::add_(x, y);
  }
  piece_docs_graphs_md_5(std::move(counting), stream);
  if (x.to_host<float>(stream)[0] != 2 + 20 * 11) throw std::runtime_error("the graph that is measured did not run 20 times");
}

// What torch.clutch.save_exported() writes, by a graph of our own.
void exported(const clutch::Device& device) {
  clutch::Stream stream(device);
  const Tensor x = clutch::full({4}, 1, {}, stream);
  Tensor y;
  clutch::Graph graph;
  {
    clutch::GraphCapture capture(graph, stream);
    y = clutch::mul(x, 2);
  }
  graph.save("model.safetensors", {{"x", x}, {"output0", y}});
  piece_docs_torch_md_1({1, 2, 3, 4});
}

void control() {
  const Tensor x = normal({6}, 1), w = clutch::full({2}, 4), predicate = whole({1});
  piece_docs_control_md_1(x, w, normal({2}, 2), clutch::optim::SGD({w}));
  piece_docs_control_md_2(clutch::full({3}, 9));
  piece_docs_control_md_3(x, normal({6}, 3), predicate);
}

void optimizers(const clutch::Device& device) {
  const std::vector<Tensor> params{normal({10}, 1), normal({3, 3}, 2)}, grads{normal({10}, 3), normal({3, 3}, 4)};
  piece_docs_optimizers_md_1(device, params, grads);
  piece_docs_optimizers_md_2(clutch::optim::AdamW(params), grads, normal({}, 5));
  std::vector<Tensor> steps, averages, squares;
  for (const Tensor& p : params) {
    steps.push_back(clutch::zeros({}));
    averages.push_back(clutch::zeros(p.sizes())), squares.push_back(clutch::zeros(p.sizes()));
  }
  piece_docs_optimizers_md_3(params, grads, averages, squares, steps, clutch::zeros({}));
  if (steps[0].item() != 1) throw std::runtime_error("the step was not counted");
}

void own_kernel(const clutch::Device& device) {
  clutch::Stream stream(device);
  const Tensor x = clutch::full({1000}, 1, {}, stream), y = clutch::full({1000}, 1, {}, stream);
  piece_docs_own_kernel_md_1(stream, x, y, 1000);
  if (y.to_host<float>(stream)[999] != 3) throw std::runtime_error("saxpy is wrong");
  piece_docs_own_kernel_md_2(stream, x, y);
  if (y.to_host<float>(stream)[999] != 2) throw std::runtime_error("the host task is wrong");
}

void sparse() {
  piece_docs_sparse_md_1(normal({5, 16}, 1), normal({8, 16}, 2), normal({8}, 3));
  piece_docs_sparse_md_2(whole({0, 2, 3}), whole({0, 3, 1}), normal({3}, 1), normal({4, 6}, 2), normal({3, 2}, 3));
  const Tensor index = clutch::from_host<std::int64_t>({0, 1, 3, 3, 0, 2}).reshape({3, 2});
  piece_docs_sparse_md_3(normal({4, 2}, 1), index, normal({3, 2}, 2), normal({5, 4}, 3), whole({0, 4, 2}));
}

void indexing() {
  const Tensor x = normal({6, 7}, 1), rows = clutch::from_host<std::int64_t>({0, 5, -1}), columns = whole({6, 0, 2});
  piece_docs_indexing_md_1(x, normal({4, 3}, 2));
  piece_docs_indexing_md_2(x, whole({3, 1, 3, 2}));
  piece_docs_indexing_md_3(x, rows, columns, normal({3}, 3));
}

void devices(const clutch::Device& device) {
  piece_docs_devices_md_1(std::cout);
  cl_device_id id = clutch::interop::device_id(device);
  cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueue(context, id, 0, nullptr);
  cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, 1024 * 1024 * 4, nullptr, nullptr);
  piece_docs_devices_md_2(queue, mem);
  clFinish(queue);
  clutch::interop::release(context);
  clReleaseMemObject(mem), clReleaseCommandQueue(queue), clReleaseContext(context);
}

}  // namespace

int main() try {
  const clutch::Device device = clutch::default_device();
  attention(device);
  graphs(device);
  exported(device);
  control();
  optimizers(device);
  own_kernel(device);
  sparse();
  indexing();
  devices(device);
  piece_docs_api_md_1(normal({4, 8}, 1), clutch::current_stream(device));
  piece_docs_eigh_md_1(device);
  const auto found = clutch::linalg::eigh(normal({3, 5, 5}, 4));
  piece_docs_eigh_md_2(found.w, found.v, normal({3, 5}, 5), normal({3, 5, 5}, 6));
  piece_docs_elementwise_md_1(normal({64, 100}, 1), normal({100}, 2), normal({64, 100}, 3));
  piece_docs_elementwise_md_2(normal({64, 100}, 1), {normal({5}, 2), normal({3, 4}, 3)}, {normal({5}, 4), normal({3, 4}, 5)});
  piece_docs_matmul_md_1(normal({4, 8}, 1), normal({3, 8}, 2), normal({3}, 3), normal({4, 4}, 4), normal({4, 5}, 5), normal({4, 5}, 6));
  for (const clutch::Device& divisible : clutch::devices())
    if (divisible.traits().compute_units > 1) {
      auto work = [](const clutch::Stream& stream) { clutch::full({64}, 1, {.device = stream.device()}, stream); };
      piece_docs_partitions_md_1(divisible, work, work);
      break;
    }
  piece_docs_memory_md_1(device);
  piece_docs_memory_md_2(device, std::cout);
  piece_docs_profiler_md_1(normal({64, 100}, 1));
  piece_docs_profiler_md_2(1000);
  piece_docs_profiler_md_3();
  piece_docs_profiler_md_4(clutch::profiler::Profiler());
  piece_docs_tensors_md_1(device);
  piece_docs_tensors_md_2(device, normal({4, 8}, 1));
  piece_docs_tensors_md_3(normal({4096, 256}, 1), normal({4096, 1}, 2));
  piece_docs_tensors_md_4(device);
  piece_docs_tensors_md_5(normal({4, 8}, 1), device);
  clutch::tune::save("fleet.json");
  piece_docs_tuning_md_1();
  clutch::synchronize(device);
  return 0;
} catch (const std::exception& e) {
  std::cout << "wrong: " << e.what() << '\n';
  return 1;
}
