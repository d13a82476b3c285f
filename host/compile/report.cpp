// SPDX-License-Identifier: Apache-2.0
// What compile() says of its classes, and the names of arguments' parts.
#include <clutch/compile.hpp>

#include <fmt/format.h>

#include <iterator>

namespace clutch { inline namespace v0 {

namespace detail {

void CompiledNames::enter(std::size_t part) { parts_.push_back(part); }
void CompiledNames::leave() { parts_.pop_back(); }
std::string CompiledNames::path() const { return fmt::format("argument {}", fmt::join(parts_, ".")); }
void CompiledNames::tensor(const Tensor&) { tensors.push_back(path()); }
void CompiledNames::text(std::string_view text) { add(fmt::format("\"{}\"", text)); }
void CompiledNames::count(std::size_t n) { values.emplace_back(path() + ": elements", std::to_string(n)); }
void CompiledNames::add(std::string value) { values.emplace_back(path(), std::move(value)); }
void CompiledNames::add_number(double value) { add(fmt::format("{}", value)); }

}  // namespace detail

std::string CompileReport::to_string() const {
  std::string text;
  auto line = [&]<class... A>(fmt::format_string<A...> form, A&&... args) {
    fmt::format_to(std::back_inserter(text), form, std::forward<A>(args)...);
    text += '\n';
  };
  line("{}: {} calls: {} replayed, {} ran without capture, {} within other captures", name, calls, replays, eager_calls, inline_calls);
  line("captures: {} ({} failed); recompiles: {}; further sizes: {}; evictions: {}; host reads: {}", captures, failures, recompiles, sizes, evictions, breaks);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const CompiledClass& c = classes[i];
    line("class {}: {} calls, {} replayed, {} parts of {} nodes{}{}", i, c.calls, c.replays, c.parts, c.nodes,
         c.groups > 0 ? fmt::format(" in {} launches, {} of them fused", c.launches, c.groups) : "",
         c.donated_bytes > 0 ? fmt::format(", {} bytes donated", c.donated_bytes) : "");
    line("  made for: {}", c.why);
    if (!c.eager.empty()) line("  runs without a graph: {}", c.eager);
    std::string of;  // the argument that the present line is about
    for (const CompiledGuard& g : c.guards) {
      const std::size_t colon = g.what.find(": ");
      const std::string its = g.what.substr(0, colon == std::string::npos ? 0 : colon);
      const bool goes_on = !its.empty() && its == of;
      if (!of.empty() && !goes_on) text += '\n';
      of = its;
      const std::string what = goes_on ? g.what.substr(colon + 2) : g.what;
      fmt::format_to(std::back_inserter(text), "{}{} {}{}", goes_on ? ", " : "  ", what, g.value, g.dynamic ? " (dynamic)" : "");
      if (its.empty()) text += '\n';
    }
    if (!of.empty()) text += '\n';
  }
  for (const std::string& reason : reasons) line("{}", reason);
  return text;
}

}}  // namespace clutch::v0
