// SPDX-License-Identifier: Apache-2.0
// Streams, which is current, their order, and events.
#include "rows.hpp"

#include <clutch/interop_cl.hpp>

#include <stdexcept>
#include <thread>

namespace clutch::rows { namespace {

/// Names of what is current, as a case goes on.
class Trail {
 public:
  Trail(const Stream& s, const Stream& t) : first_(current_stream()), s_(s), t_(t) {}
  void note() {
    const Stream now = current_stream();
    names_.emplace_back(now == s_ ? "s" : now == t_ ? "t" : now == first_ ? "first" : "other");
  }
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  Stream first_, s_, t_;
  std::vector<std::string> names_;
};

ROW(current_stream) {
  const Stream first = current_stream();
  line("at first the default one", first == default_stream());
  const Stream s(current_device());
  set_current_stream(s);
  line("set", current_stream() == s);
  std::thread([&] { line("another thread has the default one", current_stream() == default_stream()); }).join();
  const Stream there(last_device());
  set_current_stream(there);
  line("a stream's device is current with it", current_device() == last_device());
  set_current_stream(default_stream(last_device()));
  set_current_device({});
  set_current_stream(first);
  set_current_device({});
  line("set back", current_stream() == first);
}

ROW(stream_scope) {
  const Stream s(current_device()), t(current_device());
  Trail trail(s, t);
  {
    const StreamGuard outer(s);
    trail.note();
    {
      const StreamGuard inner(t);
      trail.note();
    }
    trail.note();
  }
  trail.note();
  line("s, then t within it", trail.names());
  const Stream first = current_stream();
  try {
    const StreamGuard guard(s);
    throw std::runtime_error("leaves the scope");
  } catch (const std::runtime_error&) {
    line("the former one behind an exception", current_stream() == first);
  }
}

ROW(stream_scope_reentrant) {
  const Stream s(current_device()), t(current_device());
  Trail trail(s, t);
  {
    const StreamGuard one(s);
    {
      const StreamGuard again(s);
      trail.note();
    }
    trail.note();
  }
  trail.note();
  line("s within s", trail.names());
  Trail mixed(s, t);
  {
    const StreamGuard one(s);
    {
      const StreamGuard two(t);
      {
        const StreamGuard three(s);
        mixed.note();
      }
      mixed.note();
    }
    mixed.note();
  }
  mixed.note();
  line("s within t within s", mixed.names());
}

ROW(stream_scope_device) {
  const Device first = current_device();
  const Stream s(last_device());
  {
    const StreamGuard guard(s);
    line("the stream's device is current", current_device() == last_device());
    line("so is the stream", current_stream() == s);
    line("a tensor is made there", zeros({1}).device() == last_device());
  }
  line("the former device is current again", current_device() == first);
  line("the other device has its own stream again", current_stream(last_device()) == default_stream(last_device()));
}

ROW(stream_query) {
  const Stream s(current_device());
  line("a new stream has nothing to do", s.query());
  Tensor x;
  {
    const StreamGuard guard(s);
    x = full({1 << 16}, 1);
    for (int i = 0; i < 5; ++i) x = add(x, 1);
  }
  s.synchronize();
  line("nothing is left to do behind synchronize", s.query());
  line("its work is done", numbers(x.slice(0, 0, 2), s));
}

ROW(stream_identity) {
  const Stream s(current_device()), t(last_device());
  const Stream copy = s;  // NOLINT(performance-unnecessary-copy-initialization)
  line("devices", std::vector{s.device() == current_device(), t.device() == last_device()});
  line("a copy is the same one", copy == s && copy.id() == s.id());
  line("two streams are two", !(s == t));
  line("one of high priority is another one", !(Stream(current_device(), {.priority = StreamPriority::high}) == s));
}

ROW(stream_wait) {
  const Stream s(current_device()), t(current_device());
  Tensor x, y, z;
  {
    const StreamGuard guard(s);
    x = full({1 << 16}, 1);
    for (int i = 0; i < 5; ++i) x = mul(x, 2);
  }
  Event done;
  done.record(s);
  t.wait(done);
  {
    const StreamGuard guard(t);
    y = add(x, 1);
  }
  Event more;
  more.record(t);
  s.wait(more);
  {
    const StreamGuard guard(s);
    z = add(y, x);
  }
  line("32 + 1 and 33 + 32", std::vector{numbers(y.slice(0, 7, 8), t)[0], numbers(z.slice(0, 7, 8), s)[0]});
}

ROW(native_handle) {
  const Stream s(current_device()), t(current_device());
  line("there is one", interop::queue(s) != nullptr);
  line("a stream's is the same again", interop::queue(s) == interop::queue(s));
  line("another stream's is another one", interop::queue(s) != interop::queue(t));
}

ROW(external_stream) {
  cl_device_id of = interop::device_id(current_device());
  cl_context context = clCreateContext(nullptr, 1, &of, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueue(context, of, 0, nullptr);
  {
    const Stream s = interop::wrap(queue);
    line("its handle is the caller's", interop::queue(s) == queue);
    const StreamGuard guard(s);
    line("it is current in a scope", current_stream() == s);
    line("work on it", numbers(add(full({2}, 1), 2)));
    s.synchronize();
  }
  interop::release(context);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}

ROW(synchronize) {
  const Stream s(current_device()), t(current_device());
  Tensor x, y;
  {
    const StreamGuard guard(s);
    x = full({1 << 16}, 1);
    for (int i = 0; i < 5; ++i) x = add(x, 1);
  }
  {
    const StreamGuard guard(t);
    y = full({1 << 16}, 2);
    for (int i = 0; i < 5; ++i) y = add(y, 1);
  }
  clutch::synchronize();
  line("both streams are done", std::vector{s.query(), t.query()});
  line("the results of both", std::vector{numbers(x.slice(0, 0, 1))[0], numbers(y.slice(0, 0, 1))[0]});
  clutch::synchronize(last_device());
  line("another device is waited for by name", Stream(last_device()).query());
}

ROW(event) {
  Event never;
  line("an event that was not recorded is done", never.query());
  never.wait();
  const Stream s(current_device());
  Event e;
  Tensor x;
  {
    const StreamGuard guard(s);
    x = full({1 << 16}, 3);
    e.record();
    for (int i = 0; i < 5; ++i) x = add(x, 1);
    e.record();
  }
  e.wait();
  line("behind its wait it is done", e.query());
  line("so is the work before its last record", numbers(x.slice(0, 0, 1), s));
}

ROW(event_elapsed_time) {
  const bool timer = current_device().traits().device_timer;
  Event start, end;
  line.refused("of an event that was not recorded", [&] { return elapsed_ms(start, end); });
  start.record();
  Tensor x = full({1 << 16}, 1);
  for (int i = 0; i < 5; ++i) x = add(x, 1);
  end.record();
  end.wait();
  line("milliseconds are not negative", !timer || elapsed_ms(start, end) >= 0);
  line("from an event to itself", timer ? elapsed_ms(start, start) : 0.0);
}

ROW(is_capturing) {
  const Stream s(current_device()), t(current_device());
  const Tensor x = full({2}, 1);
  add(x, 1);
  clutch::synchronize();
  Graph graph;
  line("before", s.is_capturing());
  {
    const GraphCapture capture(graph, s);
    line("within", std::vector{s.is_capturing(), t.is_capturing(), current_stream().is_capturing()});
    add(x, 1);
  }
  line("behind", s.is_capturing());
}

}}  // namespace clutch::rows
