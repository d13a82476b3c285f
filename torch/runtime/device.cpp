// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include "runtime/error.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace torch_clutch {
namespace {

struct Devices {
  std::vector<clutch::Device> all;
  c10::DeviceIndex first = 0;
  std::string why;
};

std::atomic<bool> looked{false}, forked{false};

Devices look() {
  Devices found;
  looked = true;
  try {
    found.all = clutch::devices();
    if (found.all.empty())
      found.why = "no OpenCL device is visible";
    else
      found.first = static_cast<c10::DeviceIndex>(clutch::default_device().index());
  } catch (const std::exception& error) {
    found.all.clear();
    found.why = error.what();
  }
  return found;
}

// Never destroyed: tensors of static lifetime may outlive this file's objects.
const Devices& devices() {
  static const Devices* found = new Devices(look());
  return *found;
}

thread_local c10::DeviceIndex current = -1;

const int watch_forks = pthread_atfork(nullptr, nullptr, [] { forked = looked.load(); });

}  // namespace

bool in_bad_fork() noexcept { return watch_forks == 0 && forked; }

c10::DeviceIndex device_count() noexcept { return in_bad_fork() ? c10::DeviceIndex{0} : static_cast<c10::DeviceIndex>(devices().all.size()); }

const std::string& why_no_device() {
  static const std::string* in_fork = new std::string("devices cannot be used in a forked process whose parent had used them; start it by spawn");
  return in_bad_fork() ? *in_fork : devices().why;
}

void finish_all() noexcept {
  if (!looked || in_bad_fork()) return;
  for (const clutch::Device& used : devices().all) try {
      clutch::synchronize(used);
    } catch (const std::exception&) {  // told by the call that failed, or by nobody any more
    }
}

const clutch::Device& device(c10::DeviceIndex index) {
  const int count = device_count();
  TORCH_CHECK(count > 0, "clutch is not available: ", why_no_device());
  TORCH_CHECK(index >= 0 && index < count, "clutch:", static_cast<int>(index), " does not exist: there are ", count, " devices");
  return devices().all[static_cast<std::size_t>(index)];
}

c10::DeviceIndex current_device() {
  if (current < 0) current = devices().first;
  return current;
}

void set_current_device(c10::DeviceIndex index) {
  if (index < 0 || index == current_device()) return;
  const clutch::Device& wanted = device(index);
  translated([&] { clutch::set_current_device(wanted); });
  current = index;
}

}  // namespace torch_clutch
