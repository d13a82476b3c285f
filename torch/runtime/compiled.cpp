// SPDX-License-Identifier: Apache-2.0
// Graphs of ATen ops as compiled functions of clutch: the backend of torch.compile. A function is Python's, which runs where clutch::compile() records it.
#include "runtime/block.hpp"
#include "runtime/callback.hpp"
#include "runtime/convert.hpp"
#include "runtime/device.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>
#include <clutch/compile.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace torch_clutch { namespace {

using clutch::detail::CompiledState;

// Never destroyed: Python's objects may go after this file's.
struct Functions {
  std::mutex mutex;
  std::map<std::int64_t, std::shared_ptr<CompiledState>> all;
  std::int64_t next = 0;
};
Functions& functions() {
  static auto* made = new Functions;
  return *made;
}

std::shared_ptr<CompiledState> state_of(std::int64_t id) {
  std::lock_guard lock(functions().mutex);
  const auto found = functions().all.find(id);
  TORCH_CHECK(found != functions().all.end(), "clutch: no compiled function has the number ", id);
  return found->second;
}

std::int64_t make_compiled(const std::string& name, const std::string& backend, int64_t warm_ups, int64_t max_classes) {
  return translated([&] {
    auto state = clutch::detail::make_compiled(
        {.name = name, .graph = {.backend = backend}, .warm_ups = static_cast<int>(warm_ups), .max_classes = static_cast<int>(max_classes)});
    std::lock_guard lock(functions().mutex);
    functions().all.emplace(functions().next, std::move(state));
    return functions().next++;
  });
}

void drop_compiled(std::int64_t id) {
  std::shared_ptr<CompiledState> last;  // goes when the lock is given back
  std::lock_guard lock(functions().mutex);
  const auto found = functions().all.find(id);
  if (found == functions().all.end()) return;
  last = std::move(found->second);
  functions().all.erase(found);
}

// The function of Python's with the arguments of one call.
class PythonFunction final : public clutch::detail::CompiledFunction {
 public:
  PythonFunction(std::int64_t function, at::IntArrayRef numbers, std::size_t tensors) : function_(function), numbers_(numbers), tensors_(tensors) {}

  std::vector<clutch::Tensor> run(std::span<const clutch::Tensor> tensors, std::shared_ptr<const void>& rest) override {
    std::vector<at::Tensor> given;
    given.reserve(tensors.size());
    for (const clutch::Tensor& tensor : tensors) given.push_back(unwrap(tensor));
    const Called called = call_python(function_, given);
    rest = std::make_shared<std::int64_t>(called.rest);
    return wrap(called.tensors);
  }
  clutch::detail::CompiledNames names() const override {
    clutch::detail::CompiledNames names;
    std::size_t part = 0;
    for (std::size_t i = 0; i < tensors_; ++i) {
      names.enter(part++);
      names.tensor({});
      names.leave();
    }
    for (const std::int64_t number : numbers_) {
      names.enter(part++);
      names.number(number);
      names.leave();
    }
    return names;
  }

 private:
  std::int64_t function_;
  at::IntArrayRef numbers_;
  std::size_t tensors_;
};

// A tensor over a storage that PyTorch has already, with its version: writes into one of them are seen by autograd as writes into the other.
at::Tensor alias(const at::Tensor& base, const clutch::Tensor& tensor, std::uint64_t storage_begin) {
  const c10::ScalarType type = scalar_type(tensor.dtype());
  auto made =
      c10::make_intrusive<c10::TensorImpl>(c10::Storage(base.storage()), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(type));
  const auto rank = static_cast<std::size_t>(tensor.rank());
  const std::uint64_t offset = tensor.byte_offset() - storage_begin;
  TORCH_INTERNAL_ASSERT(tensor.byte_offset() >= storage_begin && offset % c10::elementSize(type) == 0);
  made->set_sizes_and_strides(c10::IntArrayRef(tensor.sizes().begin(), rank), c10::IntArrayRef(tensor.strides().begin(), rank),
                              static_cast<std::int64_t>(offset / c10::elementSize(type)));
  made->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  return at::Tensor::wrap_tensor_impl(std::move(made));
}

