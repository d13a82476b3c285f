// SPDX-License-Identifier: Apache-2.0
#include <clutch/files.hpp>

#include "support/fixture.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace clutch::testing { namespace {

/// A folder that goes with the test.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("clutch_files_{}", ::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(std::string_view name) const { return (path / name).string(); }
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string npy(std::string_view dictionary, std::string_view data, char version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += {version, '\0', static_cast<char>(dictionary.size() & 255), static_cast<char>(dictionary.size() >> 8)};
  if (version > 1) bytes += std::string(2, '\0');
  return bytes.append(dictionary).append(data);
}
std::string safetensors(std::string_view header, std::string_view data) {
  std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8).append(header).append(data);
}
std::span<const std::byte> view(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Npy, DtypesAndShapesComeBack) {
  Folder folder;
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::boolean, DType::c64, DType::c128,
                        DType::u16, DType::u32, DType::u64})
      for (const Dims& sizes : {Dims{}, Dims{3}, Dims{2, 3}, Dims{0, 4}, Dims{1, 2, 1, 3}}) {
        std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(sizes)))));
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = dtype == DType::boolean ? i % 2 : static_cast<std::uint8_t>(i * 37);
        save_npy(folder.file("x.npy"), from_bytes(bytes.data(), bytes.size(), sizes, {.dtype = dtype, .device = device}));
        Tensor back = load_npy(folder.file("x.npy"), device);
        EXPECT_EQ(back.dtype(), dtype);
        EXPECT_EQ(back.sizes(), sizes);
        EXPECT_EQ(back.to_bytes(), bytes) << name(dtype) << to_string(sizes);
      }
    Tensor transposed = arange(0, 6, 1, {.device = device}).reshape({2, 3}).mT();
    save_npy(folder.file("x.npy"), transposed);
    EXPECT_EQ(load_npy(folder.file("x.npy"), device).to_host<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(code_of([&] { save_npy(folder.file("y.npy"), transposed.to(DType::bf16)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { save_npy(folder.file("nowhere/y.npy"), transposed); }), ErrorCode::io);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1) << "nothing is left of what failed";
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  Folder folder;
  save_npy(folder.file("x.npy"), from_host<std::int16_t>({1, 2, 3}, test_devices().front()));
  // numpy.lib.format.write_array_header_1_0 before NumPy 1.24, which now leaves more blanks.
  std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  dictionary += std::string(118 - 1 - dictionary.size(), ' ') + "\n";
  EXPECT_EQ(slurp(folder.file("x.npy")), npy(dictionary, std::string_view("\1\0\2\0\3\0", 6)));
}

TEST(Npy, ReadsOrdersVersionsAndKeysInAnyOrder) {
  const Device& device = test_devices().front();
  std::string_view data("\0\1\0\2\0\3\0\4\0\5\0\6", 12);
  auto read = [&](const std::string& bytes) { return read_npy(view(bytes), device); };
  EXPECT_EQ(read(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (6,), }\n", data)).to_host<std::int16_t>(),
            (std::vector<std::int16_t>{1, 2, 3, 4, 5, 6}));
  Tensor fortran = read(npy("{ \"shape\":(2,3),'fortran_order':True,'descr':'>i2'}", data, 2));
  EXPECT_EQ(fortran.sizes(), (Dims{2, 3}));
  EXPECT_EQ(fortran.to_host<std::int16_t>(), (std::vector<std::int16_t>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(
      read(npy("{'descr': '>c8', 'fortran_order': False, 'shape': (), }", std::string_view("\x3f\x80\0\0\x40\0\0\0", 8), 3)).to_host<std::complex<float>>()[0],
      (std::complex<float>{1, 2}));
  EXPECT_EQ(read(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3), }", data)).numel(), 6) << "bytes behind the elements do not matter";
}

TEST(Npy, RefusesBrokenFiles) {
  auto code = [&](const std::string& bytes) { return code_of([&] { read_npy(view(bytes), test_devices().front()); }); };
  const std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "01234567");
  EXPECT_EQ(code(good), ErrorCode::ok);
  for (std::size_t cut = 0; cut < good.size(); ++cut) EXPECT_EQ(code(good.substr(0, cut)), ErrorCode::io) << cut;
  EXPECT_EQ(code("\x93NUMPX" + good.substr(6)), ErrorCode::io);
  EXPECT_EQ(code(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "01234567", 4)), ErrorCode::io);
  for (std::string_view dictionary :
       {"{'descr': '<f4', 'shape': (2,), }", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 'x'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (2,), }", ""})
    EXPECT_EQ(code(npy(dictionary, "01234567")), ErrorCode::io) << dictionary;
  EXPECT_EQ(code(npy("{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", "01234567")), ErrorCode::invalid_dtype);
  EXPECT_EQ(code(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1), }", "01234567")), ErrorCode::invalid_shape);
  EXPECT_EQ(code(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "01234567")), ErrorCode::invalid_shape);
  EXPECT_EQ(code_of([&] { load_npy("/nowhere/x.npy"); }), ErrorCode::io);
  EXPECT_EQ(code_of([&] { load_npy("/"); }), ErrorCode::io);
}

TEST(Safetensors, TensorsAndMetadataComeBack) {
  Folder folder;
  CLUTCH_EACH_DEVICE(device) {
    std::map<std::string, Tensor> tensors;
    for (int i = 0; i < kDTypeCount; ++i) {
      auto dtype = static_cast<DType>(i);
      if (dtype == DType::c128) continue;
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_for(dtype, 8)), static_cast<std::uint8_t>(dtype == DType::boolean ? 1 : 3 + i));
      tensors[std::string(name(dtype))] = from_bytes(bytes.data(), bytes.size(), {2, 4}, {.dtype = dtype, .device = device});
    }
    tensors["empty"] = zeros({0, 3}, {.device = device});
    tensors["a scalar \"\n\xc3\xa4"] = full({}, 2, {.device = device});
    save_safetensors(folder.file("x.safetensors"), tensors, {{"format", "pt"}, {"k", ""}});
    Safetensors file = Safetensors::open(folder.file("x.safetensors"));
    EXPECT_EQ(file.entries().size(), tensors.size());
    EXPECT_EQ(file.metadata().at("format"), "pt");
    for (const auto& [key, tensor] : tensors) {
      Tensor back = file.load(key, device);
      EXPECT_EQ(back.dtype(), tensor.dtype());
      EXPECT_EQ(back.sizes(), tensor.sizes());
      EXPECT_EQ(back.to_bytes(), tensor.to_bytes()) << key;
    }
    EXPECT_TRUE(file.contains("f32"));
    EXPECT_FALSE(file.contains("f3"));
    EXPECT_EQ(code_of([&] { file.load("f3"); }), ErrorCode::invalid_argument);
    Tensor x = zeros({3}, {.device = device});
    EXPECT_EQ(code_of([&] { save_safetensors(folder.file("y"), {{"x", x.to(DType::c128)}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { save_safetensors(folder.file("y"), {{"x", Tensor()}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save_safetensors(folder.file("y"), {{"__metadata__", x}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { save_safetensors(folder.file("y"), {{"\xff", x}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                save_safetensors(folder.file("y"), {{"x", from_bytes("\1\1", 2, {3}, {.dtype = DType::f4e2m1, .device = device})}});
              }),
              ErrorCode::invalid_shape);
    EXPECT_FALSE(std::filesystem::exists(folder.file("y")));
    save_safetensors(folder.file("none"), {});
    EXPECT_TRUE(Safetensors::open(folder.file("none")).entries().empty());
  }
}

TEST(Safetensors, ReadsByTheRulesOfTheFormat) {
  const Device& device = test_devices().front();
  std::string good = safetensors(R"({"b":{"dtype":"I16","shape":[2],"data_offsets":[4,8]},"a":{"shape":[1],"data_offsets":[0,4],"dtype":"F32"}}   )",
                                 std::string_view("\0\0\x80\x3f\1\0\2\0", 8));
  Safetensors file = Safetensors::parse(view(good));
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.load("a", device).item(), 1);
  EXPECT_EQ(file.load("b", device).to_host<std::int16_t>(), (std::vector<std::int16_t>{1, 2}));
  std::string words = safetensors(R"({"u":{"dtype":"U32","shape":[1],"data_offsets":[0,4]}})", "0123");
  Safetensors unsigned_words = Safetensors::parse(view(words));
  EXPECT_EQ(unsigned_words.entries()[0].dtype_name, "U32");
  EXPECT_EQ(unsigned_words.load("u", device).to_host<std::uint32_t>(), (std::vector<std::uint32_t>{0x33323130}));
}

TEST(Safetensors, RefusesBrokenFiles) {
  auto code = [&](const std::string& bytes) { return code_of([&] { Safetensors::parse(view(bytes)); }); };
  const std::string good = safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "01234567");
  EXPECT_EQ(code(good), ErrorCode::ok);
  for (std::size_t cut = 0; cut < good.size(); ++cut) EXPECT_EQ(code(good.substr(0, cut)), ErrorCode::io) << cut;
  EXPECT_EQ(code(good + "x"), ErrorCode::io) << "bytes of no tensor";
  for (std::string_view header : {R"([1])",
                                  R"( {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x)",
                                  R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}})",
                                  R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
                                  R"({"a":{"dtype":"F32","shape":[2]}})",
                                  R"({"a":3})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})",
                                  R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                  R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                  R"({"__metadata__":{"x":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                  R"({"__metadata__":1,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"})
    EXPECT_EQ(code(safetensors(header, "01234567")), ErrorCode::io) << header;
  EXPECT_EQ(code(safetensors(R"({"a":{"dtype":"F32","shape":[2,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,8]}})", "01234567")), ErrorCode::invalid_shape);
  EXPECT_EQ(code(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8)), ErrorCode::io);
  EXPECT_EQ(code(safetensors("{" + std::string(200000, '['), "")), ErrorCode::io) << "deep";
}

}}  // namespace clutch::testing
