#include "onnx/tensor_reader.h"

#include <doctest/doctest.h>

#include "protos.h"

using namespace infernode;
using namespace protos;
using tensor::DType;
namespace f = onnx::tensor_field;

namespace {
tensor::Tensor read_one(const std::string& proto) { return constant(read(model_of({proto})), "w"); }
Error tensor_error(const std::string& proto) { return read_error(model_of({proto})); }

template <class T>
std::string raw(int type, std::initializer_list<int64_t> dims, std::initializer_list<T> values) {
  return tensor_proto("w", type, dims, [&](pbf_writer& w) { w.add_bytes(f::kRawData, bytes_of(values)); });
}
std::string int32_data(int type, std::initializer_list<int64_t> dims, std::initializer_list<int32_t> values) {
  return tensor_proto("w", type, dims,
                      [&](pbf_writer& w) { w.add_packed_int32(f::kInt32Data, values.begin(), values.end()); });
}
}  // namespace

TEST_CASE("raw data of every width") {
  CHECK(to_float_vector(read_one(raw<float>(1, {2}, {1.5f, -2}))) == std::vector<float>{1.5f, -2});
  CHECK(to_int64_vector(read_one(raw<int64_t>(7, {2}, {INT64_MIN, 5}))) == std::vector<int64_t>{INT64_MIN, 5});
  CHECK(to_float_vector(read_one(raw<uint16_t>(10, {1}, {0x3c00}))) == std::vector<float>{1});
  CHECK(to_float_vector(read_one(raw<uint16_t>(16, {1}, {0x3f80}))) == std::vector<float>{1});
  CHECK(to_float_vector(read_one(raw<uint8_t>(17, {1}, {0x38}))) == std::vector<float>{1});
  CHECK(to_int64_vector(read_one(raw<uint8_t>(22, {3}, {0xF7, 0x08}))) == std::vector<int64_t>{7, -1, -8});
  CHECK(to_int64_vector(read_one(raw<uint8_t>(26, {3}, {0b00'10'01'11}))) == std::vector<int64_t>{-1, 1, -2});
  CHECK(read_one(raw<double>(15, {1}, {1, 2})).dtype() == DType::Complex128);
  CHECK(read_one(raw<float>(1, {0, 4}, {})).numel() == 0);
  CHECK(read_one(raw<float>(1, {}, {3})).rank() == 0);
}

TEST_CASE("bytes of bools become 0 or 1") {
  const tensor::Tensor t = read_one(raw<uint8_t>(9, {3}, {0, 1, 7}));
  CHECK(static_cast<const uint8_t*>(t.raw())[2] == 1);
  CHECK(static_cast<const uint8_t*>(read_one(int32_data(9, {2}, {256, 0})).raw())[0] == 1);
}

TEST_CASE("typed fields, packed or not") {
  CHECK(to_float_vector(read_one(tensor_proto("w", 1, {2}, [](pbf_writer& w) {
          w.add_float(f::kFloatData, 1);
          w.add_float(f::kFloatData, 2);
        }))) == std::vector<float>{1, 2});
  const std::vector<float> floats{3, 4};
  CHECK(to_float_vector(read_one(tensor_proto("w", 1, {2}, [&](pbf_writer& w) {
          w.add_packed_float(f::kFloatData, floats.begin(), floats.end());
        }))) == floats);
  const std::vector<double> doubles{0.1, -0.5};
  CHECK(read_one(tensor_proto("w", 11, {2}, [&](pbf_writer& w) {
          w.add_packed_double(f::kDoubleData, doubles.begin(), doubles.end());
        })).data<double>()[0] == 0.1);
  CHECK(read_one(tensor_proto("w", 14, {1}, [&](pbf_writer& w) {
          w.add_packed_float(f::kFloatData, floats.begin(), floats.end());
        })).bytes() == 8);
  CHECK(to_int64_vector(read_one(tensor_proto("w", 7, {2}, [](pbf_writer& w) {
          w.add_int64(f::kInt64Data, -1);
          w.add_int64(f::kInt64Data, INT64_MAX);
        }))) == std::vector<int64_t>{-1, INT64_MAX});
  CHECK(read_one(tensor_proto("w", 13, {1}, [](pbf_writer& w) {
          w.add_uint64(f::kUint64Data, UINT64_MAX);
        })).data<uint64_t>()[0] == UINT64_MAX);
  CHECK(to_int64_vector(read_one(tensor_proto("w", 12, {1}, [](pbf_writer& w) {
          w.add_uint64(f::kUint64Data, 4000000000u);
        }))) == std::vector<int64_t>{4000000000});
}

TEST_CASE("int32_data holds all narrower types") {
  CHECK(to_int64_vector(read_one(int32_data(6, {2}, {-1, 7}))) == std::vector<int64_t>{-1, 7});
  CHECK(to_int64_vector(read_one(int32_data(3, {2}, {-128, 127}))) == std::vector<int64_t>{-128, 127});
  CHECK(to_int64_vector(read_one(int32_data(4, {1}, {65535}))) == std::vector<int64_t>{65535});
  CHECK(to_float_vector(read_one(int32_data(10, {1}, {0x4000}))) == std::vector<float>{2});
  CHECK(to_float_vector(read_one(int32_data(19, {1}, {0x3c}))) == std::vector<float>{1});
  CHECK(to_int64_vector(read_one(int32_data(22, {3}, {0xF7, 0x08}))) == std::vector<int64_t>{7, -1, -8});
  CHECK(to_int64_vector(read_one(int32_data(25, {5}, {0b11'10'01'00, 0b01}))) == std::vector<int64_t>{0, 1, 2, 3, 1});
  CHECK(to_float_vector(read_one(int32_data(23, {2}, {0xF7}))) == std::vector<float>{6, -6});
  CHECK(to_float_vector(read_one(int32_data(27, {3}, {31, 33, 8}))) == std::vector<float>{7.5f, -0.125f, 1});
  CHECK(to_float_vector(read_one(int32_data(28, {5}, {1, 31, 63, 12, 0}))) ==
        std::vector<float>{0.0625f, 28, -28, 1, 0});
}

TEST_CASE("strings") {
  const tensor::Tensor t = read_one(tensor_proto("w", 8, {2}, [](pbf_writer& w) {
    w.add_bytes(f::kStringData, std::string("a\0b", 3));
    w.add_bytes(f::kStringData, std::string());
  }));
  CHECK(t.data<std::string>()[0].size() == 3);
  CHECK(t.data<std::string>()[1].empty());
}

TEST_CASE("sparse initializers become dense") {
  const auto sparse_model = [](const std::string& indices, std::initializer_list<int64_t> dims) {
    return model([&](pbf_writer& g) {
      g.add_message(onnx::graph_field::kNode, node("Identity", {"w"}, {"y"}));
      g.add_message(onnx::graph_field::kSparseInitializer, message([&](pbf_writer& s) {
                      s.add_message(onnx::sparse_field::kValues, raw<float>(1, {2}, {5, 6}));
                      s.add_message(onnx::sparse_field::kIndices, indices);
                      s.add_packed_int64(onnx::sparse_field::kDims, dims.begin(), dims.end());
                    }));
      g.add_message(onnx::graph_field::kOutput, value("y"));
    });
  };
  const std::vector<float> expected{0, 5, 0, 0, 0, 6};
  CHECK(to_float_vector(constant(read(sparse_model(raw<int64_t>(7, {2}, {1, 5}), {2, 3})), "w")) == expected);
  CHECK(to_float_vector(constant(read(sparse_model(raw<int64_t>(7, {2, 2}, {0, 1, 1, 2}), {2, 3})), "w")) == expected);
  CHECK(contains(read_error(sparse_model(raw<int64_t>(7, {2}, {1, 6}), {2, 3})), "index 6"));
  CHECK(contains(read_error(sparse_model(raw<int64_t>(7, {2, 2}, {0, 1, -1, 2}), {2, 3})), "index -1"));
  CHECK(contains(read_error(sparse_model(raw<int64_t>(7, {1}, {1}), {2, 3})), "indices of shape"));
  CHECK(contains(read_error(sparse_model(raw<int64_t>(7, {2}, {1, 5}), {1 << 20, 1 << 20})), "limit"));
  CHECK(contains(read_error(sparse_model(raw<int64_t>(7, {2}, {1, 5}), {INT64_MAX, 3})), "impossible dims"));
}

TEST_CASE("a Constant's sparse value becomes dense, within what all sparse tensors of a model may take") {
  const auto constants = [](size_t count, std::initializer_list<int64_t> dims) {
    const std::string sparse = message([&](pbf_writer& s) {
      s.add_message(onnx::sparse_field::kValues, raw<float>(1, {2}, {5, 6}));
      s.add_message(onnx::sparse_field::kIndices, raw<int64_t>(7, {2}, {1, 5}));
      s.add_packed_int64(onnx::sparse_field::kDims, dims.begin(), dims.end());
    });
    const std::string attribute = message([&](pbf_writer& a) {
      a.add_string(onnx::attribute_field::kName, "sparse_value");
      a.add_message(onnx::attribute_field::kSparseTensor, sparse);
      a.add_int32(onnx::attribute_field::kType, 11);
    });
    return model([&](pbf_writer& g) {
      for (size_t i = 0; i < count; ++i)
        g.add_message(onnx::graph_field::kNode, node("Constant", {}, {cat("y", i).c_str()}, {attribute}));
      g.add_message(onnx::graph_field::kOutput, value("y0"));
    });
  };
  const graph::Model small = read(constants(1, {2, 3}));
  const tensor::Tensor* dense = small.graph->node(0).attributes.get_tensor("value");
  REQUIRE(dense != nullptr);
  CHECK(to_float_vector(*dense) == std::vector<float>{0, 5, 0, 0, 0, 6});
  onnx::ReadOptions options;
  options.max_dense_bytes = 48;
  CHECK(read_error(constants(2, {2, 3}), options).message().empty());
  const Error beyond = read_error(constants(3, {2, 3}), options);
  CHECK(beyond.code() == ErrorCode::InvalidModel);
  CHECK(contains(beyond, "limit of 48"));
  CHECK(contains(read_error(constants(1, {1 << 16, 1 << 15})), "limit"));
  for (const auto& dims : {std::initializer_list<int64_t>{int64_t{1} << 31, int64_t{1} << 31}, {INT64_MAX, 3}}) {
    const Error impossible = read_error(constants(1, dims));
    CHECK(impossible.code() == ErrorCode::InvalidModel);
    CHECK(contains(impossible, "impossible dims"));
  }
  size_t looks = 0;
  options.checkpoint = [&looks] {
    if (++looks == 2) fail(ErrorCode::Aborted, "enough");
  };
  CHECK(read_error(constants(1, {2, 3}), options).code() == ErrorCode::Aborted);
}

TEST_CASE("sizes that do not fit, unknown types and overflows name the tensor") {
  for (const std::string& bad : {
           raw<float>(1, {3}, {1, 2}),
           raw<float>(1, {}, {}),
           raw<float>(1, {1}, {1, 2}),
           int32_data(6, {3}, {1}),
           tensor_proto("w", 1, {2}),
           raw<float>(29, {1}, {1}),
           int32_data(27, {1}, {64}),
           raw<float>(0, {1}, {1}),
           raw<float>(99, {1}, {1}),
           raw<float>(1, {-1}, {1}),
           raw<float>(1, {INT64_MAX, 4}, {1}),
           raw<float>(1, {INT64_MAX / 4}, {1}),
           raw<char>(8, {1}, {'a'}),
           int32_data(8, {1}, {1}),
           tensor_proto(
               "w", 1, {1},
               [](pbf_writer& w) { w.add_message(f::kSegment, message([](pbf_writer& s) { s.add_int64(1, 0); })); }),
       }) {
    const Error e = tensor_error(bad);
    CAPTURE(e.message());
    CHECK(e.code() == ErrorCode::InvalidModel);
    CHECK(contains(e, "'w'"));
  }
}

TEST_CASE("large aligned data is viewed, small or unaligned data copied") {
  const std::string big(64 << 10, '\1');
  for (size_t shift = 0; shift < 4; ++shift) {
    auto bytes = std::make_shared<std::string>(model([&](pbf_writer& g) {
      g.add_message(onnx::graph_field::kInitializer,
                    tensor_proto("w", 1, {16 << 10}, [&](pbf_writer& w) { w.add_bytes(f::kRawData, big); }));
      g.add_message(onnx::graph_field::kInitializer,
                    tensor_proto("b", 3, {64 << 10}, [&](pbf_writer& w) { w.add_bytes(f::kRawData, big); }));
      g.add_message(onnx::graph_field::kInitializer,
                    tensor_proto("s", 3, {8}, [&](pbf_writer& w) { w.add_bytes(f::kRawData, big.substr(0, 8)); }));
      g.add_message(onnx::graph_field::kNode, node("Identity", {"w"}, {"y"}));
      g.add_string(onnx::graph_field::kDoc, std::string(shift, 'x'));
      g.add_message(onnx::graph_field::kOutput, value("y"));
    }));
    bytes->insert(
        0, std::string("\x12", 1) + static_cast<char>(shift) + std::string(shift, 'p'));  // a producer of that length
    const auto inside = [&](const tensor::Tensor& t) {
      const auto* p = static_cast<const char*>(t.raw());
      return p >= bytes->data() && p < bytes->data() + bytes->size();
    };
    const tensor::Buffer held(bytes->data(), bytes->size(), bytes, {}, false);
    const graph::Model model = onnx::read_model_bytes(held);
    const size_t at = bytes->find(big);
    CHECK(inside(constant(model, "w")) == (reinterpret_cast<uintptr_t>(bytes->data() + at) % 4 == 0));
    CHECK(reinterpret_cast<uintptr_t>(constant(model, "w").raw()) % 4 == 0);
    CHECK(inside(constant(model, "b")));
    CHECK_FALSE(inside(constant(model, "s")));
    CHECK(constant(model, "w").byte_span()[65535] == std::byte{1});
    CHECK_FALSE(inside(constant(read(*bytes), "b")));
  }
}

TEST_CASE("a lone tensor") {
  const std::string proto = raw<float>(1, {2}, {1, 2});
  CHECK(to_float_vector(onnx::read_tensor(std::as_bytes(std::span(proto)))) == std::vector<float>{1, 2});
  CHECK(contains(error_of([&] { (void)onnx::read_tensor(std::as_bytes(std::span(proto)).first(10)); }), "damaged"));
}
