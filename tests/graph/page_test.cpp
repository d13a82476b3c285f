// SPDX-License-Identifier: Apache-2.0
// Pages of graphs, and the times that they show.
#include "graph/html.hpp"

#include "graph/backends.hpp"
#include "support/html_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace clutch::testing { namespace {

std::string scratch_path(const std::string& ending) {
  static int count = 0;
  return (std::filesystem::temp_directory_path() / fmt::format("clutch_page_{}_{}{}", ::getpid(), ++count, ending)).string();
}
std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// What tests/graph/check_page.py finds wrong; empty without Python.
std::string faults(const std::string& page) {
  const std::string path = scratch_path(".html"), found = path + ".found";
  std::ofstream(path, std::ios::binary) << page;
  std::string wrong;
  if (std::string_view(CLUTCH_PYTHON).empty()) return wrong;
  const int status = std::system(fmt::format("{} -B {} {} >{} 2>&1", CLUTCH_PYTHON, CLUTCH_CHECK_PAGE, path, found).c_str());
  if (status != 0) wrong = read(found) + fmt::format("(status {})", status);
  std::filesystem::remove(path);
  std::filesystem::remove(found);
  return wrong;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(GraphPages, TextIsEscapedAndAlwaysText) {
  EXPECT_EQ(detail::html_text("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(detail::html_text("µ € 😀\n\t"), "µ € 😀\n\t");
  const std::string no = "\xEF\xBF\xBD";
  EXPECT_EQ(detail::html_text(std::string_view("\0\x01\x1F", 3)), no + no + no);
  // A byte alone, an overlong form, a surrogate, one past the last code, and one that XML does not have; and characters that end too early.
  for (const char* wrong : {"\xFF", "\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xEF\xBF\xBE",
                            "\xC3", "\xE2\x82", "\xF0\x9F\x98"}) {
    const std::string text = detail::html_text(fmt::format("{}x", wrong));
    EXPECT_EQ(text.find(no), 0u);
    EXPECT_EQ(text.back(), 'x');
    EXPECT_EQ(text.find_first_not_of("\xEF\xBF\xBDx"), std::string::npos);
  }
  EXPECT_EQ(detail::html_text("\xEF\xBF\xBD\xF4\x8F\xBF\xBD\xED\x9F\xBF"), "\xEF\xBF\xBD\xF4\x8F\xBF\xBD\xED\x9F\xBF");
}

TEST(GraphPages, ShowWhatWasCaptured) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream main(device), side(device);
    Tensor x = full({64, 64}, 2, {.device = device}, main), y, z = zeros({64, 64}, {.device = device}, main), n;
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, main);
      GraphAnnotation layer("layer <1> & \"one\"", {{"key\x01", "value\xFF"}});
      y = exp(mul(x, x));
      Event forked;
      forked.record(main);
      side.wait(forked);
      n = nn::softmax(y, -1, side);
      Event joined;
      joined.record(side);
      main.wait(joined);
      add_(z, n);
      Encoder encoder(main, "doubler");
      encoder.host_task(
          [](std::span<void* const> p) {
            for (int i = 0; i < 64 * 64; ++i) static_cast<float*>(p[0])[i] *= 2;
          },
          {}, std::array{z});
    }
    std::string page = graph.to_string(GraphDump::html);
    EXPECT_EQ(faults(page), "");
    for (const char* part :
         {"Not measured: Graph::measure()", "Order and dependencies", "Temporary memory",
          backend == "host" || backend == "native" ? "The backend runs each node by itself" : "one launch (", "id=\"n0\"", "softmax", "host_task",
          "layer &lt;1&gt; &amp; &quot;one&quot; key\xEF\xBF\xBD=value\xEF\xBF\xBD", "f32 (64, 64)", "<span>streams</span><b>2</b>"})
      EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(page.find("layer <1>"), std::string::npos);
    EXPECT_EQ(count(page, "<details"), graph.nodes().size());
    EXPECT_NE(page.find(detail::html_text(graph.report().why)), std::string::npos);
    EXPECT_NE(page.find(fmt::format("<span>replays</span><b>{}</b>", 0)), std::string::npos);

    const std::vector<double> us = graph.measure(3, main);
    ASSERT_EQ(us.size(), graph.nodes().size());
    for (std::size_t i = 0; i < us.size(); ++i) {
      EXPECT_GT(us[i], 0) << i;
      EXPECT_LT(us[i], 1e6) << i;
      EXPECT_EQ(graph.nodes()[i].measured_us, us[i]);
    }
    EXPECT_EQ(graph.report().replays, 3u);
    // z was doubled three times, each time after a softmax of equal numbers was added to it: 1/64 (2 + 4 + 8).
    EXPECT_EQ(z.to_host<float>(main)[9], 14.0f / 64);
    page = graph.to_string(GraphDump::html);
    EXPECT_EQ(faults(page), "");
    EXPECT_EQ(page.find("Not measured"), std::string::npos);
    EXPECT_NE(page.find("<span>time, node by node</span>"), std::string::npos);
    EXPECT_NE(graph.to_string(GraphDump::json).find("\"measured_us\": "), std::string::npos);
    graph.replay(main);
    EXPECT_EQ(z.to_host<float>(main)[9], 30.0f / 64) << "it replays as before";
    std::swap(x, y);
  }
}

