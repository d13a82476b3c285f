// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors in files: NPY of NumPy and safetensors. Files are mapped into memory to be read; every bound is checked;
// errors name the file.
#include <clutch/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 {

/// Reads an array of an .npy file (versions 1 to 3) to the device. Arrays in Fortran order become transposed views.
/// Dtypes: those that NumPy and clutch share: f64 f32 f16 i8 u8 i16 u16 i32 u32 i64 u64 bool c64 c128; either byte
/// order. Errors: io if the file cannot be read or is no such file; invalid_dtype; invalid_shape past 12 dimensions or
/// 2^63
///   elements; out_of_memory.
CLUTCH_API Tensor load_npy(const std::string& path, const Device& device = {}, const Stream& stream = {});
/// The same from the file's bytes.
CLUTCH_API Tensor read_npy(std::span<const std::byte> bytes, const Device& device = {}, const Stream& stream = {});
/// Writes a tensor as .npy file, version 1, little-endian, row-major; waits for the stream. The file appears whole or
/// not at all.
/// Errors: io; invalid_dtype for dtypes that NumPy has not (bf16, f8, f6, f4): save them as safetensors.
CLUTCH_API void save_npy(const std::string& path, const Tensor& tensor, const Stream& stream = {});

/// A safetensors file, opened to read tensors one by one.
/// Dtypes: all of clutch's but c128; f4e2m1, f6e2m3, f6e3m2, f8e4m3fn, f8e5m2 and f8e8m0fnu are F4, F6_E2M3, F6_E3M2,
///   F8_E4M3, F8_E5M2, F8_E8M0.
class CLUTCH_API Safetensors {
 public:
  struct Entry {
    std::string name;
    std::string dtype_name;  ///< as the file has it: "BF16"
    DType dtype = DType::f32;
    Dims sizes;
    std::uint64_t begin = 0, end = 0;  ///< bytes behind the header
  };

  /// Errors: io if the file cannot be read or breaks a rule of the format: header longer than 100 MB or than the file,
  ///   no JSON object, names twice, unknown dtypes, sizes that do not fit the bytes, bytes that no tensor or two
  ///   tensors have; invalid_shape past 12 dimensions.
  static Safetensors open(const std::string& path);
  /// The same from the file's bytes, which must outlive the object.
  static Safetensors parse(std::span<const std::byte> bytes);

  /// In the order of the bytes.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// A tensor's bytes as the file has them, valid while the object lives.
  /// Errors: invalid_argument if there is none of that name.
  std::span<const std::byte> bytes(std::string_view name) const;
  /// Copies a tensor to the device. Errors: invalid_argument if there is none of that name.
  Tensor load(std::string_view name, const Device& device = {}, const Stream& stream = {}) const;

 private:
  const Entry* find(std::string_view name) const noexcept;
  std::shared_ptr<const void> mapped_;
  std::string origin_;  ///< the file's name, as errors begin; empty of bytes
  std::span<const std::byte> data_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Writes tensors as a safetensors file: wider dtypes first, then by name; waits for the stream. The file appears whole
/// or not at all.
/// Errors: io; invalid_dtype for c128; invalid_argument for undefined tensors, names that are "__metadata__" or no
///   UTF-8; invalid_shape for packed dtypes that do not fill whole bytes.
CLUTCH_API void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                                 const std::map<std::string, std::string>& metadata = {}, const Stream& stream = {});

}}  // namespace clutch::v0
