// SPDX-License-Identifier: Apache-2.0
// Files of flight recorders: the pickle that PyTorch's analyzer reads (python -m torch.distributed.flight_recorder.fr_trace), and JSON, which has all.
#pragma once
#include "dist/flight_image.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// PyTorch's name of a dtype, "Float"; empty where it has none.
std::string_view torch_name(DType dtype);

/// A dump in the encoding that the analyzer of PyTorch 2.12.1 was tried with; docs/flight.md has its table. It has no calls that the analyzer does not know,
/// nor those of groups whose ranks are not known.
std::string torch_pickle_of(const FlightImage& image);
/// All that an image has.
std::string json_of(const FlightImage& image);

/// Errors of all that read: io if a file cannot be read, or is no pickle of plain values; invalid_argument for what stands in it.

/// Reads a dump of torch_pickle_of, or one that PyTorch wrote. `rank`: of what has none in it, as PyTorch's.
FlightImage image_of_torch_pickle(std::span<const std::byte> bytes, std::int32_t rank);
FlightImage image_of_json(std::string_view text);

/// A ring's file, a pickle or JSON, by its first bytes. The rank of PyTorch's pickles is the number at the end of the file's name.
FlightImage read_flight(const std::filesystem::path& file);
/// True if the first bytes of a file are those of one of the three.
bool is_flight_file(const std::filesystem::path& file);
/// Writes next to the file, then on the disk, then takes its place. Errors: io.
void write_flight(const std::filesystem::path& file, std::string_view text);

/// Images of several ranks without the calls that another rank's ring has no place for any more, ids from 0: of each group what all its ranks have kept, and of
/// messages what both sides have.
std::vector<FlightImage> aligned(std::vector<FlightImage> images);

}}}}  // namespace clutch::v0::dist::detail
