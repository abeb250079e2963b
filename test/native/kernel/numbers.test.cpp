#include "kernel/numbers.h"

#include <doctest/doctest.h>

using namespace infernode;
using tensor::Shape;
using tensor::Tensor;

TEST_CASE("integers that were read stay as they were when their tensor is written to") {
  const kernel::RunContext run;
  const Tensor wide = Tensor::of<std::int64_t>(Shape{3}, {4, 5, 6}),
               narrow = Tensor::of<std::int32_t>(Shape{2}, {7, 8});
  const kernel::Numbers<std::int64_t> from_wide(run, wide), from_narrow(run, narrow);
  wide.mutable_data<std::int64_t>()[1] = -1;
  narrow.mutable_data<std::int32_t>()[0] = -1;
  CHECK(std::vector(from_wide.begin(), from_wide.end()) == std::vector<std::int64_t>{4, 5, 6});
  CHECK(std::vector(from_narrow.begin(), from_narrow.end()) == std::vector<std::int64_t>{7, 8});
}

TEST_CASE("floats are read where they lie") {
  const kernel::RunContext run;
  const Tensor floats = Tensor::of<float>(Shape{2}, {1, 2});
  CHECK(kernel::Numbers<float>(run, floats).data() == floats.data<float>());
}
