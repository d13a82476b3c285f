// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "program/pack_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace clutch_pack {

/// A folder of this process's own, which goes with everything in it.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A file's contents. Errors: std::runtime_error if it cannot be used or a part of it is damaged.
clutch::detail::PackContents read_pack(const std::filesystem::path& path);

/// ISA of a compiler's target: gfx942, sm_90, dg2, ...
std::string isa_of_target(const std::string& target);

/// What this program's workload records on the device at hand that `device` selects, or, with a target, on a driver that only says that it is such a GPU.
/// Errors: std::runtime_error with a line that says what is missing.
clutch::detail::PackContents record_workload(const WorkFolder& work, const std::string& device, const std::string& dtypes, const std::string& target = {});

/// The recording's programs, compiled for a target by the compilers that tests/gpu/fetch unpacks, driven by Python. `lines` gets one for each program that does
/// not compile, which is left out. Errors: std::runtime_error with a line that says what is missing.
clutch::detail::PackContents compile_for(const WorkFolder& work, const clutch::detail::PackContents& recording, const std::string& target,
                                         std::vector<std::string>& lines);

}  // namespace clutch_pack
