#pragma once
// Sessions on the double of a GPU, held against the CPU.

#include "double/double.h"
#include "session/session_test.h"

namespace infernode::test {

/// What a test does to the double is undone at its end, and complaints fail it.
class OnDouble {
 public:
  OnDouble() { cuda_double::state() = {}; }
  ~OnDouble() {
    CHECK(cuda_double::state().complaints.empty());
    if (!cuda_double::state().complaints.empty()) MESSAGE(cuda_double::state().complaints.front());
    cuda_double::state() = {};
  }
  OnDouble(const OnDouble&) = delete;
  OnDouble& operator=(const OnDouble&) = delete;
};

inline SessionOptions on_cuda(provider::ProviderOptions options = {}) {
  SessionOptions all;
  all.providers = {{"cuda", std::move(options)}};
  return all;
}

/// How many of the model's nodes run on the device.
inline std::size_t nodes_on_device(const Session& session) {
  return static_cast<std::size_t>(std::count_if(session.placements().begin(), session.placements().end(),
                                                [](const auto& placement) { return placement.provider == "cuda"; }));
}

/// Every node runs on the device, and three runs (as it comes, again, and replayed) give what the CPU gives.
inline void same_as_cpu(std::string_view text, const std::vector<Value>& inputs, double tolerance = 1e-5,
                        std::int64_t opset = 17) {
  CAPTURE(text);
  const auto cpu = open(text, {}, opset);
  const auto cuda = open(text, on_cuda(), opset);
  CHECK(nodes_on_device(*cuda) == cuda->placements().size());
  const std::vector<Value> expected = run(*cpu, inputs);
  for (int pass = 0; pass < 3; ++pass) {
    CAPTURE(pass);
    const std::vector<Value> results = run(*cuda, inputs);
    REQUIRE(results.size() == expected.size());
    for (std::size_t o = 0; o < results.size(); ++o) {
      const Tensor &a = results[o].tensor(), &b = expected[o].tensor();
      REQUIRE(a.to_string() == b.to_string());
      const std::vector<float> x = tensor::to_float_vector(a), y = tensor::to_float_vector(b);
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(i);
        if (x[i] == y[i]) continue;  // infinities, too
        if (std::isnan(y[i]))
          CHECK(std::isnan(x[i]));
        else
          CHECK(x[i] == doctest::Approx(y[i]).epsilon(tolerance));
      }
    }
  }
}

/// Numbers from -2 to 2.
template <class T = float>
Value numbers(const tensor::Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  const Tensor t = Tensor::make(tensor::kDTypeOf<T>, shape);
  for (T& v : t.mutable_span<T>()) v = T(static_cast<float>(static_cast<int>(random() % 401) - 200) / 100.0f);
  return t;
}

}  // namespace infernode::test
