// SPDX-License-Identifier: Apache-2.0
#include "support/random_program.hpp"

#include "support/program_ops.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>

namespace clutch::testing {

// Text

std::string program_text(const Program& program) {
  std::string text = fmt::format("seed {}\n", program.seed);
  for (const ProgramCall& call : program.calls) {
    std::string line;
    for (int r : call.results) line += fmt::format("%{} ", r);
    if (!call.results.empty()) line += "= ";
    line += call.op;
    for (int t : call.tensors) line += fmt::format(" %{}", t);
    for (const auto& [key, value] : call.values) line += fmt::format(" {}={}", key, value);
    if (call.stream != 0) line += fmt::format(" @{}", call.stream);
    text += line + '\n';
  }
  return text;
}

namespace {

template <class T>
T parsed(std::string_view text, std::string_view what) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw std::invalid_argument(fmt::format("{} must be a number, got '{}'", what, text));
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

ProgramCall parse_call(const std::vector<std::string_view>& words) {
  ProgramCall call;
  auto tensor = [](std::string_view word) { return parsed<int>(word.substr(1), "a tensor"); };
  std::size_t at = 0;
  while (at < words.size() && words[at][0] == '%') call.results.push_back(tensor(words[at++]));
  if (!call.results.empty() && (at == words.size() || words[at++] != "=")) throw std::invalid_argument("'=' must follow the results");
  if (at == words.size()) throw std::invalid_argument("an op must be named");
  call.op = words[at++];
  program_op(call.op);
  for (; at < words.size(); ++at) {
    std::string_view word = words[at];
    if (word[0] == '%') {
      call.tensors.push_back(tensor(word));
    } else if (word[0] == '@') {
      call.stream = parsed<int>(word.substr(1), "a stream");
      if (call.stream < 0 || call.stream >= ProgramRun::kStreams) throw std::invalid_argument(fmt::format("the stream must be 0 or 1, got {}", word));
    } else if (std::size_t equals = word.find('='); equals != std::string_view::npos && equals > 0) {
      call.values[std::string(word.substr(0, equals))] = word.substr(equals + 1);
    } else {
      throw std::invalid_argument(fmt::format("an argument must be %tensor, key=value or @stream, got '{}'", word));
    }
  }
  return call;
}

}  // namespace

Program parse_program(std::string_view text) {
  Program program;
  std::set<int> made;
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    std::size_t end = std::min(text.find_first_of(";\n", at), text.size());
    std::vector<std::string_view> words = words_of(text.substr(at, end - at));
    at = end + 1;
    if (words.empty() || words[0][0] == '#') continue;
    try {
      if (words[0] == "seed") {
        if (words.size() != 2) throw std::invalid_argument("one number must follow 'seed'");
        program.seed = parsed<std::uint64_t>(words[1], "the seed");
        continue;
      }
      ProgramCall call = parse_call(words);
      for (int t : call.tensors)
        if (made.count(t) == 0) throw std::invalid_argument(fmt::format("%{} must be made first", t));
      for (int r : call.results)
        if (!made.insert(r).second) throw std::invalid_argument(fmt::format("%{} must be made once", r));
      program.calls.push_back(std::move(call));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("line {}: {}", line, e.what()));
    }
  }
  return program;
}

GivenCall::GivenCall(const ProgramCall& call, const ProgramRun& run) : call_(call), run_(run) {
  for (int t : call.tensors) tensors_.push_back(run.tensor(t));
}
const Tensor& GivenCall::operator[](std::size_t i) const {
  if (i >= tensors_.size()) throw std::invalid_argument(fmt::format("{} must be given {} tensors, got {}", call_.op, i + 1, tensors_.size()));
  return tensors_[i];
}
const std::string& GivenCall::text(const char* key) const {
  auto found = call_.values.find(key);
  if (found == call_.values.end()) throw std::invalid_argument(fmt::format("{} must have a value '{}'", call_.op, key));
  return found->second;
}
double GivenCall::number(const char* key) const { return parsed<double>(text(key), key); }
std::int64_t GivenCall::whole(const char* key, std::optional<std::int64_t> otherwise) const {
  if (otherwise && !has(key)) return *otherwise;
  return parsed<std::int64_t>(text(key), key);
}
std::vector<double> GivenCall::numbers(const char* key) const {
  std::vector<double> all;
  if (!has(key)) return all;
  std::string_view list = text(key);
  for (std::size_t at = 0; at < list.size();) {
    std::size_t end = std::min(list.find(',', at), list.size());
    all.push_back(parsed<double>(list.substr(at, end - at), key));
    at = end + 1;
  }
  return all;
}
Dims GivenCall::dims(const char* key) const {
  Dims dims;
  for (double v : numbers(key)) dims.push_back(static_cast<std::int64_t>(v));
  return dims;
}
Scalar GivenCall::scalar(const char* key) const {
  if (text(key).find_first_of(".en") == std::string::npos) return whole(key);
  return number(key);
}
const Generator& GivenCall::generator() const {
  std::int64_t i = whole("generator");
  if (i < 0 || i >= ProgramRun::kGenerators)
    throw std::invalid_argument(fmt::format("the generator must be in [0, {}), got {}", int{ProgramRun::kGenerators}, i));
  return run_.generator(static_cast<int>(i));
}
std::string dims_text(const Dims& dims) { return fmt::format("{}", fmt::join(dims.begin(), dims.end(), ",")); }

