// SPDX-License-Identifier: Apache-2.0
// Error texts that the documents quote are those of the library: each quoted line is one that a call here provokes, up to its numbers.
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

namespace clutch::testing { namespace {

using List = std::vector<Tensor>;

struct Quote {
  std::string where;  ///< page:line
  std::string text;
};

/// Lines in fenced blocks without a language that begin with an op's name and a colon, and comments behind what() in code.
std::vector<Quote> quotes_of(const std::string& page, std::istream& in) {
  static const std::regex begins_with_op(R"(^[A-Za-z_][\w:]*\w: .*)");
  std::vector<Quote> found;
  static const std::regex behind_what(R"(.*what\(\)[^;]*;\s+// (.*))");
  bool fenced = false, plain = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```"))
      fenced = !fenced, plain = line == "```";
    else if (fenced && plain && std::regex_match(line, begins_with_op))
      found.push_back({fmt::format("{}:{}", page, number), line});
    else if (std::smatch match; fenced && std::regex_match(line, match, behind_what))
      found.push_back({fmt::format("{}:{}", page, number), match[1]});
  }
  return found;
}

/// The text with # in place of each number.
std::string without_numbers(const std::string& text) { return std::regex_replace(text, std::regex(R"([0-9]+(\.[0-9]+)?)"), "#"); }

/// What is wrong with the quotes: those that no text here is like, and texts that no quote is like, so that what is no longer quoted leaves this list.
std::vector<std::string> wrong_quotes(const std::vector<Quote>& quotes, const std::vector<std::string>& texts) {
  std::vector<std::string> wrong;
  std::set<std::string> provoked, quoted;
  for (const std::string& text : texts) provoked.insert(without_numbers(text));
  for (const Quote& quote : quotes) {
    quoted.insert(without_numbers(quote.text));
    if (!provoked.contains(without_numbers(quote.text))) wrong.push_back(fmt::format("{}: no call has the text: {}", quote.where, quote.text));
  }
  for (const std::string& text : texts)
    if (!quoted.contains(without_numbers(text))) wrong.push_back("no page quotes: " + text);
  return wrong;
}

/// The texts of calls that go wrong as the documents say.
std::vector<std::string> provoked_texts() {
  const Tensor q = zeros({1, 8, 4, 4}), two_heads = zeros({1, 2, 4, 4}), m = zeros({8, 8}), p = zeros({4});
  const linalg::EighStatus bad{.info = full({18}, -1, {.dtype = DType::i32}), .sweeps = zeros({18}, {.dtype = DType::i32})};
  const Tensor integers = zeros({4, 4}, {.dtype = DType::i8});
  const Stream stream(current_device());
  const attention::BlockMask longer = attention::create_block_mask(attention::causal(), {.q_len = 256, .kv_len = 256});
  const std::vector<std::function<void()>> calls{
      [&] { attention::flex(q, two_heads, two_heads); },
      [&] { attention::flex(q, q, q, {.block_mask = longer}); },
      [&] { attention::flex_backward(q, q, q, q, {.out = q}); },
      [&] {
        linalg::eigh(zeros({4, 8, 7}));
      },
      [&] { linalg::eigh(m, {.first = 3, .count = 9}); },
      [&] { linalg::eigh(m, {.driver = linalg::EighDriver::qr_lanes, .accuracy = linalg::EighAccuracy::relative}); },
      [&] { linalg::require_converged(bad); },
      [&] {
        addcdiv(zeros({4096, 256}), zeros({5}), zeros({4096, 1}));
      },
      [&] {
        Graph graph;
        GraphCapture capture(graph, stream);
        stream.synchronize();
      },
      [&] {
        linalg::matmul(zeros({4, 5}), zeros({6, 3}));
      },
      [&] { linalg::matmul(integers, integers, {.alpha = 0.5}); },
      [&] { optim::AdamW({p}, {.beta1 = 1}); },
      [&] {
        optim::AdamW({zeros({2}), zeros({2}), zeros({2})}).step(List{zeros({2}), zeros({2})});
      },
      [&] {
        sparse::prune_2_4(zeros({3, 4, 4}));
      },
      [&] { sparse::to_cutlass(sparse::compress(m)); },
      [&] {
        topk(zeros({3, 4}), 5, 1);
      },
      [&] {
        clutch::index(zeros({3, 4}), {zeros({3, 3}, {.dtype = DType::boolean})});
      },
  };
  std::vector<std::string> texts;
  for (const auto& call : calls) {
    try {
      call();
      texts.push_back(fmt::format("call {} throws nothing", texts.size()));
    } catch (const Error& e) {
      texts.push_back(e.what());
    }
  }
  return texts;
}

TEST(Quotes, AreTextsOfTheLibrary) {
  namespace fs = std::filesystem;
  std::vector<fs::path> pages{fs::path(CLUTCH_SOURCE) / "README.md"};
  for (const auto& file : fs::directory_iterator(fs::path(CLUTCH_SOURCE) / "docs"))
    if (file.path().extension() == ".md") pages.push_back(file.path());
  std::vector<Quote> quotes;
  for (const fs::path& page : pages) {
    std::ifstream in(page);
    const std::vector<Quote> of_page = quotes_of(page.filename().string(), in);
    quotes.insert(quotes.end(), of_page.begin(), of_page.end());
  }
  const std::vector<std::string> texts = provoked_texts();
  EXPECT_GE(quotes.size(), texts.size()) << "quotes are no longer found";
  for (const std::string& line : wrong_quotes(quotes, texts)) ADD_FAILURE() << line;
}

TEST(Quotes, OfNoTextAreFound) {
  std::stringstream page(
      "sum: of no block\n```cpp\nsum: of code\nputs(e.what());  // sum: in code\n```\n\n```\nsum: dim must be in [-2, 2), got 5\nsum: there is no dim "
      "5\nlinalg::eigh: planted\nfree "
      "text\n```\nsum: behind\n");
  const std::vector<Quote> quotes = quotes_of("page.md", page);
  ASSERT_EQ(quotes.size(), 4u);
  EXPECT_EQ(wrong_quotes(quotes, {"sum: dim must be in [-3, 3), got 12"}),
            (std::vector<std::string>{"page.md:4: no call has the text: sum: in code", "page.md:9: no call has the text: sum: there is no dim 5",
                                      "page.md:10: no call has the text: linalg::eigh: planted"}));
  EXPECT_EQ(wrong_quotes({}, {"sum: of no page"}), std::vector<std::string>{"no page quotes: sum: of no page"});
}

}}  // namespace clutch::testing
