// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"

#include "ops/fill_plan.hpp"
#include "program/binary_check.hpp"
#include "runtime/settings.hpp"

#include <clutch/graph.hpp>
#include <clutch/interop_cl.hpp>

#include <array>
#include <span>
#include <string>
#include <thread>

namespace clutch::testing { namespace {

constexpr std::string_view kSaxpy = R"(__kernel void saxpy(__global float* y, __global const float* x, float a, ulong n) {
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = fma(a, x[i], y[i]);
})";

TEST(Kernels, CallersKernelsTakeAnyView) {
  CLUTCH_EACH_DEVICE(device) {
    KernelSource saxpy{.text = kSaxpy, .entry = "saxpy"};
    Tensor x = arange(0, 100, 1, {.device = device}), y = full({100}, 1, {.device = device});
    launch(saxpy, {.global = 32, .local = 8}, {inout(y), input(x), value(2.0f), value(std::uint64_t{100})});
    EXPECT_EQ(y.to_host<float>()[99], 199);
    Tensor tail = y.slice(0, 97, 100);  // an odd offset, no sub-buffer could begin there
    launch(saxpy, {.global = 32, .local = 8}, {inout(tail), input(x.slice(0, 1, 4)), value(1.0f), value(std::uint64_t{3})});
    EXPECT_EQ(y.to_host<float>()[99], 202);
    EXPECT_EQ(y.to_host<float>()[96], 193);
    auto before = build_counters();
    launch(saxpy, {.global = 64, .local = 8}, {inout(y), input(x), value(0.0f), value(std::uint64_t{100})});
    EXPECT_EQ(build_counters().built, before.built) << "cached";
  }
}

constexpr std::string_view kTwice = R"(__kernel void twice(__global uchar* base, ulong offset) {
  __global float* x = (__global float*)(base + offset);
  x[get_global_id(0)] *= 2;
})";

TEST(Kernels, BinariesOfOtherProcessesRun) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream = current_stream(device);
    const KernelHandle kernel = prepare({.text = kTwice, .entry = "twice", .addressing = Addressing::base_and_offset}, stream);
    const std::vector<std::byte> binary = kernel.binary();
    const KernelSource given{.entry = "twice", .addressing = Addressing::base_and_offset, .binary = binary};
    Tensor x = arange(0, 8, 1, {.device = device});
    const BuildCounters before = build_counters();
    for (int again = 0; again < 2; ++again) launch(given, {.global = 4, .local = 4}, {inout(x.slice(0, 3, 7))}, stream);
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{0, 1, 2, 12, 16, 20, 24, 7}));
    EXPECT_EQ(build_counters().built, before.built);
    EXPECT_EQ(build_counters().loaded, before.loaded + 1) << "loaded once";
    EXPECT_EQ(KernelHandle(prepare(given, stream)).max_work_group(), kernel.max_work_group());
    // A graph runs it; without text it cannot be saved.
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      launch(given, {.global = 8, .local = 4}, {inout(x)}, stream);
    }
    graph.instantiate();
    graph.replay(stream);
    EXPECT_EQ(x.to_host<float>()[6], 48);
    EXPECT_EQ(code_of([&] { graph.save(::testing::TempDir() + "clutch_graph_without_text.safetensors"); }), ErrorCode::not_supported);
    // Another entry, and what is no binary.
    KernelSource wrong = given;
    wrong.entry = "thrice";
    EXPECT_EQ(code_of([&] { prepare(wrong, stream); }), ErrorCode::build_failure);
    const std::vector<std::byte> other(64, std::byte{7});
    wrong = given, wrong.binary = other;
    EXPECT_EQ(code_of([&] { prepare(wrong, stream); }), ErrorCode::build_failure);
  }
  EXPECT_EQ(code_of([] { KernelHandle().binary(); }), ErrorCode::invalid_argument);
}

