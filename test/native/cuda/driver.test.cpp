#include "providers/cuda/driver/api.h"

#include <cstdlib>

#include "cuda_test.h"
#include "providers/cuda/device/device.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string why() {
  return error_of([] { cuda::driver::open(); }).message();
}
}  // namespace

TEST_CASE("the driver is opened, and its devices are known") {
  const OnDouble undo;
  const auto api = cuda::driver::open();
  CHECK(api->version == 13000);
  const auto devices = cuda::list_devices(*api);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "Double GPU");
  CHECK(devices[0].major * 10 + devices[0].minor == 75);
}

TEST_CASE("a driver that cannot be used says why") {
  const OnDouble undo;
  auto& state = cuda_double::state();
  state.version = 12020;
  CHECK(has(why(), "the driver is too old: it speaks CUDA 12.2, and this build needs 13.0"));
  state.version = 13000;
  state.init_result = 100;
  CHECK(has(why(), "finds no NVIDIA GPU"));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  CHECK(has(why(), "CUDA_VISIBLE_DEVICES hides all devices"));
  unsetenv("CUDA_VISIBLE_DEVICES");
  state.init_result = 34;
  CHECK(has(why(), "the toolkit's stub"));
  state.init_result = 999;
  CHECK(has(why(), "cuInit failed with"));
  state.init_result = 0;
  state.devices = 0;
  CHECK(has(why(), "finds no NVIDIA GPU"));
}

TEST_CASE("the next provider takes over where there is no device") {
  const OnDouble undo;
  cuda_double::state().init_result = 100;
  CHECK(error_of([] { open("(float[2] x) => (y) { y = Neg(x) }", on_cuda()); }).code() ==
        ErrorCode::ProviderUnavailable);
  SessionOptions options = on_cuda();
  options.providers.push_back({"cpu"});
  options.log_severity = LogSeverity::Fatal;
  CHECK(nodes_on_device(*open("(float[2] x) => (y) { y = Neg(x) }", options)) == 0);
}

TEST_CASE("options are checked") {
  const OnDouble undo;
  const auto message = [](provider::ProviderOptions options) {
    return error_of([&] { open("(float[2] x) => (y) { y = Neg(x) }", on_cuda(std::move(options))); }).message();
  };
  CHECK(has(message({{"device_id", "1"}}), "there is no device 1; the driver has 1"));
  CHECK(has(message({{"device_id", "x"}}), "'device_id' is a number, got 'x'"));
  CHECK(has(message({{"arena_extend_strategy", "large"}}), "kNextPowerOfTwo or kSameAsRequested"));
  CHECK(has(message({{"colour", "1"}}), "has no option 'colour'"));
  open("(float[2] x) => (y) { y = Neg(x) }",
       on_cuda({{"device_id", "0"}, {"cudnn_conv_algo_search", "HEURISTIC"}, {"enable_cuda_graph", "0"}}));
}
