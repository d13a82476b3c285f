// SPDX-License-Identifier: Apache-2.0
#include "runtime/pickle.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> 8 * i & 0xff);
}

void PickleWriter::text(std::string_view value) {
  bytes_ += 'X';
  little_endian(value.size(), 4);
  bytes_ += value;
  ended();
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    bytes_ += 'K';
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 65536) {
    bytes_ += 'M';
    little_endian(static_cast<std::uint64_t>(value), 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += 'J';
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    bytes_ += "\x8a\x08";
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
  ended();
}

void PickleWriter::integer(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return integer(static_cast<std::int64_t>(value));
  bytes_ += "\x8a\x09";  // a byte more, for the sign
  little_endian(value, 8);
  bytes_ += '\0';
  ended();
}

void PickleWriter::number(double value) {
  bytes_ += 'G';
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> 8 * i & 0xff);
  ended();
}

const std::string* PickleValue::text() const noexcept {
  auto* held = std::get_if<std::shared_ptr<std::string>>(&value_);
  return held ? held->get() : nullptr;
}

const PickleValue::List* PickleValue::list() const noexcept {
  auto* held = std::get_if<std::shared_ptr<Container>>(&value_);
  return held && !(*held)->is_dict ? &(*held)->list : nullptr;
}

const PickleValue::Dict* PickleValue::dict() const noexcept {
  auto* held = std::get_if<std::shared_ptr<Container>>(&value_);
  return held && (*held)->is_dict ? &(*held)->dict : nullptr;
}