// By drivers that check binaries, or before ones that would end the process over them.
TEST(Kernels, CutBinariesAreRefused) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<std::byte> whole =
        prepare({.text = kTwice, .entry = "twice", .addressing = Addressing::base_and_offset}, current_stream(device)).binary();
    auto fails = [&](std::span<const std::byte> binary) {
      return code_of([&] { prepare({.entry = "twice", .addressing = Addressing::base_and_offset, .binary = binary}, current_stream(device)); });
    };
    // At each place of the head, then at some.
    for (std::size_t n = 1; n < whole.size(); n += n < 400 ? 1 : whole.size() / 97)
      ASSERT_EQ(fails(std::span(whole).first(n)), ErrorCode::build_failure) << n << " bytes";
    std::vector<std::byte> longer = whole;
    longer.push_back({});
    EXPECT_EQ(fails(longer), ErrorCode::build_failure);
    // Lengths that lie, in PoCL's format: of kernels, of the program's files, which begin after the head of 77 bytes, and of their first path.
    if (device.platform() != "Portable Computing Language") continue;
    for (std::size_t at : {std::size_t{20}, std::size_t{77}, std::size_t{85}}) {
      std::vector<std::byte> lies = whole;
      for (int high = 0; high < 4; ++high) lies[at + static_cast<std::size_t>(high)] = std::byte{0xff};
      EXPECT_EQ(fails(lies), ErrorCode::build_failure) << "at " << at;
    }
  }
}

/// A later PoCL may write later versions of its format, which it is left to check for itself.
TEST(Kernels, LaterVersionsOfAFormatGoToLaterDrivers) {
  auto fault = [](const char* driver, int version) {
    std::string binary("poclbin\0", 8);
    binary.resize(200, '\0');
    binary[16] = static_cast<char>(version);
    return detail::fault_of_binary("Portable Computing Language", driver, binary);
  };
  for (const char* driver : {"OpenCL 2.0 PoCL 3.0", "OpenCL 3.0 PoCL 3.1+debian  Linux, LLVM 15", "OpenCL 3.0", ""})
    for (int version : {8, 10}) EXPECT_NE(fault(driver, version).find("its version must be 9"), std::string::npos) << driver;
  EXPECT_NE(fault("OpenCL 3.0 PoCL 5.0+debian", 8).find("its version must be 9"), std::string::npos);
  EXPECT_EQ(fault("OpenCL 3.0 PoCL 5.0+debian", 10), "");
  EXPECT_NE(fault("OpenCL 3.0 PoCL 5.0+debian", 9), "") << "its lengths lie";
}

/// SPIR-V of kTwice: instructions, each its number of words and code in the first one.
std::vector<std::uint32_t> twice_as_spirv() {
  std::vector<std::uint32_t> words{0x07230203, 0x00010000, 0, 32, 0};
  auto add = [&](std::uint32_t code, std::initializer_list<std::uint32_t> operands) {
    words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | code);
    words.insert(words.end(), operands);
  };
  enum : std::uint32_t {
    kVoid = 1,
    kUlong,
    kVector,
    kInput,
    kFloat,
    kPointer,
    kType,
    kShift,
    kId,
    kFunction,
    kBase,
    kOffset,
    kBody,
    kIds,
    kItem,
    kFirst,
    kIndex,
    kPlace,
    kOld,
    kNew
  };
  add(17, {4}), add(17, {6}), add(17, {11});             // capabilities Addresses, Kernel, Int64
  add(14, {2, 2});                                       // 64-bit pointers, OpenCL
  add(15, {6, kFunction, 0x63697774, 0x00000065, kId});  // the kernel "twice"
  add(71, {kId, 11, 28}), add(71, {kId, 22});            // the global id, constant
  add(19, {kVoid}), add(21, {kUlong, 64, 0}), add(23, {kVector, kUlong, 3}), add(32, {kInput, 1, kVector}), add(22, {kFloat, 32});
  add(32, {kPointer, 5, kFloat}), add(33, {kType, kVoid, kPointer, kUlong});
  add(43, {kUlong, kShift, 2, 0}), add(59, {kInput, kId, 1});
  add(54, {kVoid, kFunction, 0, kType}), add(55, {kPointer, kBase}), add(55, {kUlong, kOffset}), add(248, {kBody});
  add(61, {kVector, kIds, kId, 2, 32}), add(81, {kUlong, kItem, kIds, 0});
  add(194, {kUlong, kFirst, kOffset, kShift}), add(128, {kUlong, kIndex, kFirst, kItem}), add(70, {kPointer, kPlace, kBase, kIndex});
  add(61, {kFloat, kOld, kPlace, 2, 4}), add(129, {kFloat, kNew, kOld, kOld}), add(62, {kPlace, kNew, 2, 4}), add(253, {}), add(56, {});
  return words;
}

