#include "runtime/run/device_work.h"

#include <doctest/doctest.h>

#include "tensor/tensor.h"

using namespace infernode;
using runtime::DeviceWork;
using tensor::Tensor;
using tensor::Value;

namespace {

/// A stream that counts how often it is waited for, and fails where it is told to.
class CountingStream final : public provider::Stream {
 public:
  void synchronize() override {
    ++waits;
    if (std::exchange(broken, false)) fail(ErrorCode::Internal, "the device is on fire");
  }
  int waits = 0;
  bool broken = false;
};

class Device final : public provider::Provider {
 public:
  std::string_view name() const override { return "device"; }
  tensor::Device device() const override { return {"null", 0}; }
  std::vector<provider::Claim> claim(const provider::GraphView&) override { return {}; }
  std::unique_ptr<kernel::Kernel> compile(std::shared_ptr<const graph::Graph>,
                                          microkernels::Float32Precision) override {
    return nullptr;
  }
  tensor::Allocator& allocator() override { return tensor::host_allocator(); }
  std::unique_ptr<provider::Stream> make_stream() override { return std::make_unique<CountingStream>(); }
  void copy(const Tensor&, const Tensor&, provider::Stream&) override {}
};

struct Two {
  Device one, other;
  DeviceWork work{1 << 20};
  Two() {
    provider::Provider* const both[] = {&one, &other};
    work.prepare(both);
    work.prepare(both);
  }
  CountingStream& stream(const Device& device) { return static_cast<CountingStream&>(work.stream(device)); }
};

bool is_held(const Value& value) { return value.tensor().buffer().use_count() > 1; }

}  // namespace

TEST_CASE("what a stream reads and writes lives until it is synchronized") {
  Two two;
  const Value input = Tensor::make(tensor::DType::Float32, {4}), output = Tensor::make(tensor::DType::Float32, {4});
  const Value* const inputs[] = {&input, nullptr};
  two.work.keep(two.stream(two.one), inputs, std::span(&output, 1));
  CHECK(is_held(input));
  CHECK(is_held(output));
  CHECK(two.work.synchronize());
  CHECK_FALSE(is_held(input));
  CHECK_FALSE(is_held(output));
  CHECK(two.stream(two.one).waits == 1);
  CHECK(two.stream(two.other).waits == 0);  // it had nothing to do
  CHECK_FALSE(two.work.synchronize());
}

TEST_CASE("only the stream that gives a value is waited for, and once") {
  Two two;
  const graph::ValueId seven[] = {7}, both[] = {3, 7}, none[] = {4, graph::kNoValue};
  two.work.give(two.stream(two.one), seven);
  two.work.keep(two.stream(two.one), {}, {});
  two.work.keep(two.stream(two.other), {}, {});
  CHECK_FALSE(two.work.wait_for(none, nullptr));
  CHECK_FALSE(two.work.wait_for(both, &two.stream(two.one)));  // its own work comes after
  CHECK(two.work.wait_for(both, &two.stream(two.other)));
  CHECK_FALSE(two.work.wait_for(both, nullptr));
  CHECK(two.stream(two.one).waits == 1);
  CHECK(two.stream(two.other).waits == 0);
}

TEST_CASE("a fault of one stream leaves none waiting") {
  Two two;
  const Value value = Tensor::make(tensor::DType::Float32, {4});
  const Value* const inputs[] = {&value};
  for (const Device* device : {&two.one, &two.other}) two.work.keep(two.stream(*device), inputs, {});
  two.stream(two.one).broken = true;
  CHECK_THROWS_WITH_AS(two.work.synchronize(), "the device is on fire", Error);
  CHECK(two.stream(two.other).waits == 1);
  CHECK_FALSE(is_held(value));
  two.work.keep(two.stream(two.one), inputs, {});
  two.stream(two.one).broken = true;
  two.work.abandon();
  CHECK_FALSE(is_held(value));
}

TEST_CASE("memory for copies is kept from run to run") {
  Two two;
  { const tensor::Buffer block = two.work.staging(two.one).allocate(1000); }
  CHECK(two.work.kept_bytes() >= 1000);
  two.work.trim();
  CHECK(two.work.kept_bytes() == 0);
}