// Runs

namespace {

/// Streams of programs, kept because each has memory of its own.
const std::array<Stream, ProgramRun::kStreams>& streams_of(const Device& device) {
  static std::map<std::string, std::array<Stream, ProgramRun::kStreams>> all;
  auto [found, fresh] = all.try_emplace(device.selector());
  if (fresh)
    for (Stream& stream : found->second) stream = Stream(device);
  return found->second;
}

}  // namespace

ProgramRun::ProgramRun(const Device& device) : device_(device), streams_(streams_of(device)) {}

void ProgramRun::begin(const Program& program) {
  inputs_.clear();
  start();
  for (int g = 0; g < kGenerators; ++g)
    generators_.at(static_cast<std::size_t>(g)) = Generator(device_, program.seed + static_cast<std::uint64_t>(g), streams_[0]);
  for (const ProgramCall& call_ : program.calls)
    if (call_.op == "input") call(call_);
}

void ProgramRun::start() {
  tensors_ = inputs_;
  uses_.clear();
  forked_ = false;
}

void ProgramRun::run(const Program& program) {
  start();
  for (const ProgramCall& call_ : program.calls)
    if (call_.op != "input") call(call_);
  join();
}

void ProgramRun::join() {
  if (forked_) order(1, 0);
  forked_ = false;
}

const Tensor& ProgramRun::tensor(int number) const {
  auto found = tensors_.find(number);
  if (found == tensors_.end()) throw std::invalid_argument(fmt::format("there must be a tensor %{}", number));
  return found->second;
}

void ProgramRun::order(int from, int to) {
  Event done;
  done.record(stream(from));
  stream(to).wait(done);
  auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
  for (std::size_t other = 0; other < kStreams; ++other) seen_.at(t).at(other) = std::max(seen_.at(t).at(other), seen_.at(f).at(other));
  seen_.at(t).at(f) = count_.at(f);
}

void ProgramRun::use(const void* memory, bool write, int stream) {
  auto s = static_cast<std::size_t>(stream);
  Uses& uses = uses_[memory];
  for (std::size_t other = 0; other < kStreams; ++other) {
    if (other == s) continue;
    std::uint64_t last = write ? std::max(uses.written.at(other), uses.read.at(other)) : uses.written.at(other);
    if (last > seen_.at(s).at(other)) order(static_cast<int>(other), stream);
  }
  (write ? uses.written : uses.read).at(s) = count_.at(s);
}

std::vector<Tensor> ProgramRun::perform(const ProgramCall& call) {
  const ProgramOp& op = program_op(call.op);
  GivenCall given(call, *this);
  if (op.does == ProgramOp::Does::makes || op.does == ProgramOp::Does::writes) {
    if (call.stream != 0 && !forked_) {
      order(0, call.stream);
      forked_ = true;
    }
    ++count_.at(static_cast<std::size_t>(call.stream));
    auto written = op.does == ProgramOp::Does::makes ? 0 : op.written > 0 ? op.written : given.whole("outs");
    for (std::size_t i = 0; i < call.tensors.size(); ++i) use(given[i].storage().get(), static_cast<std::int64_t>(i) < written, call.stream);
    if (given.has("generator")) use(given.generator().impl().get(), true, call.stream);
  }
  StreamGuard guard(stream(call.stream));
  std::vector<Tensor> made = op.run(given);
  for (const Tensor& t : made)
    if (op.does != ProgramOp::Does::views) use(t.storage().get(), true, call.stream);
  return made;
}

void ProgramRun::keep(const ProgramCall& call, const std::vector<Tensor>& made) {
  if (made.size() != call.results.size())
    throw std::invalid_argument(fmt::format("{} must have {} results, got {}", call.op, made.size(), call.results.size()));
  for (std::size_t i = 0; i < made.size(); ++i) {
    tensors_[call.results[i]] = made[i];
    if (call.op == "input") inputs_[call.results[i]] = made[i];
  }
  if (call.op == "drop")
    for (int t : call.tensors) tensors_.erase(t);
}