TEST(Kernels, SpirvRunsWhereADeviceTakesIt) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<std::uint32_t> words = twice_as_spirv();
    const KernelSource given{.entry = "twice", .addressing = Addressing::base_and_offset, .spirv = std::as_bytes(std::span(words))};
    Tensor x = arange(0, 8, 1, {.device = device});
    const ErrorCode code = code_of([&] { launch(given, {.global = 4, .local = 4}, {inout(x.slice(0, 3, 7))}); });
    if (skip_without(device, "SPIR-V", code != ErrorCode::not_supported)) continue;
    EXPECT_EQ(code, ErrorCode::ok);
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{0, 1, 2, 6, 8, 10, 12, 7}));
  }
}

TEST(Kernels, ProgramsWithoutTextAreChecked) {
  const std::vector<std::byte> bytes(8, std::byte{1});
  auto code = [](const KernelSource& source) { return code_of([&] { prepare(source); }); };
  constexpr Addressing kPlain = Addressing::base_and_offset;
  EXPECT_EQ(code({.entry = "f"}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.addressing = kPlain, .binary = bytes}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.entry = "f", .binary = bytes}), ErrorCode::invalid_argument) << "pointers need a wrapper";
  EXPECT_EQ(code({.text = kTwice, .entry = "twice", .addressing = kPlain, .binary = bytes}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.entry = "f", .addressing = kPlain, .binary = bytes, .spirv = bytes}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.entry = "f", .defines = {{"A", "1"}}, .addressing = kPlain, .binary = bytes}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.entry = "f", .addressing = kPlain, .spirv = bytes}), ErrorCode::invalid_argument) << "no module";
  std::vector<std::uint32_t> words = twice_as_spirv();
  EXPECT_EQ(code({.entry = "twice", .addressing = kPlain, .spirv = std::as_bytes(std::span(words)).first(43)}), ErrorCode::invalid_argument)
      << "no whole words";
}

TEST(Kernels, LocalMemoryAndDefines) {
  CLUTCH_EACH_DEVICE(device) {
    KernelSource reverse{.text = R"(__kernel void reverse(__global T* out, __global const T* in, __local T* tile) {
  uint i = get_local_id(0);
  tile[i] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = tile[SIZE - 1 - i];
})",
                         .entry = "reverse",
                         .defines = Defines().set_type("T", DType::i32).set("SIZE", 16)};
    Tensor in = arange(0, 16, 1, {.dtype = DType::i32, .device = device}), out = empty({16}, {.dtype = DType::i32, .device = device});
    launch(reverse, {.global = 16, .local = 16}, {output(out), input(in), local_memory(64)});
    EXPECT_EQ(out.to_host<std::int32_t>()[0], 15);
  }
}

