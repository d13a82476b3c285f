// SPDX-License-Identifier: Apache-2.0
// What a capture allows, refuses and says of it.
#include "graph/backends.hpp"
#include "runtime/settings.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <array>
#include <functional>
#include <thread>

namespace clutch::testing { namespace {

/// Runs `f` in a capture on `stream` and returns the Error's code; the capture must be invalid then and end with an Error.
ErrorCode illegal(const Stream& stream, const std::function<void()>& f, CaptureMode mode = CaptureMode::global) {
  Graph graph;
  graph.capture_begin(stream, {.mode = mode});
  std::string first;
  ErrorCode code = ErrorCode::ok;
  try {
    f();
  } catch (const Error& e) {
    code = e.code();
    first = e.op();
  }
  if (code == ErrorCode::ok) {
    graph.capture_end();
    return code;
  }
  Tensor t;
  EXPECT_EQ(code_of([&] { t = zeros({4}, {.device = stream.device()}, stream); }), ErrorCode::capturing) << "an invalid capture records nothing";
  std::string message = message_of([&] { graph.capture_end(); });
  EXPECT_NE(message.find(first), std::string::npos) << message;
  EXPECT_FALSE(stream.is_capturing());
  EXPECT_EQ(code_of([&] { graph.replay(stream); }), ErrorCode::invalid_argument);
  EXPECT_EQ(zeros({4}, {.device = stream.device()}, stream).to_host<float>(stream).size(), 4u) << "the stream works as before";
  return code;
}

TEST(Captures, IllegalCallsInvalidateTheCaptureByName) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device), other(device);
    Tensor x = full({4}, 1, {.device = device}, stream);
    Event before, elsewhere;
    before.record(stream);
    elsewhere.record(other);
    stream.synchronize();
    const std::pair<const char*, std::function<void()>> kCalls[] = {
        {"synchronize", [&] { stream.synchronize(); }},
        {"query", [&] { stream.query(); }},
        {"reset", [&] { stream.reset(); }},
        {"to_host", [&] { x.to_host<float>(stream); }},
        {"item", [&] { x.select(0, 1).item(stream); }},
        {"print", [&] { add(x, x, {}, stream).to_string(stream); }},
        {"wait for an outer event", [&] { stream.wait(before); }},
        {"query of a captured event",
         [&] {
           Event event;
           event.record(stream);
           event.query();
         }},
        {"wait for a captured event",
         [&] {
           Event event;
           event.record(stream);
           event.wait();
         }},
        {"elapsed_ms",
         [&] {
           Event a, b;
           a.record(stream);
           b.record(stream);
           elapsed_ms(a, b);
         }},
        {"the raw queue", [&] { interop::queue(stream); }},
        {"the device's synchronize", [&] { synchronize(device); }},
        {"empty_cache", [&] { empty_cache(device); }},
        {"another stream's synchronize", [&] { other.synchronize(); }},
        {"another stream's host read", [&] { x.to_host<float>(other); }},
        {"allocation on another stream", [&] { zeros({4}, {.device = device}, other); }},
        {"an outer event's query", [&] { elsewhere.query(); }},
        {"an outer event's wait", [&] { elsewhere.wait(); }},
    };
    for (const auto& [what, call] : kCalls) EXPECT_EQ(illegal(stream, call), ErrorCode::capturing) << what;
    // Legal ones.
    EXPECT_EQ(illegal(stream,
                      [&] {
                        stream.flush();
                        EXPECT_TRUE(stream.is_capturing());
                        EXPECT_TRUE(x.is_contiguous());
                      }),
              ErrorCode::ok);
  }
}

TEST(Captures, ModesSayWhoseCallsAreIllegal) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device), other(device);
    Event event;
    event.record(other);
    auto call = [&] {
      event.query();
      other.synchronize();
    };
    auto in_thread = [&](const std::function<void()>& f) {
      return [f] {
        std::exception_ptr thrown;
        std::thread([&] {
          try {
            f();
          } catch (...) {
            thrown = std::current_exception();
          }
        }).join();
        if (thrown) std::rethrow_exception(thrown);
      };
    };
    EXPECT_EQ(illegal(stream, call, CaptureMode::global), ErrorCode::capturing);
    EXPECT_EQ(illegal(stream, call, CaptureMode::thread_local_), ErrorCode::capturing);
    EXPECT_EQ(illegal(stream, call, CaptureMode::relaxed), ErrorCode::ok);
    EXPECT_EQ(illegal(stream, in_thread(call), CaptureMode::global), ErrorCode::capturing);
    EXPECT_EQ(illegal(stream, in_thread(call), CaptureMode::thread_local_), ErrorCode::ok);
    EXPECT_EQ(illegal(stream, in_thread(call), CaptureMode::relaxed), ErrorCode::ok);
    // The captured stream's own work is out of reach in every mode.
    EXPECT_EQ(illegal(
                  stream, [&] { stream.synchronize(); }, CaptureMode::relaxed),
              ErrorCode::capturing);
    // New memory, which the pool does not have, in another thread: legal unless the mode is global.
    empty_cache(device);
    auto allocate = [&] { zeros({1 << 22}, {.device = device}, Stream(device)); };
    EXPECT_EQ(illegal(stream, in_thread(allocate), CaptureMode::global), ErrorCode::capturing);
    EXPECT_EQ(illegal(stream, in_thread(allocate), CaptureMode::thread_local_), ErrorCode::ok);
  }
}