void ProgramRun::call(const ProgramCall& call) { keep(call, perform(call)); }

ProgramState ProgramRun::state() const {
  ProgramState state;
  std::map<const void*, std::size_t> known;
  std::vector<StorageHandle> storages;
  std::map<int, Tensor> all = tensors_;
  all.insert(inputs_.begin(), inputs_.end());
  for (const auto& [number, tensor] : all) {
    auto [found, fresh] = known.try_emplace(tensor.storage().get(), storages.size());
    if (fresh) {
      storages.emplace_back(tensor);
      state.memory.push_back({.what = {}, .dtype = tensor.dtype(), .bytes = {}});
    }
    ProgramState::Memory& memory = state.memory[found->second];
    if (memory.dtype != tensor.dtype()) memory.dtype = DType::u8;
    std::string& what = memory.what;
    what += fmt::format("{}%{}, {} {} of strides {} at byte {}", what.empty() ? "" : ", ", number, name(tensor.dtype()), to_string(tensor.sizes()),
                        to_string(tensor.strides()), tensor.byte_offset());
  }
  for (std::size_t i = 0; i < storages.size(); ++i)
    state.memory[i].bytes = storages[i].view({static_cast<std::int64_t>(storages[i].bytes())}, DType::u8).to_bytes(streams_[0]);
  for (const Generator& generator : generators_) state.generators.push_back(generator.state(streams_[0]));
  return state;
}

namespace {

/// Changes each NaN to one of the same bits. Memory is whole elements, in which all tensors begin.
std::vector<std::uint8_t> with_equal_nans(const ProgramState::Memory& memory) {
  std::vector<std::uint8_t> bytes = memory.bytes;
  auto each = [&](auto bits, int mantissa) {
    using Bits = decltype(bits);
    const auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1)), infinity = static_cast<Bits>(static_cast<Bits>(sign - 1) >> mantissa << mantissa);
    for (std::size_t at = 0; at + sizeof bits <= bytes.size(); at += sizeof bits) {
      std::memcpy(&bits, bytes.data() + at, sizeof bits);
      if (static_cast<Bits>(bits & ~sign) <= infinity) continue;
      bits = static_cast<Bits>(~Bits{0});
      std::memcpy(bytes.data() + at, &bits, sizeof bits);
    }
  };
  switch (memory.dtype) {
    case DType::f16: each(std::uint16_t{}, 10); break;
    case DType::bf16: each(std::uint16_t{}, 7); break;
    case DType::f32:
    case DType::c64: each(std::uint32_t{}, 23); break;
    case DType::f64:
    case DType::c128: each(std::uint64_t{}, 52); break;
    default: break;
  }
  return bytes;
}

}  // namespace

std::string difference(const ProgramState& got, const ProgramState& want) {
  if (got.memory.size() != want.memory.size()) return fmt::format("{} storages instead of {}", got.memory.size(), want.memory.size());
  for (std::size_t m = 0; m < got.memory.size(); ++m) {
    const std::string& what = got.memory[m].what;
    if (what != want.memory[m].what) return fmt::format("{} instead of {}", what, want.memory[m].what);
    if (got.memory[m].bytes == want.memory[m].bytes) continue;
    const std::vector<std::uint8_t> bytes = with_equal_nans(got.memory[m]), wanted = with_equal_nans(want.memory[m]);
    if (bytes.size() != wanted.size()) return fmt::format("memory of {}: {} bytes instead of {}", what, bytes.size(), wanted.size());
    auto [g, w] = std::mismatch(bytes.begin(), bytes.end(), wanted.begin());
    if (g == bytes.end()) continue;
    auto at = static_cast<std::size_t>(g - bytes.begin());
    std::size_t count = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) count += bytes[i] != wanted[i];
    std::size_t from = at / 8 * 8, to = std::min(from + 8, bytes.size());
    auto hex = [&](const std::vector<std::uint8_t>& b) {
      return fmt::format("{:02x}", fmt::join(b.begin() + static_cast<std::ptrdiff_t>(from), b.begin() + static_cast<std::ptrdiff_t>(to), " "));
    };
    return fmt::format("memory of {}: byte {} of {} is the first of {} that differ; bytes from {}: {} instead of {}", what, at, bytes.size(), count, from,
                       hex(bytes), hex(wanted));
  }
  for (std::size_t i = 0; i < got.generators.size(); ++i)
    if (!(got.generators[i] == want.generators[i]))
      return fmt::format("generator {} has seed {} and offset {} instead of {} and {}", i, got.generators[i].seed, got.generators[i].offset,
                         want.generators[i].seed, want.generators[i].offset);
  return {};
}