TEST(Kernels, BuildFailuresSayWhereAndWhy) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor t = zeros({4}, {.device = device});
    KernelSource broken{.text = "__kernel void broken(__global float* x) {\n  x[0] = undeclared_name;\n}",
                        .entry = "broken",
                        .defines = {{"MARK", "77"}},
                        .file = "my_kernels/broken.cl"};
    std::string message = message_of([&] { launch(broken, {.global = 1}, {output(t)}); });
    EXPECT_EQ(code_of([&] { launch(broken, {.global = 1}, {output(t)}); }), ErrorCode::build_failure);
    EXPECT_NE(message.find("undeclared_name"), std::string::npos) << message;
    EXPECT_NE(message.find("MARK=77"), std::string::npos) << message;
    EXPECT_NE(message.find("my_kernels/broken.cl"), std::string::npos) << message;
    KernelSource missing{.text = kSaxpy, .entry = "absent", .addressing = Addressing::base_and_offset};
    EXPECT_EQ(code_of([&] { launch(missing, {.global = 1}, {output(t)}); }), ErrorCode::build_failure);
    KernelSource saxpy{.text = kSaxpy, .entry = "saxpy"};
    EXPECT_EQ(code_of([&] { launch(saxpy, {.global = 1}, {output(t)}); }), ErrorCode::build_failure) << "arguments do not fit";
  }
}

