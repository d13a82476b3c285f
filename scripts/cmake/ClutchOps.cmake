# SPDX-License-Identifier: Apache-2.0
# The six files of an op, by its stem.
function(clutch_op_files stem result)
  set(${result} include/clutch/ops/${stem}.hpp host/ops/${stem}.cpp kernels/${stem}.cl tests/cases/${stem}.hpp
      tests/ops/${stem}_test.cpp bench/ops/${stem}_bench.cpp PARENT_SCOPE)
endfunction()

# Stops the configuration by naming what an op of CLUTCH_OPS lacks.
function(clutch_check_ops)
  foreach(stem IN LISTS CLUTCH_OPS)
    clutch_op_files(${stem} files)
    foreach(file IN LISTS files)
      if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        message(FATAL_ERROR "op '${stem}' of CLUTCH_OPS lacks ${file} (scripts/new_op ${stem} makes all six)")
      endif()
    endforeach()
  endforeach()
endfunction()

# clutch/ops.hpp: includes every op's header.
function(clutch_write_ops_header path)
  set(text "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n")
  foreach(stem IN LISTS CLUTCH_OPS)
    string(APPEND text "#include <clutch/ops/${stem}.hpp>\n")
  endforeach()
  file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
endfunction()

# The table of the ops' descriptors: struct <PascalStem>Case of tests/cases/<stem>.hpp.
function(clutch_write_op_cases path)
  set(includes "")
  set(rows "")
  foreach(stem IN LISTS CLUTCH_OPS)
    string(REPLACE "_" ";" words ${stem})
    set(pascal "")
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND pascal ${first}${rest})
    endforeach()
    string(APPEND includes "#include \"cases/${stem}.hpp\"\n")
    string(APPEND rows "      {${pascal}Case::kStem, ${pascal}Case::problems, ${pascal}Case::kMutations},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${path} CONTENT "// SPDX-License-Identifier: Apache-2.0
#include \"support/op_case.hpp\"
${includes}
namespace clutch::cases {
const std::vector<OpRow>& op_rows() {
  static const std::vector<OpRow> kRows{
${rows}  };
  return kRows;
}
}  // namespace clutch::cases
" @ONLY)
endfunction()
