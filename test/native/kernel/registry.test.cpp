#include "kernel/registry.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "kernel/test_ops.h"

namespace infernode::kernel {
namespace {

using graph::ValueType;
using tensor::DType;
using tensor::TypeSet;

std::vector<ValueType> both(DType type) { return {ValueType::tensor(type), ValueType::tensor(type)}; }

TEST_CASE("The schema in force is the newest not above the model's opset") {
  Registry registry;
  OpRegistrar r(registry);
  r.op("Foo").version(7, "X:T -> Y:T; T = float").version(1, "X:T -> Y:T; T = float").deprecated(10);
  CHECK(registry.find_schema("", "Foo", 6)->since_version == 1);
  CHECK(registry.find_schema("ai.onnx", "Foo", 9)->since_version == 7);
  CHECK(registry.find_schema("", "Foo", 10) == nullptr);
  CHECK(registry.find_schema("", "Foo", 0) == nullptr);
  CHECK(registry.find_schema("other", "Foo", 7) == nullptr);
  CHECK(registry.schemas().size() == 3);
}

TEST_CASE("A missing operator is explained") {
  Registry registry;
  OpRegistrar r(registry);
  r.op("Softmax").version(11, "X:T -> Y:T; T = float");
  r.op("Old").version(1, "X:T -> Y:T; T = float").deprecated(10);
  r.op("Gelu", "com.microsoft").version(1, "X:T -> Y:T; T = float");
  CHECK(registry.why_missing("com.micosoft", "Gelu", 1) ==
        "unknown domain 'com.micosoft' (did you mean 'com.microsoft'?)");
  CHECK(registry.why_missing("", "Sotfmax", 13) == "no operator 'Sotfmax' in ai.onnx (did you mean 'Softmax'?)");
  CHECK(registry.why_missing("", "Softmax", 7) == "Softmax exists from opset 11 on, the model imports 7");
  CHECK(registry.why_missing("", "Old", 12) == "Old is deprecated since opset 10");
  CHECK(registry.knows_domain("com.microsoft"));
  CHECK_FALSE(registry.knows_domain("x"));
  CHECK(registry.newest_opset("") == kNewestOnnxOpset);
  CHECK(registry.newest_opset("com.microsoft") == 1);
  CHECK(registry.newest_opset("x") == 0);
}

TEST_CASE("A kernel serves the versions of its chain and the types it names") {
  Registry registry;
  OpRegistrar r(registry);
  r.op("Foo")
      .version(1, "A:T, B:T -> C:T; T = all")
      .kernel<test::AddKernel>({{"T", TypeSet{DType::Float32}}})
      .in_place(0, 0);
  r.op("Foo").version(5, "A:T, B:T -> C:T; T = all").kernel<test::AddKernel>();
  const OpSchema& one = *registry.find_schema("", "Foo", 1);
  const OpSchema& five = *registry.find_schema("", "Foo", 5);
  const std::vector<ValueType> unknown(1);
  const KernelDef* found = registry.find_kernel("cpu", one, both(DType::Float32), unknown);
  REQUIRE(found);
  CHECK(found->in_place.size() == 1);
  CHECK(registry.find_kernel("cpu", one, both(DType::Int64), unknown) == nullptr);
  CHECK(registry.find_kernel("cpu", five, both(DType::Int64), unknown) != nullptr);
  CHECK(registry.find_kernel("cpu", five, both(DType::Float32), unknown) != found);
  CHECK(registry.find_kernel("cuda", five, both(DType::Float32), unknown) == nullptr);
}

TEST_CASE("Registering a version twice is an error") {
  Registry registry;
  OpRegistrar r(registry);
  r.op("Foo").version(1, "X:T -> Y:T; T = float");
  CHECK_THROWS_AS(r.op("Foo").version(1, "X:T -> Y:T; T = float"), Error);
  CHECK_THROWS_AS(r.op("Bar").in_place(0, 0), Error);
}

}  // namespace
}  // namespace infernode::kernel
