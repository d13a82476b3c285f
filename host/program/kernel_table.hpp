// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// The text of kernels/<stem>.cl with its includes inserted, and the names of its entries. Made at build time.
struct KernelText {
  std::string_view stem;
  std::string_view text;
  std::span<const std::string_view> entries;
};

std::span<const KernelText> kernel_table();
/// Errors: internal if there is no such stem or the stem has no such entry.
const KernelText& find_kernel_text(std::string_view stem, std::string_view entry);

}}}  // namespace clutch::v0::detail