// Random calls

namespace {
/// So many of them, in a random order.
template <class T>
std::vector<T> some_of(std::vector<T> all, std::size_t count, model::Random& random) {
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.next() % i]);
  all.resize(std::min(count, all.size()));
  return all;
}
}  // namespace

CallDraw::CallDraw(model::Random& random, const ProgramOptions& options, ProgramRun& run, Program& program, int& next)
    : random_(random), options_(options), run_(run), program_(program), next_(next) {
  static const std::vector<std::int64_t> usual{1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 65, 130};
  for (int i = 0; i < 3; ++i) sizes_.push_back(pick(usual));
  if (one_in(6)) sizes_[0] = 0;
  // What the programs of a block have in common.
  block_ = program.seed / (wide() ? kWideBlock : kBlock) * 2 + (wide() ? 1 : 0);
  model::Random block(block_);
  auto some = [&](auto all, std::size_t count) { return some_of(std::move(all), count, block); };
  for (const ProgramBody& body : all_program_bodies()) bodies_.push_back(&body);
  bodies_ = some(std::move(bodies_), wide() ? 8 : 6);
  std::vector<std::string> rare;
  for (const ProgramOp& op : all_program_ops())
    if (!op.usual && op.weight > 0 && op.does != ProgramOp::Does::views) rare.push_back(op.name);
  for (std::string& name : some(std::move(rare), wide() ? 10 : 6)) ops_.insert(std::move(name));
  dtypes_ = some(std::vector<DType>{DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean}, 3);
}

int CallDraw::find(const std::function<bool(const Tensor&)>& fits) {
  std::vector<int> found;
  for (const auto& [number, tensor] : run_.tensors())
    if (fits(tensor)) found.push_back(number);
  if (found.empty()) return -1;
  if (one_in(3)) return pick(found);
  std::size_t last = std::min<std::size_t>(found.size(), 4);
  return found[found.size() - 1 - below(last)];
}

int CallDraw::of(DType dtype) {
  int found = one_in(8) ? -1 : find([&](const Tensor& t) { return t.dtype() == dtype; });
  return found >= 0 ? found : input(sizes(), dtype);
}

int CallDraw::partner(const Dims& sizes, DType dtype) {
  int found = one_in(6) ? -1 : find([&](const Tensor& t) {
    if (t.dtype() != dtype || t.rank() > sizes.rank()) return false;
    for (int d = 1; d <= t.rank(); ++d)
      if (t.size(-d) != 1 && t.size(-d) != sizes[sizes.rank() - d]) return false;
    return true;
  });
  if (found >= 0) return found;
  Dims smaller = sizes;
  if (one_in(2))
    for (int d = 0; d < smaller.rank(); ++d)
      if (one_in(2)) smaller[d] = 1;
  while (smaller.rank() > 0 && one_in(4)) smaller.erase(0);
  return input(smaller, dtype);
}

int CallDraw::exactly(const Dims& sizes, DType dtype) {
  int found = one_in(8) ? -1 : find([&](const Tensor& t) { return t.dtype() == dtype && t.sizes() == sizes; });
  return found >= 0 ? found : input(sizes, dtype);
}

int CallDraw::indices(const Dims& sizes, std::int64_t below) {
  int found = one_in(2) ? -1 : find([&](const Tensor& t) { return t.dtype() == DType::i64 && t.sizes() == sizes; });
  return found >= 0 ? found : input(sizes, DType::i64, std::max<std::int64_t>(below, 1));
}

DType CallDraw::dtype() {
  if (!wide() || one_in(3)) return DType::f32;
  DType drawn = pick(dtypes_);
  return drawn == DType::f64 && !run_.device().traits().fp64 ? DType::f32 : drawn;
}

std::string CallDraw::function(std::vector<std::string> names, std::size_t by_day) {
  if (!wide()) names.resize(std::min(by_day, names.size()));
  model::Random block(block_ + names.size());
  return pick(some_of(std::move(names), wide() ? 5 : 3, block));
}

std::int64_t CallDraw::size() { return one_in(5) ? 1 : pick(sizes_); }

Dims CallDraw::sizes(int least_rank, int most_rank) {
  for (;;) {
    Dims dims;
    for (auto rank = static_cast<std::uint64_t>(least_rank) + below(static_cast<std::uint64_t>(most_rank) - static_cast<std::uint64_t>(least_rank) + 1);
         rank > 0; --rank)
      dims.push_back(size());
    if (numel(dims) <= 20000) return dims;
  }
}

