// SPDX-License-Identifier: Apache-2.0
// The .npy format: magic, version, the length of the header, the header (a Python dictionary literal), the elements.
// Source: numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <clutch/files.hpp>

#include "interop/mapped_file.hpp"
#include "runtime/op_name.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

namespace clutch { inline namespace v0 {
namespace {

constexpr std::string_view kLoad = "load_npy", kSave = "save_npy", kMagic{"\x93NUMPY", 6};
static_assert(std::endian::native == std::endian::little, "elements are stored as they are in memory");

/// `got` names what stands in the place of a whole .npy file.
[[noreturn]] void bad(std::string_view got) { throw Error(ErrorCode::io, kLoad, fmt::format("the bytes must be a whole .npy file, got {}", got)); }

struct TypeRow {
  DType dtype;
  std::string_view code;  ///< kind and number of bytes
};
constexpr TypeRow kTypes[] = {{DType::f64, "f8"},   {DType::f32, "f4"}, {DType::f16, "f2"}, {DType::i8, "i1"},      {DType::u8, "u1"},
                              {DType::i16, "i2"},   {DType::i32, "i4"}, {DType::i64, "i8"}, {DType::boolean, "b1"}, {DType::c64, "c8"},
                              {DType::c128, "c16"}, {DType::u16, "u2"}, {DType::u32, "u4"}, {DType::u64, "u8"}};

/// Fields of the header.
struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

/// Parses the dictionary; each key must appear once, in any order.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  Header parse() {
    Header header;
    bool has[3] = {};
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      auto first_time = [&](int i) {
        if (std::exchange(has[i], true)) bad(fmt::format("{} twice", key));
      };
      if (key == "descr")
        first_time(0), header.descr = string();
      else if (key == "fortran_order")
        first_time(1), header.fortran = boolean();
      else if (key == "shape")
        first_time(2), header.shape = tuple();
      else
        bad(fmt::format("the unknown key '{}'", key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (!rest_.empty()) bad("text behind the dictionary");
    if (!has[0] || !has[1] || !has[2]) bad("a header without descr, fortran_order or shape");
    return header;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(fmt::format("a header without its '{}'", c));
  }
  std::string string() {
    skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) bad("a header with no string where one must stand (structured types are not read)");
    std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) bad("a string without end");
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip();
    for (bool value : {false, true}) {
      std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    bad("a fortran_order that is neither True nor False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> numbers;
    expect('(');
    while (!accept(')')) {
      numbers.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return numbers;
  }
  std::int64_t number() {
    skip();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits)
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, rest_[digits] - '0', &value)) bad("a size past 2^63");
    if (digits == 0) bad("a size that is no number");
    rest_.remove_prefix(digits);
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // suffix of integers in files that Python 2 wrote
    return value;
  }

  std::string_view rest_;
};

/// Reverses the bytes of each word of `size` bytes.
std::vector<std::byte> swapped(std::span<const std::byte> bytes, std::size_t size) {
  std::vector<std::byte> result(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) result[i / size * size + (size - 1 - i % size)] = bytes[i];
  return result;
}

}  // namespace

Tensor read_npy(std::span<const std::byte> bytes, const Device& device, const Stream& stream) {
  detail::OpName named("read_npy");
  auto number = [&](std::size_t at, std::size_t size) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
  };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), 6) != 0) bad("bytes that do not begin with the magic");
  std::uint32_t version = number(6, 1);
  if (version < 1 || version > 3) bad(fmt::format("version {}, none of 1 to 3", version));
  std::size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) bad("a file that ends in its header");
  std::size_t length = number(8, begin - 8);
  if (length > bytes.size() - begin) bad("a file that ends in its header");
  Header header = HeaderParser({reinterpret_cast<const char*>(bytes.data()) + begin, length}).parse();
  std::string_view code = header.descr;
  bool big = false;
  if (code.size() > 1 && std::string_view("<>|=").find(code[0]) != std::string_view::npos) big = code[0] == '>', code.remove_prefix(1);
  const TypeRow* type = nullptr;
  for (const TypeRow& row : kTypes)
    if (row.code == code) type = &row;
  if (!type) throw Error(ErrorCode::invalid_dtype, kLoad, fmt::format("the file's dtype must be one of clutch's, got NumPy's '{}'", header.descr));
  Dims sizes{std::span<const std::int64_t>(header.shape)};  // throws for more than kMaxRank
  std::uint64_t needed = bytes_for(type->dtype, static_cast<std::uint64_t>(numel(sizes)));
  std::span<const std::byte> data = bytes.subspan(begin + length);
  if (needed > data.size()) bad(fmt::format("{} bytes of elements where the shape takes {}", data.size(), needed));
  data = data.first(static_cast<std::size_t>(needed));
  std::vector<std::byte> in_host_order;
  if (std::size_t word = static_cast<std::size_t>(bits(type->dtype)) / (is_complex(type->dtype) ? 16 : 8); big && word > 1)
    in_host_order = swapped(data, word), data = in_host_order;
  if (!header.fortran || sizes.rank() < 2) return from_bytes(data.data(), data.size(), sizes, {.dtype = type->dtype, .device = device}, stream);
  Dims reversed, strides;
  for (int d = sizes.rank() - 1; d >= 0; --d) reversed.push_back(sizes[d]);
  Tensor made = from_bytes(data.data(), data.size(), reversed, {.dtype = type->dtype, .device = device}, stream);
  for (int d = sizes.rank() - 1; d >= 0; --d) strides.push_back(made.strides()[d]);
  return made.as_strided(sizes, strides);
}

Tensor load_npy(const std::string& path, const Device& device, const Stream& stream) {
  detail::OpName named("load_npy");
  detail::MappedFile file = detail::map_file(path, kLoad);
  return detail::of_file(path, [&] { return read_npy(file.bytes, device, stream); });
}

void save_npy(const std::string& path, const Tensor& tensor, const Stream& stream) {
  detail::OpName named("save_npy");
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, kSave, fmt::format("{}: the tensor must be defined, got an undefined one", path));
  const TypeRow* type = nullptr;
  for (const TypeRow& row : kTypes)
    if (row.dtype == tensor.dtype()) type = &row;
  if (!type)
    throw Error(ErrorCode::invalid_dtype, kSave,
                fmt::format("{}: the dtype must be one of NumPy's, got {}; save it as safetensors", path, name(tensor.dtype())));
  std::string shape = fmt::format("{}{}", fmt::join(tensor.sizes(), ", "), tensor.rank() == 1 ? "," : "");
  std::string dictionary =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", bits(tensor.dtype()) == 8 ? '|' : '<', type->code, shape);
  // Elements begin at a multiple of 64 bytes.
  dictionary.append((64 - (10 + dictionary.size() + 1) % 64) % 64, ' ').push_back('\n');
  std::string head(kMagic);
  head += {'\1', '\0', static_cast<char>(dictionary.size() & 255), static_cast<char>(dictionary.size() >> 8)};
  head += dictionary;
  std::vector<std::uint8_t> bytes = tensor.to_bytes(stream);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)), std::as_bytes(std::span(bytes))};
  detail::write_file(path, parts, kSave);
}

}}  // namespace clutch::v0
