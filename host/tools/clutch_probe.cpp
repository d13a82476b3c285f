// SPDX-License-Identifier: Apache-2.0
// clutch-probe INDEX: ends with 0 if kernels of that device may use what can only be tried. The library runs it.
#include <clutch/clutch.hpp>

#include "runtime/probe.hpp"

#include <cstdlib>

int main(int count, char** arguments) {
  try {
    if (count != 2) return 2;
    const auto index = static_cast<std::size_t>(std::strtoul(arguments[1], nullptr, 10));
    std::vector<clutch::Device> devices = clutch::devices();
    return index < devices.size() && clutch::detail::probe_dot_products(devices[index]) ? 0 : 1;
  } catch (const std::exception&) {
    return 1;
  }
}
