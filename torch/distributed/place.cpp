// SPDX-License-Identifier: Apache-2.0
#include "distributed/place.hpp"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

namespace torch_clutch {
namespace {

/// Functions of the Python that this process runs, none of which its versions change: one library serves all of them.
struct Python {
  void* (*this_thread)() = nullptr;
  int (*ensure)() = nullptr;
  void (*release)(int) = nullptr;
  void* (*frame)() = nullptr;
  void* (*back)(void*) = nullptr;
  void* (*code)(void*) = nullptr;
  int (*line)(void*) = nullptr;
  void* (*attribute)(void*, const char*) = nullptr;
  const char* (*text)(void*) = nullptr;
  void (*keep)(void*) = nullptr;
  void (*drop)(void*) = nullptr;
  bool is_there = false;

  Python() {
    is_there = find(this_thread, "PyGILState_GetThisThreadState") && find(ensure, "PyGILState_Ensure") && find(release, "PyGILState_Release") &&
               find(frame, "PyEval_GetFrame") && find(back, "PyFrame_GetBack") && find(code, "PyFrame_GetCode") && find(line, "PyFrame_GetLineNumber") &&
               find(attribute, "PyObject_GetAttrString") && find(text, "PyUnicode_AsUTF8") && find(keep, "Py_IncRef") && find(drop, "Py_DecRef");
  }
  static const Python& instance() {
    static const auto& python = *new Python;
    return python;
  }

 private:
  template <class F>
  static bool find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
  }
};

struct Drop {
  void operator()(void* object) const { Python::instance().drop(object); }
};
using Object = std::unique_ptr<void, Drop>;

/// PyTorch's folder of Python, in which its libraries are lib/.
const std::string& torch_folder() {
  static const auto& found = *new std::string([]() -> std::string {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&c10d::isP2POp), &info) == 0) return "?";
    return std::filesystem::path(info.dli_fname).parent_path().parent_path().string() + "/";
  }());
  return found;
}

/// Text that stays: records of calls outlive them.
const char* kept(const char* text) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return all.emplace(text).first->c_str();
}

clutch::dist::SourceLine innermost(const Python& python) {
  Object frame(python.frame());
  if (frame) python.keep(frame.get());  // it was lent
  for (; frame; frame.reset(python.back(frame.get()))) {
    const Object code(python.code(frame.get())), file(python.attribute(code.get(), "co_filename")), function(python.attribute(code.get(), "co_name"));
    const char* const path = file ? python.text(file.get()) : nullptr;
    const char* const name = function ? python.text(function.get()) : nullptr;
    // PyTorch's own, and decorators that it takes from others.
    if (path == nullptr || name == nullptr || std::strncmp(path, torch_folder().c_str(), torch_folder().size()) == 0 ||
        std::strstr(path, "typing_extensions.py") != nullptr || std::strstr(path, "contextlib.py") != nullptr)
      continue;
    return {kept(path), static_cast<unsigned>(python.line(frame.get())), kept(name)};
  }
  return {};
}

}  // namespace

clutch::dist::SourceLine place_in_python() {
  const Python& python = Python::instance();
  // Threads of C++ alone have no line, and must not wait for Python.
  if (!python.is_there || python.this_thread() == nullptr) return {};
  const int state = python.ensure();
  const clutch::dist::SourceLine place = innermost(python);
  python.release(state);
  return place;
}

}  // namespace torch_clutch