TEST(Kernels, LaunchRulesAreChecked) {
  CLUTCH_EACH_DEVICE(device) {
    KernelSource saxpy{.text = kSaxpy, .entry = "saxpy"};
    Tensor t = zeros({4}, {.device = device});
    auto go = [&](const Geometry& g) { launch(saxpy, g, {inout(t), input(t), value(2.0f), value(std::uint64_t{4})}); };
    EXPECT_NE(message_of([&] { go({.global = 10, .local = 4}); }).find("must be a multiple of its local size 4"), std::string::npos);
    EXPECT_EQ(code_of([&] { go({.global = 1 << 20, .local = 1 << 20}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { go({.global = 4, .local = 1, .local_y = 0}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { go({.global = 0, .local = 1}); }), ErrorCode::ok) << "nothing to do";
    KernelSource greedy{.text = "__kernel void greedy(__global float* x, __local float* l) { l[0] = 1; x[0] = l[0]; }", .entry = "greedy"};
    EXPECT_NE(message_of([&] {
                launch(greedy, {.global = 1, .local = 1}, {output(t), local_memory(0x7FFFFFFF)});
              }).find("local memory must be at most"),
              std::string::npos);
    KernelSource plain{.text = "__kernel void plain(__global uchar* b, ulong o, float v) { *(__global float*)(b + o) = v; }",
                       .entry = "plain",
                       .addressing = Addressing::base_and_offset};
    EXPECT_NE(message_of([&] { launch(plain, {.global = 1}, {output(t)}); }).find("must have 3 arguments, got 2"), std::string::npos);
    EXPECT_EQ(code_of([&] { launch(plain, {.global = 1}, {output(t), value(1.0)}); }), ErrorCode::invalid_argument) << "a double for a float";
    launch(plain, {.global = 1, .local = 1}, {output(t.slice(0, 2, 3)), value(9.0f)});
    EXPECT_EQ(t.to_host<float>()[2], 9);
    EXPECT_EQ(code_of([&] { launch(plain, {.global = 1}, {output(Tensor()), value(9.0f)}); }), ErrorCode::invalid_argument);
  }
}

TEST(Kernels, SizesPastEveryDeviceAndNullArgumentsAreRefused) {
  CLUTCH_EACH_DEVICE(device) {
    KernelSource plain{.text = "__kernel void one(__global float* x, float v) { x[0] = v; }", .entry = "one"};
    Tensor t = zeros({4}, {.device = device});
    auto refuses = [](auto&& call) { return code_of(call) == ErrorCode::invalid_argument; };
    auto go = [&](const Geometry& g) { launch(plain, g, {output(t), value(9.0f)}); };
    constexpr std::uint64_t kAll = ~std::uint64_t{0}, kHalf = std::uint64_t{1} << 63;
    EXPECT_TRUE(refuses([&] { go({.global = kAll}); }));
    EXPECT_TRUE(refuses([&] { go({.global = kAll, .local = 1}); }));
    EXPECT_TRUE(refuses([&] { go({.global = kHalf, .local = 1}); }));
    EXPECT_TRUE(refuses([&] { go({.global = 1, .local = 1, .global_y = kAll}); }));
    EXPECT_TRUE(refuses([&] { go({.global = 1, .local = 1, .global_z = kAll}); }));
    EXPECT_TRUE(refuses([&] { go({.global = std::uint64_t{1} << 32, .local = 1, .global_y = std::uint64_t{1} << 32}); })) << "the product wraps";
    EXPECT_TRUE(refuses([&] { go({.global = kHalf, .local = kHalf, .global_y = 2, .local_y = 2}); })) << "so does that of local sizes";
    auto call = [&](const KernelSource& source, const std::vector<Argument>& arguments) { launch(source, {.global = 1, .local = 1}, arguments); };
    EXPECT_TRUE(refuses([&] { call({}, {output(t)}); })) << "no text";
    EXPECT_TRUE(refuses([&] { call({.text = plain.text, .entry = {}}, {output(t), value(9.0f)}); }));
    EXPECT_TRUE(refuses([&] { prepare({}, current_stream(device)); }));
    EXPECT_TRUE(refuses([&] { call(plain, {Argument{.kind = Argument::Kind::output}, value(9.0f)}); })) << "no tensor";
    EXPECT_TRUE(refuses([&] { call(plain, {output(t), Argument{}}); })) << "a value of no bytes";
    Argument wide = value(9.0f);
    wide.size = 17;
    EXPECT_TRUE(refuses([&] { call(plain, {output(t), wide}); }));
    Argument nameless = value(9.0f);
    nameless.type = nullptr;
    EXPECT_TRUE(refuses([&] { call(plain, {output(t), nameless}); }));
    EXPECT_TRUE(refuses([&] { call(plain, {output(t, nullptr), value(9.0f)}); }));
    Encoder encoder(current_stream(device), "test_null");
    EXPECT_TRUE(refuses([&] { encoder.bytes(nullptr, 4); }));
    EXPECT_TRUE(refuses([&] { encoder.bytes(&t, std::size_t{1} << 32); })) << "its size wraps to none";
    EXPECT_TRUE(refuses([&] { encoder.host_task(nullptr, {}, {}); }));
    EXPECT_TRUE(refuses([&] { encoder.opaque(std::function<void(void*)>(), {}, {}); }));
    EXPECT_TRUE(refuses([&] { encoder.opaque(std::function<void(void*, std::span<const Encoder::Place>)>(), {}, {}); }));
    EXPECT_EQ(t.to_host<float>()[0], 0);
    go({.global = 1, .local = 1});
    EXPECT_EQ(t.to_host<float>()[0], 9);
  }
}

TEST(Kernels, HostTasksOfTwoStreamsReadOneTensor) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr int kThreads = 2, kRounds = 400;
    Tensor shared = arange(0, 256, 1, {.device = device});
    synchronize(device);
    std::array<std::string, kThreads> wrong;
    std::vector<std::thread> threads;
    for (std::size_t k = 0; k < kThreads; ++k)
      threads.emplace_back([&, k] {
        try {
          Stream stream(device);
          Tensor out = zeros({256}, {.device = device}, stream);
          const Tensor inputs[] = {shared, shared.slice(0, 0, 8), shared.slice(0, 128, 256)}, outputs[] = {out, out};
          auto task = [](std::span<void* const> p) {
            auto at = [&](std::size_t i) { return static_cast<float*>(p[i]); };
            for (std::size_t i = 0; i < 256; ++i) at(3)[i] = at(0)[i] + (i < 8 ? at(1)[i] : i >= 128 ? at(2)[i - 128] : 0);
            at(4)[0] += 1;  // the same tensor twice is one memory
          };
          Graph graph({.backend = "host"});
          {
            GraphCapture capture(graph, stream, {.mode = CaptureMode::relaxed});
            Encoder(stream, "test_captured").host_task(task, inputs, outputs);
          }
          for (int i = 0; i < kRounds; ++i) {
            if (i % 2 == 0)
              Encoder(stream, "test_shared").host_task(task, inputs, outputs);
            else
              graph.replay(stream);
            if (i % 50 > 1) continue;
            std::vector<float> got = out.to_host<float>(stream);
            if (got[0] != 1 || got[7] != 14 || got[100] != 100 || got[255] != 510) wrong[k] = "a host task read or wrote something else";
          }
        } catch (const std::exception& e) {
          wrong[k] = e.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : wrong) EXPECT_EQ(text, "");
  }
}

TEST(Kernels, HostTasksMayNestOnOneTensor) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor in = arange(0, 8, 1, {.device = device}), outer = zeros({8}, {.device = device}), inner = zeros({8}, {.device = device});
    Stream stream = current_stream(device), side(device);
    synchronize(device);
    const Tensor inputs[] = {in}, outers[] = {outer}, inners[] = {inner};
    auto twice = [](std::span<void* const> p) {
      for (std::size_t i = 0; i < 8; ++i) static_cast<float*>(p[1])[i] = 2 * static_cast<const float*>(p[0])[i];
    };
    Encoder(stream, "test_outer")
        .host_task(
            [&](std::span<void* const> p) {
              Encoder(side, "test_inner").host_task(twice, inputs, inners);
              twice(p);
            },
            inputs, outers);
    EXPECT_EQ(outer.to_host<float>(stream)[7], 14);
    EXPECT_EQ(inner.to_host<float>(side)[7], 14);
  }
}

TEST(Kernels, HostTasksAndOpaqueLibraries) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor in = arange(0, 8, 1, {.device = device}), out = zeros({8}, {.device = device});
    Stream stream = current_stream(device);
    auto before = fallback_count("host");
    {
      Encoder encoder(stream, "test_host_task");
      const Tensor inputs[] = {in.slice(0, 4, 8)}, outputs[] = {out};
      encoder.host_task([](std::span<void* const> p) { static_cast<float*>(p[1])[0] = static_cast<const float*>(p[0])[3] * 2; }, inputs, outputs);
    }
    EXPECT_EQ(fallback_count("host"), before + 1);
    EXPECT_EQ(out.to_host<float>()[0], 14);
    {
      Encoder encoder(stream, "test_opaque");
      const Tensor outputs[] = {out};
      encoder.opaque(
          [&](void* queue) {
            float five = 5;
            clEnqueueFillBuffer(static_cast<cl_command_queue>(queue), interop::mem(out), &five, 4, interop::offset(out), 32, 0, nullptr, nullptr);
          },
          {}, outputs);
    }
    EXPECT_EQ(out.to_host<float>()[7], 5);
    {
      Encoder encoder(stream, "test_copy");
      encoder.copy(out, in);
      EXPECT_EQ(code_of([&] { encoder.copy(out, in.slice(0, 0, 2)); }), ErrorCode::invalid_shape);
      Tensor scratch = encoder.scratch({100}, DType::f32);
      EXPECT_TRUE(std::isnan(scratch.to_host<float>()[50])) << "poisoned under CLUTCH_POISON_SCRATCH";
    }
    EXPECT_EQ(out.to_host<float>()[6], 6);
    auto settings = detail::the_settings();
    settings.strict.value = "host";
    detail::SettingsOverride strict(settings);
    Encoder encoder(stream, "test_host_task");
    EXPECT_EQ(code_of([&] { encoder.host_task([](auto) {}, {}, {}); }), ErrorCode::strict);
  }
}

