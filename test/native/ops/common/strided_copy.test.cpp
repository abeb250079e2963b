#include "ops/common/strided_copy.h"

#include "base/cpu_features.h"
#include "ops/common/mapped_copy.h"
#include "ops/op_test.h"

namespace infernode::test {
namespace {

kernel::RunContext inline_run() {
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  return run;
}

/// The definition: one element at a time.
Tensor copied(const Tensor& x, const Shape& dims, std::int64_t offset, const Shape& strides) {
  Tensor out = Tensor::make(x.dtype(), dims);
  const Shape to = dims.strides();
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    std::int64_t at = offset;
    for (std::size_t d = 0; d < dims.rank(); ++d) at += i / to[d] % dims[d] * strides[d];
    out.mutable_data<float>()[i] = x.data<float>()[at];
  }
  return out;
}

TEST_CASE("strided_copy follows any strides, with and without blocks") {
  const Tensor x = iota(DType::Float32, {4096});
  const struct {
    Shape dims;
    std::int64_t offset;
    Shape strides;
  } cases[] = {
      {{}, 7, {}},
      {{5}, 4, {-1}},
      {{3, 4}, 0, {0, 1}},
      {{3, 4}, 5, {1, 0}},
      {{2, 3, 4}, 23, {-12, -4, -1}},
      {{2, 2, 2, 2, 2, 2, 2, 2}, 0, {1, 2, 4, 8, 16, 32, 64, 128}},
      {{4, 2, 6, 2}, 0, {24, 2, 4, 1}},
      {{33, 65}, 3, {1, 40}},
      {{65, 33}, 3, {1, 66}},
      {{3, 40, 20}, 0, {800, 1, 40}},
      {{40, 3, 20}, 0, {1, 800, 40}},
      {{7, 5, 3}, 1, {15, 1, 5}},
      {{6, 2}, 0, {2, 1}},
      {{6, 4}, 0, {8, 1}},
      {{0, 4}, 0, {4, 1}},
  };
  const kernel::RunContext run = inline_run();
  for (const auto& c : cases) {
    CAPTURE(c.dims.to_string());
    const Tensor expected = copied(x, c.dims, c.offset, c.strides);
    for (const bool blocks : {false, true}) {
      const Tensor out = Tensor::make(DType::Float32, c.dims);
      ops::strided_copy(run, c.dims, {x, c.offset, c.strides}, {out, 0, c.dims.strides()},
                        blocks ? &microkernels::kernel_set(cpu_rung()).transpose : nullptr);
      CHECK(difference(out, expected) == "");
    }
  }
}

TEST_CASE("strided_copy leaves elements between the strides alone") {
  const Tensor x = iota(DType::Float32, {4}), out = f32({8}, {9, 9, 9, 9, 9, 9, 9, 9});
  ops::strided_copy(inline_run(), {2, 2}, {x, 0, {2, 1}}, {out, 1, {4, 2}});
  CHECK(difference(out, f32({8}, {9, 0, 9, 1, 9, 2, 9, 3})) == "");
}

TEST_CASE("strided_copy moves packed elements across byte borders") {
  const Tensor x = tensor_as(DType::UInt2, {6}, {0, 1, 2, 3, 2, 1}),
               out = tensor_as(DType::UInt2, {5}, {3, 3, 3, 3, 3});
  ops::strided_copy(inline_run(), {3}, {x, 5, {-2}}, {out, 1, {1}});
  CHECK(difference(out, tensor_as(DType::UInt2, {5}, {3, 1, 3, 1, 3})) == "");
}

TEST_CASE("pack_sub_byte clears the bits past the last element") {
  const Tensor packed = tensor_as(DType::Int4, {3}, {-1, -1, -1});
  static_cast<std::uint8_t*>(packed.mutable_raw())[1] = 0xff;
  ops::pack_sub_byte(inline_run(), u8({3}, {1, 2, 3}), packed);
  CHECK(static_cast<const std::uint8_t*>(packed.raw())[0] == 0x21);
  CHECK(static_cast<const std::uint8_t*>(packed.raw())[1] == 0x03);
}

TEST_CASE("mapped_copy reads by its maps, whole rows again and constants") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), out = Tensor::make(DType::UInt32, {4, 5});
  const Tensor source = x.reinterpreted(DType::UInt32);
  const std::vector<std::int64_t> rows{1, 1, -1, 0}, columns{0, 0, 2, -1, 1};
  ops::mapped_copy<std::uint32_t>(inline_run(), source, out, {rows, columns}, 0u);
  CHECK(difference(out.reinterpreted(DType::Float32),
                   f32({4, 5}, {4, 4, 6, 0, 5, 4, 4, 6, 0, 5, 0, 0, 0, 0, 0, 1, 1, 3, 0, 2})) == "");
}

}  // namespace
}  // namespace infernode::test
