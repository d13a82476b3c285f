// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python's pickles, as far as snapshots of memory and dumps of flight recorders need them: written with the opcodes that every reader of these knows (protocol
// 2), read from protocols 2 to 5. https://docs.python.org/3/library/pickletools.html
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class PickleWriter {
 public:
  PickleWriter() { bytes_ = "\x80\x02"; }
  /// Between begin and end of a dict stand keys and values in turn.
  void begin_dict() { begin("}("); }
  void end_dict() { end('u'); }
  void begin_list() { begin("](", true); }
  void end_list() { end('e'); }
  void begin_tuple() { begin("("); }
  void end_tuple() { end('t'); }
  void text(std::string_view value);
  void integer(std::int64_t value);
  void integer(std::uint64_t value);
  void number(double value);
  void none() {
    bytes_ += 'N';
    ended();
  }
  void boolean(bool value) {
    bytes_ += value ? '\x88' : '\x89';
    ended();
  }
  /// The pickle, which is finished.
  std::string finish() { return std::move(bytes_ += '.'); }

 private:
  struct Open {
    bool is_list;
    int count;  ///< of elements since the last batch ended
  };
  void begin(const char* text, bool is_list = false) {
    bytes_ += text;
    open_.push_back({is_list, 0});
  }
  void end(char opcode) {
    open_.pop_back();
    bytes_ += opcode;
    ended();
  }
  /// A value has ended. Elements of lists go in batches, as Python's pickler writes them: a reader may take those of one as the arguments of a call.
  void ended() {
    constexpr int kBatch = 1000;
    if (open_.empty() || !open_.back().is_list || ++open_.back().count < kBatch) return;
    bytes_ += "e(";
    open_.back().count = 0;
  }
  void little_endian(std::uint64_t value, int bytes);
  std::string bytes_;
  std::vector<Open> open_;
};

/// A value of a pickle. Parts that occur twice are shared.
class PickleValue {
 public:
  using List = std::vector<PickleValue>;
  using Dict = std::vector<std::pair<PickleValue, PickleValue>>;

  bool is_none() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  /// Null unless the value is of that kind.
  const std::string* text() const noexcept;
  const List* list() const noexcept;  ///< of a list or tuple
  const Dict* dict() const noexcept;
  /// The number of an integer, float or bool; `other` for what is none.
  double number(double other) const noexcept;
  std::uint64_t whole(std::uint64_t other) const noexcept;
  /// The value of a dict's key; none if this is no dict or has no such key.
  const PickleValue& operator[](std::string_view key) const noexcept;

 private:
  friend class PickleReader;
  struct Container {
    List list;
    Dict dict;
    bool is_dict = false;
    bool is_part = false;  ///< of another container: it does not change any more
    int depth = 1;
  };
  std::variant<std::monostate, bool, std::int64_t, double, std::shared_ptr<std::string>, std::shared_ptr<Container>> value_;
};

/// Reads a pickle. Errors: io if it is not one, is cut off, or has what such files never have, such as objects of classes.
PickleValue read_pickle(std::span<const std::byte> bytes, std::string_view op);

}}}  // namespace clutch::v0::detail