// The plan of a task is a text of its own: that of the caller may go.
TEST(Kernels, PlansOutliveTheTextsThatNameThem) {
  CLUTCH_EACH_DEVICE(device) {
    const std::string wanted = "the plan of a library's task, longer than what a string holds in itself";
    const Tensor out = zeros({4}, {.device = device});
    Stream stream(device);
    synchronize(device);
    auto hand_over = [&](bool opaque) {
      std::string name = wanted;
      const Tensor outputs[] = {out};
      Encoder encoder(stream, "test_plan");
      if (opaque)
        encoder.opaque([](void*) {}, {}, outputs, name);
      else
        encoder.host_task([](auto) {}, {}, outputs, name);
      name.assign(name.size(), '?');
    };
    for (bool opaque : {true, false}) {
      fill_(out, 1);
      hand_over(opaque);
      EXPECT_EQ(last_plan(), wanted);
      fill_(out, 2);
      Graph graph({.backend = "host"});
      {
        GraphCapture capture(graph, stream);
        hand_over(opaque);
      }
      EXPECT_EQ(last_plan(), wanted);
    }
  }
}

TEST(Kernels, WrappersTakeAPredicate) {
  CLUTCH_EACH_DEVICE(device) {
    detail::KernelPlan plan = detail::select(device.traits(), detail::FillProblem{});
    plan.defines.set("CLUTCH_PREDICATED", 1);
    Stream stream = current_stream(device);
    KernelHandle kernel(&stream.impl()->runtime().programs().find(plan.stem, plan.entry, plan.defines));
    Tensor t = zeros({100}, {.device = device}), predicate = zeros({1}, {.dtype = DType::i32, .device = device});
    const std::array<float, 4> pattern{7, 7, 7, 7};
    auto run = [&] {
      Encoder encoder(stream, "test_predicate");
      encoder.input(predicate).output(t).value(std::uint64_t{400}).value(pattern).value(std::uint32_t{0});
      encoder.dispatch(kernel, {.global = 4 * std::min<std::uint64_t>(plan.tuning.local, kernel.max_work_group()),
                                .local = std::min<std::uint64_t>(plan.tuning.local, kernel.max_work_group())});
      return t.to_host<float>()[99];
    };
    EXPECT_EQ(run(), 0) << "the predicate is 0";
    fill_(predicate, 1);
    EXPECT_EQ(run(), 7);
  }
}

