// SPDX-License-Identifier: Apache-2.0
// clutch-probe INDEX: ends with 0 if kernels of that device may use what can only be tried, with 1 if not, with 2 and a line on stderr if it could not
// try. The library runs it.
#include <clutch/clutch.hpp>

#include "runtime/probe.hpp"

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
    return e.code() == clutch::ErrorCode::build_failure ? 1 : cannot_try(e.what());  // its compiler does not take it
  } catch (const std::exception& e) {
    return cannot_try(e.what());
  }
}
