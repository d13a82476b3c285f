// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace tune {

/// Tuning: an op that has several ways to compute a result takes the way that was measured to be the fastest for a
///   class of shapes on this device.
/// Measuring: with CLUTCH_AUTOTUNE=1 an op that meets a class for the first time runs its ways in turn on the operands
///   of that call, each into an output of its own, and compares their results. The fastest is written to the tuning
///   file and taken, by this call too. Without CLUTCH_AUTOTUNE ops take the file's choice, else their own.
/// Captures: nothing is measured while a stream is capturing.
/// Determinism: the ways of one op have equal bits, but for libraries (CLBlast) that an op may hand over to: results
///   depend on the tuning file there and nowhere else.
/// File: JSON, CLUTCH_TUNING_FILE or tuning.json in cache_directory(); it is read at first use. Files of several
///   machines may be merged and shipped.
/// Trust: a file (or cache folder) that belongs to another user than the process's and root, or that its group or
///   others may write, is not used; load() reads any file.
/// Fall-back: ops do without a file that is not used or cannot be read: a counted fall-back ("untuned"), logged once,
///   which CLUTCH_STRICT=untuned forbids. A file that cannot be written is logged once.

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
