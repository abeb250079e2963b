#include "ops/op_test.h"

namespace infernode::test {
namespace {

/// The definition, element by element.
Tensor transposed(const Tensor& x, const std::vector<std::int64_t>& perm) {
  Shape dims;
  for (std::int64_t p : perm) dims.push_back(x.dim(static_cast<std::size_t>(p)));
  Tensor out = Tensor::make(x.dtype(), dims);
  const Shape from = x.shape().strides(), to = dims.strides();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < perm.size(); ++d) {
      at += i / to[d] % dims[d] * from[static_cast<std::size_t>(perm[d])];
    }
    if (x.dtype() == DType::String) {
      out.mutable_data<std::string>()[i] = x.data<std::string>()[at];
    } else {
      const std::size_t size = tensor::bit_size(x.dtype()) / 8;
      std::copy_n(static_cast<const std::byte*>(x.raw()) + static_cast<std::size_t>(at) * size, size,
                  static_cast<std::byte*>(out.mutable_raw()) + static_cast<std::size_t>(i) * size);
    }
  }
  return out;
}

void check(const Tensor& x, const std::vector<std::int64_t>& perm, std::int64_t opset = 13) {
  std::string dims, entries;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    dims += cat(i ? "," : "", "D", i);
    entries += cat(i ? "," : "", perm[i]);
  }
  const std::string type(tensor::onnx_name(x.dtype()));
  check_op(cat("(", type, "[", dims, "] X) => (", type, " Y) { Y = Transpose<perm=[", entries, "]>(X) }"), opset, {x},
           {transposed(x, perm)});
}

TEST_CASE("Transpose reverses the axes by default") {
  check_op("(float[A,B,C] X) => (float[D,E,F] Y) { Y = Transpose(X) }", 1, {iota(DType::Float32, {2, 3, 4})},
           {transposed(iota(DType::Float32, {2, 3, 4}), {2, 1, 0})});
  check_op("(float X) => (float Y) { Y = Transpose(X) }", 13, {f32({}, {3})}, {f32({}, {3})});
  CHECK(infer_op("(float[N,C,H] X) => (Y) { Y = Transpose(X) }", 13) == "tensor(float)[H,C,N]");
}

TEST_CASE("Transpose permutes planes, rows and single elements of every size") {
  for (const DType type : {DType::Float32, DType::Int8, DType::Float16, DType::Float64}) {
    CAPTURE(tensor::name(type));
    check(iota(type, {17, 9}), {1, 0});
    check(iota(type, {2, 3, 5, 4}), {0, 2, 3, 1});
    check(iota(type, {2, 5, 4, 3}), {0, 3, 1, 2});
    check(iota(type, {2, 3, 4, 2}), {0, 2, 1, 3});
    check(iota(type, {3, 1, 4, 1}), {3, 2, 1, 0});
    check(iota(type, {2, 3, 2, 3, 2}), {4, 0, 3, 1, 2});
    check(iota(type, {2, 1, 2, 1, 2, 1, 2, 3}), {7, 5, 6, 3, 0, 1, 2, 4});
  }
  check(noise({200, 300}), {1, 0});
  check(noise({3, 130, 70}), {0, 2, 1});
  check(noise({129, 3, 65}), {2, 1, 0});
  check(noise({8, 64, 4, 32}), {0, 2, 1, 3});
  check(noise({50000, 3}), {1, 0});
  check(noise({3, 50000}), {1, 0});
}

TEST_CASE("Transpose moves strings, empty tensors and packed elements") {
  check(str({2, 3}, {"a", "b", "c", "d", "e", "f"}), {1, 0});
  check(f32({2, 0, 3}, {}), {2, 0, 1});
  check_op("(int4[3,3] X) => (int4[A,B] Y) { Y = Transpose(X) }", 21,
           {tensor_as(DType::Int4, {3, 3}, {1, 2, 3, 4, 5, 6, 7, -8, -1})},
           {tensor_as(DType::Int4, {3, 3}, {1, 4, 7, 2, 5, -8, 3, 6, -1})});
  check_op("(uint2[2,3] X) => (uint2[A,B] Y) { Y = Transpose(X) }", 25,
           {tensor_as(DType::UInt2, {2, 3}, {0, 1, 2, 3, 0, 1})},
           {tensor_as(DType::UInt2, {3, 2}, {0, 3, 1, 0, 2, 1})});
}

TEST_CASE("Transpose refuses a perm that is none") {
  const Tensor x = iota(DType::Float32, {2, 3});
  check_op_fails("(float[A,B] X) => (Y) { Y = Transpose<perm=[0,0]>(X) }", 13, {x}, ErrorCode::InvalidArgument,
                 "twice");
  check_op_fails("(float[A,B] X) => (Y) { Y = Transpose<perm=[0,2]>(X) }", 13, {x}, ErrorCode::InvalidArgument, "perm");
  check_op_fails("(float[A,B] X) => (Y) { Y = Transpose<perm=[0]>(X) }", 13, {x}, ErrorCode::InvalidArgument, "perm");
}

}  // namespace
}  // namespace infernode::test