bool CallDraw::dim(ProgramCall& call, const Tensor& t, const char* key) {
  if (t.rank() == 0) return false;
  std::int64_t d = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(t.rank())));
  call.values[key] = std::to_string(one_in(2) ? d : d - t.rank());
  return true;
}

std::string CallDraw::scalar(bool whole) {
  static const std::vector<std::string> wholes{"0", "1", "-1", "2", "3", "7"}, reals{"0.0", "1.0", "-1.0", "0.5", "-0.25", "1.5", "3.0", "0.1"};
  return whole ? pick(wholes) : pick(reals);
}

int CallDraw::input(const Dims& sizes, DType dtype, std::int64_t below_) {
  ProgramCall call{.op = "input"};
  call.values["dtype"] = name(dtype);
  call.values["sizes"] = dims_text(sizes);
  call.values["values"] = std::to_string(below(1000));
  if (below_ > 0) call.values["below"] = std::to_string(below_);
  if (one_in(5)) call.values["specials"] = "1";
  if (sizes.rank() > 0 && one_in(3)) {
    Dims strides = Dims::filled(sizes.rank(), 0);
    std::vector<int> order;
    for (int d = 0; d < sizes.rank(); ++d) order.push_back(d);
    if (one_in(2)) std::reverse(order.begin(), order.end());  // the first dimension is dense: transposed
    std::int64_t step = one_in(3) ? 2 : 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = step;
      step *= std::max<std::int64_t>(sizes[order[i]], 1);
      if (one_in(3)) step += 3;  // gaps between rows
    }
    call.values["strides"] = dims_text(strides);
  }
  if (one_in(4)) call.values["lead"] = std::to_string(below(9));
  call.results = {next_};
  run_.call(call);
  program_.calls.push_back(std::move(call));
  return next_++;
}

Program make_program(std::uint64_t seed, const ProgramOptions& options, ProgramRun& run) {
  Program program{.seed = seed};
  run.begin(program);
  model::Random random(seed);
  int next = 0;
  Program calls;  // all but the inputs, which stand first
  CallDraw draw(random, options, run, program, next);
  for (std::uint64_t inputs = 2 + draw.below(3); inputs > 0; --inputs) draw.input(draw.sizes(), draw.dtype());
  const bool forks = draw.one_in(2);
  std::vector<const ProgramOp*> views, others;
  for (const ProgramOp& op : all_program_ops())
    for (int i = 0; i < op.weight; ++i)
      if (op.does == ProgramOp::Does::views)
        views.push_back(&op);
      else if (op.usual || draw.ops_.count(op.name) > 0)
        others.push_back(&op);
  auto add = [&](const ProgramOp& op) {
    ProgramCall call{.op = op.name};
    if (forks && op.does != ProgramOp::Does::views && draw.one_in(3)) call.stream = 1;
    try {
      if (!op.draw(draw, call)) return false;
      std::vector<Tensor> made = run.perform(call);
      for (std::size_t i = 0; i < made.size(); ++i) call.results.push_back(next++);
      run.keep(call, made);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::invalid_shape || e.code() == ErrorCode::invalid_dtype ||
          e.code() == ErrorCode::invalid_overlap || e.code() == ErrorCode::not_supported)
        return false;
      throw;
    }
    calls.calls.push_back(std::move(call));
    return true;
  };
  for (int made = 0, tries = 0; made < options.calls && tries < 50 * options.calls; ++tries) {
    if (draw.one_in(4)) add(*draw.pick(views));
    if (add(*draw.pick(others))) ++made;
    if (draw.one_in(3) && run.tensors().size() > 3) {
      ProgramCall drop{.op = "drop", .tensors = {draw.find([](const Tensor&) { return true; })}};
      run.call(drop);
      calls.calls.push_back(std::move(drop));
    }
  }
  run.join();
  program.calls.insert(program.calls.end(), calls.calls.begin(), calls.calls.end());
  return program;
}

std::vector<std::string> program_ops() {
  std::vector<std::string> names;
  for (const ProgramOp& op : all_program_ops()) names.push_back(op.name);
  return names;
}
std::vector<std::string> program_bodies() {
  std::vector<std::string> names;
  for (const ProgramBody& body : all_program_bodies()) names.emplace_back(body.name);
  return names;
}
bool program_op_writes(std::string_view op) { return program_op(op).does == ProgramOp::Does::writes; }
bool program_op_views(std::string_view op) { return program_op(op).does == ProgramOp::Does::views; }

}  // namespace clutch::testing