double PickleValue::number(double other) const noexcept {
  if (auto* real = std::get_if<double>(&value_)) return *real;
  if (auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (auto* truth = std::get_if<bool>(&value_)) return *truth ? 1 : 0;
  return other;
}

std::uint64_t PickleValue::whole(std::uint64_t other) const noexcept {
  auto* held = std::get_if<std::int64_t>(&value_);
  return held ? static_cast<std::uint64_t>(*held) : other;
}

const PickleValue& PickleValue::operator[](std::string_view key) const noexcept {
  static const PickleValue none;
  if (const Dict* all = dict())
    for (const auto& [name, value] : *all)
      if (const std::string* text = name.text(); text && *text == key) return value;
  return none;
}

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, std::string_view op) : bytes_(bytes), op_(op) {}

  PickleValue read() {
    if (bytes_.size() < 2 || byte() != 0x80) refuse("a pickle must begin with a protocol from 2 to 5");
    if (const unsigned protocol = byte(); protocol < 2 || protocol > 5) refuse("a pickle must begin with a protocol from 2 to 5");
    for (;;) {
      const unsigned code = byte();
      if (code == '.') {
        if (stack_.size() != 1 || !marks_.empty()) refuse("a pickle must end with one value");
        return std::move(stack_.back());
      }
      step(code);
    }
  }

 private:
  using Container = PickleValue::Container;
  static constexpr int kDeepest = 64;
  static constexpr std::size_t kMostMemos = 1u << 26;

  [[noreturn]] void refuse(const std::string& must) const { throw Error(ErrorCode::io, op_, fmt::format("{}, got another thing at byte {}", must, at_)); }
  unsigned byte() {
    if (at_ == bytes_.size()) refuse("a pickle must end with its stop code");
    return std::to_integer<unsigned>(bytes_[at_++]);
  }
  std::uint64_t little_endian(int n) {
    std::uint64_t value = 0;
    for (int i = 0; i < n; ++i) value |= static_cast<std::uint64_t>(byte()) << 8 * i;
    return value;
  }
  std::string text(std::uint64_t length) {
    if (length > bytes_.size() - at_) refuse("a text must end in the file");
    std::string value(reinterpret_cast<const char*>(bytes_.data() + at_), static_cast<std::size_t>(length));
    at_ += static_cast<std::size_t>(length);
    return value;
  }
  /// An integer of `n` bytes, whose sign is that of the last one; one that 64 bits do not hold is its low bits.
  std::int64_t signed_number(std::uint64_t n) {
    std::uint64_t value = 0;
    unsigned last = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      last = byte();
      if (i < 8) value |= static_cast<std::uint64_t>(last) << 8 * i;
    }
    if (n > 0 && n < 8 && last >= 0x80) value |= ~std::uint64_t{0} << 8 * n;
    return static_cast<std::int64_t>(value);
  }
  void push(auto value) {
    stack_.emplace_back();
    stack_.back().value_ = std::move(value);
  }
  void push_container(bool is_dict, std::size_t from) {
    auto made = std::make_shared<Container>();
    made->is_dict = is_dict;
    if (is_dict) {
      add_pairs(*made, from);
    } else {
      for (std::size_t i = from; i < stack_.size(); ++i) add(*made, stack_[i]), made->list.push_back(std::move(stack_[i]));
    }
    stack_.resize(from);
    push(std::move(made));
  }
  /// Notes that `part` becomes a part of `whole`. What is a part does not change any more, so nothing contains itself.
  void add(Container& whole, PickleValue& part) const {
    auto* held = std::get_if<std::shared_ptr<Container>>(&part.value_);
    if (!held) return;
    (*held)->is_part = true;
    whole.depth = std::max(whole.depth, (*held)->depth + 1);
    if (held->get() == &whole || whole.depth > kDeepest) refuse(fmt::format("containers must be at most {} deep", kDeepest));
  }
  void add_pairs(Container& whole, std::size_t from) {
    if ((stack_.size() - from) % 2 != 0) refuse("a dict must have a value for each key");
    for (std::size_t i = from; i < stack_.size(); i += 2) {
      add(whole, stack_[i]), add(whole, stack_[i + 1]);
      whole.dict.emplace_back(std::move(stack_[i]), std::move(stack_[i + 1]));
    }
  }
  std::size_t last_mark() {
    if (marks_.empty()) refuse("a mark must stand before what needs one");
    const std::size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }
  /// The stack without its last `n` values, of which none may stand before a mark.
  std::size_t last(std::size_t n) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < floor + n) refuse(fmt::format("{} values must stand before what needs them", n));
    return stack_.size() - n;
  }
  /// Adds the values from `from` on to the container before them.
  void extend(bool is_dict, std::size_t from) {
    if (from == 0 || (!marks_.empty() && from - 1 < marks_.back())) refuse("a container must stand before its parts");
    auto* held = std::get_if<std::shared_ptr<Container>>(&stack_[from - 1].value_);
    if (!held || (*held)->is_dict != is_dict || (*held)->is_part) refuse("parts must be added to a list or dict of its own");
    Container& whole = **held;
    if (is_dict) {
      add_pairs(whole, from);
    } else {
      for (std::size_t i = from; i < stack_.size(); ++i) add(whole, stack_[i]), whole.list.push_back(std::move(stack_[i]));
    }
    stack_.resize(from);
  }
  void put(std::uint64_t index) {
    if (index > kMostMemos) refuse(fmt::format("memo numbers must be at most {}", kMostMemos));
    memo_[index] = stack_[last(1)];
  }
  void get(std::uint64_t index) {
    auto found = memo_.find(index);
    if (found == memo_.end()) refuse("a memo must be one that was put");
    stack_.push_back(found->second);
  }

  void step(unsigned code) {
    switch (code) {
      case 0x95: little_endian(8); break;  // a frame, whose length readers of files do not need
      case '(': marks_.push_back(stack_.size()); break;
      case '0': stack_.resize(last(1)); break;
      case 'N': push(std::monostate()); break;
      case 0x88: push(true); break;
      case 0x89: push(false); break;
      case 'K': push(static_cast<std::int64_t>(byte())); break;
      case 'M': push(static_cast<std::int64_t>(little_endian(2))); break;
      case 'J': push(signed_number(4)); break;
      case 0x8a: push(signed_number(byte())); break;
      case 'G': {
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
        push(std::bit_cast<double>(bits));
        break;
      }
      case 'X': push(std::make_shared<std::string>(text(little_endian(4)))); break;
      case 0x8c: push(std::make_shared<std::string>(text(byte()))); break;
      case 0x8d: push(std::make_shared<std::string>(text(little_endian(8)))); break;
      case '}': push_container(true, stack_.size()); break;
      case ']':
      case ')': push_container(false, stack_.size()); break;
      case 'd': push_container(true, last_mark()); break;
      case 'l':
      case 't': push_container(false, last_mark()); break;
      case 0x85: push_container(false, last(1)); break;
      case 0x86: push_container(false, last(2)); break;
      case 0x87: push_container(false, last(3)); break;
      case 'a': extend(false, last(1)); break;
      case 'e': extend(false, last_mark()); break;
      case 's': extend(true, last(2)); break;
      case 'u': extend(true, last_mark()); break;
      case 0x94: put(memo_.size()); break;
      case 'q': put(byte()); break;
      case 'r': put(little_endian(4)); break;
      case 'h': get(byte()); break;
      case 'j': get(little_endian(4)); break;
      default: refuse(fmt::format("a pickle of plain values must have no opcode 0x{:02x}", code));
    }
  }

  std::span<const std::byte> bytes_;
  std::string_view op_;
  std::size_t at_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, PickleValue> memo_;
};

PickleValue read_pickle(std::span<const std::byte> bytes, std::string_view op) { return PickleReader(bytes, op).read(); }

}}}  // namespace clutch::v0::detail