TEST(Captures, ADryRunListsAllIllegalCalls) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device), side(device);
    Tensor x = full({4}, 1, {.device = device}, stream);
    auto problems = dry_run(
        [&] {
          Tensor y = add(x, x);
          EXPECT_EQ(y.to_host<float>(), std::vector<float>(4, 0));
          stream.synchronize();
          fill_(x, 3);
          synchronize(device);
          Event event;
          event.record(stream);
          event.wait();
          side.wait(event);
          fill_(x, 4, {}, side);
        },
        stream);
    std::vector<std::string> calls;
    int poisoned = detail::the_settings().poison_scratch.on();  // is a node, too
    for (const CaptureProblem& p : problems) calls.push_back(fmt::format("{} after {}", p.call, p.node - poisoned));
    EXPECT_EQ(calls, (std::vector<std::string>{"Tensor::to_host after 1", "Stream::synchronize after 1", "synchronize after 2", "Event::wait after 2",
                                               "Graph::capture_end after 3"}));
    EXPECT_EQ(x.to_host<float>(stream)[0], 1) << "nothing ran";
    EXPECT_TRUE(dry_run([&] { fill_(x, 2); }, stream).empty());
  }
}

TEST(Captures, MisuseIsRefused) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = full({4}, 1, {.device = device}, stream);
    Graph graph;
    EXPECT_EQ(code_of([&] { graph.replay(stream); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.capture_end(); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] { graph.capture_begin({}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Graph({.backend = "fastest"}); }), ErrorCode::invalid_argument);
    graph.capture_begin(stream);
    Graph other;
    EXPECT_EQ(code_of([&] { other.capture_begin(stream); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] { graph.capture_begin(Stream(device)); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] { graph.replay(stream); }), ErrorCode::capturing);
    Tensor made = add(x, x, {}, stream);
    EXPECT_EQ(code_of([&] { interop::mem(made); }), ErrorCode::capturing) << "it has no address yet";
    graph.capture_end();
    EXPECT_NE(interop::mem(made), nullptr);
    EXPECT_EQ(code_of([&] { graph.capture_begin(stream); }), ErrorCode::invalid_argument);

    Graph inner;
    inner.capture_begin(stream);
    EXPECT_EQ(code_of([&] { graph.replay(stream); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] { inner.capture_end(); }), ErrorCode::capturing);

    // A tensor of a capture that failed has no memory.
    Tensor lost;
    EXPECT_THROW(
        {
          GraphCapture capture(inner, stream);
          lost = add(x, x);
          throw std::runtime_error("the caller's own");
        },
        std::runtime_error);
    EXPECT_FALSE(stream.is_capturing());
    EXPECT_EQ(code_of([&] { lost.to_host<float>(stream); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] { add(lost, x, {}, stream); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] {
                GraphCapture capture(inner, stream);
                add(lost, x);
              }),
              ErrorCode::capturing);
    Event captured;
    inner.capture_begin(stream);
    captured.record(stream);
    inner.capture_end();
    EXPECT_EQ(code_of([&] { captured.wait(); }), ErrorCode::capturing);
    EXPECT_EQ(code_of([&] { stream.wait(captured); }), ErrorCode::capturing);
    inner.replay(stream);  // of nothing
    stream.synchronize();
  }
}

TEST(Captures, GuardsNestAndCapturesOfOneThreadToo) {
  CLUTCH_EACH_DEVICE(device) {
    Stream a(device), b(device);
    Tensor x = full({4}, 1, {.device = device}, a), y = full({4}, 1, {.device = device}, b);
    a.synchronize();
    b.synchronize();
    Graph outer, inner;
    {
      GraphCapture one(outer, a, {.mode = CaptureMode::relaxed});
      add_(x, x);
      {
        GraphCapture two(inner, b, {.mode = CaptureMode::relaxed});
        EXPECT_EQ(current_stream(device), b);
        add_(y, y);
        StreamGuard back(a);
        add_(x, x);
      }
      EXPECT_EQ(current_stream(device), a);
      EXPECT_FALSE(b.is_capturing());
    }
    outer.replay(a);
    inner.replay(b);
    EXPECT_EQ(x.to_host<float>(a)[0], 4);
    EXPECT_EQ(y.to_host<float>(b)[0], 2);
  }
}

TEST(Captures, AWriteIntoATensorThatNothingUsedBefore) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor x = zeros({3}, {.device = device}, stream);
    const std::array<float, 3> values{1, 2, 3};
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      x.write(std::as_bytes(std::span(values)));
    }
    for (int i = 0; i < 2; ++i) {
      graph.replay(stream);
      EXPECT_EQ(x.to_host<float>(stream), (std::vector<float>{1, 2, 3}));
      fill_(x, 9, {}, stream);
    }
  }
}

}}  // namespace clutch::testing
