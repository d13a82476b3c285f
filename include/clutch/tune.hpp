// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace tune {

/// Tuning: ops that have several ways of doing a thing take the one that was measured to be the fastest for a class of
/// shapes on this device.
///
/// With CLUTCH_AUTOTUNE=1 an op meets a class for the first time, runs its ways in turns on the operands of that call,
/// each into an output of its own, and compares their results; what wins is written to the tuning file and then taken,
/// by this call too. Without it ops take what the file says, or their own choice. Nothing is measured while a stream is
/// capturing. The ways of one op have equal bits, but for libraries (CLBlast) that an op may hand over to: results
/// depend on the tuning file there and nowhere else.
///
/// The file is JSON, CLUTCH_TUNING_FILE or tuning.json in cache_directory(); it is read at first use. Files of several
/// machines may be merged and shipped.
/// A file (or cache folder) that belongs to another user than the process's and root, or that its group or others may
/// write, is not used; load() reads any file. Ops do without a file that is not used or cannot be read: a counted
/// fall-back ("untuned"), logged once, which CLUTCH_STRICT=untuned forbids. One that cannot be written is logged once.

/// Measured choice for a class of shapes on a device.
struct Entry {
  std::string device, driver;  ///< whose measurement it is
  std::string op;              ///< "linalg::matmul"
  std::string shape_class;     ///< by the op: dtypes, layouts, powers of two of sizes
  std::string choice;          ///< the op's name of the way; empty: its own choice is the fastest
  double seconds = 0, untuned_seconds = 0;
  friend bool operator==(const Entry&, const Entry&) = default;
};

/// All that is known, of all devices. Reads the tuning file at first use.
/// Errors: io, invalid_argument for a file that is none, where no op has met it.
CLUTCH_API std::vector<Entry> entries();
/// Adds a file's entries; they replace what is known of the same device, driver, op and class.
/// Errors: io; invalid_argument naming what is wrong.
CLUTCH_API void load(const std::string& path);
/// Writes all that is known and what the file has besides, under a temporary name and renamed.
/// Errors: io; invalid_argument, and nothing is written, for a file that is there and is none.
CLUTCH_API void save(const std::string& path);
/// Forgets what is known, without touching files; the tuning file is not read again.
CLUTCH_API void clear();
/// The tuning file's path; empty where there is none (CLUTCH_CACHE=off and no CLUTCH_TUNING_FILE).
CLUTCH_API std::string file();

}}}  // namespace clutch::v0::tune