bool same_view(const clutch::Tensor& a, const clutch::Tensor& b) {
  return a.byte_offset() == b.byte_offset() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

std::uint64_t end_of(const clutch::Tensor& tensor) {
  std::int64_t last = 0;
  for (int d = 0; d < tensor.rank(); ++d) last += (tensor.sizes()[d] - 1) * tensor.strides()[d];
  return tensor.numel() == 0 ? tensor.byte_offset() : tensor.byte_offset() + clutch::bytes_for(tensor.dtype(), static_cast<std::uint64_t>(last) + 1);
}

// The results as the function would give them: those that are arguments are the arguments, views of one memory share its storage.
std::vector<at::Tensor> results_of(const std::vector<clutch::Tensor>& results, at::TensorList given, const std::vector<clutch::Tensor>& arguments) {
  std::map<const void*, std::pair<at::Tensor, std::uint64_t>> bases;  // by the storage of clutch: one of its tensors, and where PyTorch's storage begins in it
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (const Block* block = block_of(given[i].storage().data_ptr())) bases.try_emplace(arguments[i].storage().get(), given[i], block->bytes.byte_offset());
  std::map<const void*, std::uint64_t> ends;
  for (const clutch::Tensor& result : results) {
    std::uint64_t& end = ends[result.storage().get()];
    end = std::max(end, end_of(result));
  }
  std::vector<at::Tensor> made;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const clutch::Tensor& result = results[i];
    at::Tensor found;
    for (std::size_t a = 0; a < arguments.size() && !found.defined(); ++a)
      if (arguments[a].storage() == result.storage() && same_view(arguments[a], result)) found = given[a];
    for (std::size_t j = 0; j < i && !found.defined(); ++j)
      if (results[j].storage() == result.storage() && same_view(results[j], result)) found = made[j];
    const std::uint64_t end = ends[result.storage().get()];
    if (!found.defined() && (end == 0 || !result.storage())) found = unwrap(result);
    if (!found.defined()) {
      auto base = bases.find(result.storage().get());
      if (base == bases.end()) {
        const clutch::Tensor whole(result.storage(), 0, {static_cast<std::int64_t>(end)}, {1}, clutch::DType::u8);
        base = bases.emplace(result.storage().get(), std::pair(unwrap(whole), std::uint64_t{0})).first;
      }
      found = alias(base->second.first, result, base->second.second);
    }
    made.push_back(std::move(found));
  }
  return made;
}

// The last result: what Python calls the results that are no tensors; -1 where the function is to run without clutch's knowing.
std::tuple<std::vector<at::Tensor>, std::int64_t> call_compiled(std::int64_t id, std::int64_t function, at::TensorList given, at::IntArrayRef numbers) {
  c10::DeviceIndex index = -1;
  for (const at::Tensor& tensor : given)
    if (index < 0) index = tensor.device().index();
  const CurrentDevice current(index);
  return translated([&] {
    clutch::detail::CompiledKey key;
    for (const at::Tensor& tensor : given) own_memory(tensor);  // a function may change them
    key.tensors = wrap(given);
    for (const std::int64_t number : numbers) key.number(number);
    PythonFunction call(function, numbers, given.size());
    clutch::detail::CompiledOutcome outcome;
    if (!clutch::detail::call_compiled(*state_of(id), call, key, outcome)) return std::tuple(std::vector<at::Tensor>(), std::int64_t{-1});
    return std::tuple(results_of(outcome.tensors, given, key.tensors), *static_cast<const std::int64_t*>(outcome.rest.get()));
  });
}

using Facts = std::vector<std::int64_t>;
// Counts of a function, counts of its classes, one after another, and texts: the whole report, then for each class why it runs without a graph.
std::tuple<Facts, Facts, std::vector<std::string>> explain_compiled(std::int64_t id) {
  return translated([&] {
    const clutch::CompileReport report = clutch::detail::explain_compiled(*state_of(id));
    Facts counts, classes;
    for (const std::uint64_t count :
         {report.calls, report.captures, report.replays, report.eager_calls, report.inline_calls, report.recompiles, report.failures})
      counts.push_back(static_cast<std::int64_t>(count));
    std::vector<std::string> texts{report.to_string()};
    for (const clutch::CompiledClass& c : report.classes) {
      for (const std::uint64_t count : {c.calls, c.captures, c.replays, c.eager_calls, c.nodes, c.launches, c.groups})
        classes.push_back(static_cast<std::int64_t>(count));
      texts.push_back(c.eager);
    }
    return std::tuple(counts, classes, texts);
  });
}

}}  // namespace torch_clutch

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def("make_compiled(str name, str backend, int warm_ups, int max_classes) -> int", &torch_clutch::make_compiled);
  library.def("drop_compiled(int id) -> ()", &torch_clutch::drop_compiled);
  library.def("call_compiled(int id, int function, Tensor[] tensors, int[] numbers) -> (Tensor[], int)", &torch_clutch::call_compiled);
  library.def("explain_compiled(int id) -> (int[], int[], str[])", &torch_clutch::explain_compiled);
}
