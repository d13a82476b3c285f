// SPDX-License-Identifier: Apache-2.0
// clutch-probe INDEX: exit status 0 if kernels of that device may use instructions that only a trial can show to work, 1 if not, 2 with a line on stderr if the
// trial could not run. The library runs this program.
#include <clutch/clutch.hpp>

#include "encode/probe.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

int cannot_try(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 2) return cannot_try("use: clutch-probe INDEX");
    const auto index = static_cast<std::size_t>(std::strtoul(arguments[1], nullptr, 10));
    std::vector<clutch::Device> devices = clutch::devices();
    if (index >= devices.size()) return cannot_try("there is no device of that index");
    return clutch::detail::probe_dot_products(devices[index]) ? 0 : 1;
  } catch (const clutch::Error& e) {
    return e.code() == clutch::ErrorCode::build_failure ? 1 : cannot_try(e.what());  // the device's compiler refuses the instruction
  } catch (const std::exception& e) {
    return cannot_try(e.what());
  }
}
