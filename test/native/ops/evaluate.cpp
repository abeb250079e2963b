#include "ops/evaluate.h"

namespace infernode::test {

std::span<const std::size_t> first_constants() {
  static constexpr std::size_t kNoneThenAll[] = {SIZE_MAX, 0};
  return kNoneThenAll;
}

std::vector<tensor::Value> evaluate(const std::shared_ptr<graph::Graph>& graph,
                                    const std::vector<tensor::Value>& inputs) {
  return evaluate_here(*graph, inputs);
}

std::size_t step_of_changed_cases() { return 1; }
double tolerance_of(const tensor::Value&, double given) { return given; }
bool must_refuse() { return true; }
bool errors_are_the_kernels() { return true; }

}  // namespace infernode::test