TEST(GraphPages, EndingsTellTheFormat) {
  const Device& device = test_devices().front();
  Stream stream(device);
  Tensor x = zeros({4}, {.device = device}, stream);
  Graph graph;
  {
    GraphCapture capture(graph, stream);
    add_(x, 1);
  }
  for (auto [ending, begin] : {std::pair{".html", "<!DOCTYPE html>"}, {".json", "{"}, {".dot", "digraph"}, {"", "digraph"}}) {
    const std::string path = scratch_path(ending);
    graph.debug_dump(path);
    EXPECT_TRUE(read(path).starts_with(begin)) << ending;
    std::filesystem::remove(path);
  }
  const std::string path = scratch_path(".html");
  graph.debug_dump(path, GraphDump::json);
  EXPECT_TRUE(read(path).starts_with("{")) << "a format that is given wins";
  std::filesystem::remove(path);
}

TEST(GraphPages, MeasuringIsCheckedAndIllegalInCaptures) {
  const Device& device = test_devices().front();
  Stream stream(device), other(device);
  Tensor x = zeros({4}, {.device = device}, stream);
  Graph empty, graph;
  EXPECT_EQ(code_of([&] { empty.measure(1, stream); }), ErrorCode::invalid_argument);
  {
    GraphCapture capture(graph, stream);
    add_(x, 1);
  }
  for (int replays : {0, -1, 10001}) EXPECT_EQ(code_of([&] { graph.measure(replays, stream); }), ErrorCode::invalid_argument) << replays;
  EXPECT_EQ(x.to_host<float>(stream)[0], 0) << "nothing ran";
  for (const Stream& on : {stream, other}) {
    Graph second;
    second.capture_begin(stream);
    EXPECT_EQ(code_of([&] { graph.measure(1, on); }), ErrorCode::capturing);
    second.capture_abandon();
  }
  EXPECT_EQ(x.to_host<float>(stream)[0], 0);
  std::vector<CaptureProblem> problems = dry_run([&] { EXPECT_EQ(graph.measure(2, stream), std::vector<double>{0}); }, stream);
  EXPECT_EQ(problems.size(), 1u);
  EXPECT_EQ(graph.nodes()[0].measured_us, 0) << "nothing was measured there";
  EXPECT_EQ(graph.measure(1, other).size(), 1u);
  EXPECT_EQ(x.to_host<float>(stream)[0], 1);
  // A graph of no nodes has no times.
  Graph nothing;
  nothing.capture_begin(stream);
  nothing.capture_end();
  EXPECT_TRUE(nothing.measure(2, stream).empty());
  EXPECT_EQ(faults(nothing.to_string(GraphDump::html)), "");
}

