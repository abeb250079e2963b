// What one packing made is read by no other's loops.
#include "ops/common/packed_weight.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "base/cpu_features.h"
#include "base/error.h"
#include "microkernels/conv/conv.h"
#include "microkernels/kernel_set.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using microkernels::PackedForm;
using microkernels::PackedOperand;

/// A run on the calling thread.
kernel::RunContext run_here() {
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  return run;
}

/// The message of the Internal error that a call ends in; empty where it ends in none.
template <class Call>
std::string failure(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::Internal ? error.what() : "of another kind";
  }
  return {};
}

TEST_CASE("operands of a packed weight lie at aligned places") {
  const PackedOperand one{PackedForm::kFloats, nullptr, 100, 5, 5, "conv.test"};
  const PackedWeight weight(run_here(), one, 3, 2,
                            [](std::size_t i, std::size_t begin, std::size_t end, std::byte* to) {
                              CHECK(begin % 2 == 0);
                              std::memset(to + begin * 20, static_cast<int>(i + 1), (end - begin) * 20);
                            });
  REQUIRE(weight);
  CHECK(weight.made_by("conv.test"));
  for (std::size_t i = 0; i < 3; ++i) {
    const PackedOperand operand = weight.read("conv.test", i);
    CHECK(reinterpret_cast<std::uintptr_t>(operand.data) % 64 == 0);
    for (std::size_t at = 0; at < 100; ++at) CHECK(static_cast<const std::uint8_t*>(operand.data)[at] == i + 1);
    CHECK(operand.form == PackedForm::kFloats);
    CHECK(operand.bytes == 100);
    CHECK(operand.floats() == operand.data);
    CHECK(operand.pairs() == nullptr);
  }
  CHECK(failure([&] { weight.read("conv.test", 3); }) != "");
}

TEST_CASE("what a run packs ends between columns with the run") {
  const PackedOperand one{PackedForm::kFloats, nullptr, 64, 4, 4, "conv.test"};
  kernel::CancelToken cancel;
  kernel::RunContext run = run_here();
  run.cancel = &cancel;
  std::size_t packed = 0;
  const auto fill = [&](std::size_t, std::size_t begin, std::size_t end, std::byte*) {
    packed += end - begin;
    cancel.cancel();
  };
  PackedOperand large = one;
  large.k = std::size_t{1} << 24;  // of which each column takes long
  CHECK_THROWS_AS(PackedWeight(run, large, 1, 1, fill), Error);
  CHECK(packed == 1);
}

TEST_CASE("a packed weight is read as what it is packed as") {
  const PackedOperand one{PackedForm::kBf16Pairs, nullptr, 64, 4, 8, "conv.pairs"};
  const PackedWeight weight(run_here(), one, 1, 4,
                            [](std::size_t, std::size_t, std::size_t, std::byte* to) { std::memset(to, 0, 64); });
  CHECK(weight.read("conv.pairs").floats() == nullptr);
  CHECK(weight.read("conv.pairs").pairs() != nullptr);
  CHECK_FALSE(weight.made_by("conv.floats"));
  CHECK(failure([&] { weight.read("conv.floats"); }) ==
        "weights that conv.pairs packed as pairs are read as conv.floats packs them");
  const PackedWeight none;
  CHECK_FALSE(none);
  CHECK_FALSE(none.made_by("conv.pairs"));
  CHECK(failure([&] { none.read("conv.pairs"); }) != "");
}

TEST_CASE("products read what their table's packings make, and panels of float32") {
  const microkernels::GemmTable& table = microkernels::kernel_set(detect_cpu_rung()).gemm;
  const std::uint8_t memory = 0;
  for (const microkernels::GemmPacking* packing : {&table.weights, &table.operand})
    CHECK(failure([&] { check_packing(table, packing->packed(8, 64, &memory)); }) == "");
  CHECK(failure([&] { check_packing(table, {}); }) == "");
  CHECK(failure([&] { check_packing(table, {PackedForm::kFloats, &memory, 4, 1, 1, "gemm.other"}); }) == "");
  CHECK(failure([&] { check_packing(table, {PackedForm::kBf16Pieces, &memory, 4, 1, 1, "gemm.other"}); }) != "");
  CHECK(failure([&] { check_packing(table, {PackedForm::kCodes, &memory, 4, 1, 1, "qgemm.other"}); }) != "");
}

}  // namespace
}  // namespace infernode::ops