TEST(Kernels, DefinesAreSortedAndChecked) {
  Defines d;
  d.set("B", 2).set("A", 1).set_type("T", DType::bf16);
  EXPECT_EQ(d.to_string(), "A=1 B=2 T=ushort T_IS_BF16=1");
  EXPECT_EQ(code_of([&] { d.set("A", 3); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { d.set("1A", 3); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { d.set_text("C", "a\nb"); }), ErrorCode::invalid_argument);
}

TEST(Kernels, ThreadsDoNotShareKernelObjects) {
  CLUTCH_EACH_DEVICE(device) {
    KernelSource saxpy{.text = kSaxpy, .entry = "saxpy"};
    std::vector<std::thread> threads;
    std::array<float, 4> last{};
    for (std::size_t k = 0; k < last.size(); ++k)
      threads.emplace_back([&, k] {
        StreamGuard guard{Stream(device)};
        Tensor y = zeros({64}, {.device = device}), x = full({64}, static_cast<double>(k + 1), {.device = device});
        for (int i = 0; i < 100; ++i) launch(saxpy, {.global = 8, .local = 8}, {inout(y), input(x), value(1.0f), value(std::uint64_t{64})});
        last[k] = y.to_host<float>()[63];
      });
    for (auto& t : threads) t.join();
    for (std::size_t k = 0; k < last.size(); ++k) EXPECT_EQ(last[k], 100.0f * static_cast<float>(k + 1));
  }
}

}}  // namespace clutch::testing