/// A page without a graph: nodes of a chain, each with a temporary.
detail::GraphPage chain(int nodes) {
  detail::GraphPage page;
  page.device = "a device";
  page.report.backend = "fused";
  page.report.why = "asked for";
  for (int i = 0; i < nodes; ++i) {
    GraphNode node;
    node.id = i, node.op = i % 3 == 0 ? "mul" : "add", node.kernel = "map_contiguous", node.stream = 1;
    if (i > 0) node.dependencies = {i - 1};
    if (i > 2) node.dependencies.push_back(i - 3);
    GraphArgument a;
    a.kind = Argument::Kind::output, a.name = "out", a.sizes = {2, 3}, a.strides = {3, 1}, a.buffer = i;
    node.arguments = {a};
    page.nodes.push_back(node);
    page.report.buffers.push_back({"temporary", 512, i, std::min(i + 1, nodes - 1), 0, static_cast<std::uint64_t>(i % 2) * 512});
    page.report.temporary_bytes += 512;
  }
  page.report.reserved_bytes = 1024;
  return page;
}

TEST(GraphPages, GroupsAreBoxesThatKeepTheirNodes) {
  detail::GraphPage page = chain(8);
  page.report.groups = {{"vertical", "fused<0>", {1, 2, 4}}, {"table", "list", {5, 6}}};
  page.nodes[1].labels = {{"encoder", {}}, {"block", {{"i", "1"}}}};
  page.nodes[2].labels = {{"encoder", {}}};
  page.nodes[4].labels = {{"head", {}}};
  page.nodes[1].why = "reads what node 0 wrote & nobody else does";
  page.nodes[3].why = "alone: another shape";
  for (GraphNode& node : page.nodes) node.measured_us = 10;
  const std::string text = detail::html_dump(page);
  EXPECT_EQ(faults(text), "");
  EXPECT_EQ(count(text, "<section class=\"group\""), 2u);
  EXPECT_EQ(count(text, "<details"), 8u) << "each node stands once";
  EXPECT_NE(text.find("<span>launches</span><b>5</b>"), std::string::npos);
  const std::size_t begin = text.find("vertical group of 3 nodes</b><code>fused&lt;0&gt;</code>"), end = text.find("</section>", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string box = text.substr(begin, end - begin);
  for (const char* part : {"id=\"n1\"", "id=\"n2\"", "id=\"n4\"", "30.0 µs, its nodes one by one", "reads what node 0 wrote &amp; nobody else does"})
    EXPECT_NE(box.find(part), std::string::npos) << part;
  EXPECT_EQ(box.find("id=\"n3\""), std::string::npos) << "a node of none is not in it";
  const std::string head = box.substr(0, box.find("</header>"));
  for (const char* label : {">encoder<", ">block i=1<", ">head<"}) EXPECT_EQ(count(head, label), 1u) << label;
  EXPECT_EQ(count(box, ">encoder<"), 3u) << "once for the box, once for each node that had it";
  EXPECT_NE(text.find("alone: another shape"), std::string::npos);
  EXPECT_LT(text.find("id=\"n4\""), text.find("id=\"n3\"")) << "a box stands where its first node was called";
  EXPECT_EQ(count(text, "class=\"box\""), 3u) << "neighbours of a group have one outline: 1 and 2, 4, 5 and 6";
  EXPECT_EQ(text.find("runs each node by itself"), std::string::npos);

  // A report that names nodes that there are not, or one twice, still gives a page.
  page.report.groups = {{"vertical", "k", {-1, 2, 99}}, {"", "", {}}, {"table", "k", {2, 3}}};
  EXPECT_EQ(faults(detail::html_dump(page)), "");
  EXPECT_EQ(count(detail::html_dump(page), "<details"), 8u);
}

TEST(GraphPages, LargeGraphsAreCutAndSaySo) {
  const std::string text = detail::html_dump(chain(4000));
  EXPECT_EQ(faults(text), "") << "links lead to nodes that are shown";
  EXPECT_NE(text.find("2000 more nodes are in the JSON dump alone"), std::string::npos);
  EXPECT_NE(text.find("nor 997 more"), std::string::npos);
  EXPECT_LT(text.size(), std::size_t{8} << 20);
  EXPECT_EQ(count(text, "<details"), 2000u);
  EXPECT_EQ(faults(detail::html_dump(chain(0))), "");
  EXPECT_EQ(faults(detail::html_dump(chain(1))), "");
}

}}  // namespace clutch::testing
