#pragma once
// How tests count looks: at whether a run is to end.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/limits.h"

namespace infernode::test {

/// Steps between two looks that vectors or the matrix unit take, dozens in a nanosecond, and others.
inline constexpr double kFast = 1 << 28, kSlow = 1 << 25;

/// A graph that runs long.
struct LongOp {
  const char* text;
  std::int64_t opset;
  std::function<std::vector<Value>()> inputs;
  double steps;           ///< multiply-adds, comparisons, elements under windows
  double between;         ///< most steps between two looks
  bool constant = false;  ///< whether inputs but the first are constants, which kernels may pack
};

inline std::vector<Value> values(std::initializer_list<Tensor> tensors) { return {tensors.begin(), tensors.end()}; }

/// The run looks as often as its steps ask for, and ends at its first look where it is to end.
void check_looks(std::span<const LongOp> ops);

/// The graphs whose looks a test's file counts: `const CountedGraphs graphs(kLongOps);`, or with a function that gives
/// their texts. every_operator.test.cpp asks for those of all files.
class CountedGraphs {
 public:
  using Texts = std::vector<std::string>;
  explicit CountedGraphs(std::span<const LongOp> ops);
  explicit CountedGraphs(Texts (*texts)());

  /// Of every file.
  static Texts all();

 private:
  static std::vector<std::function<Texts()>>& files();
};

/// What a graph in ONNX's text form ends in, as "com.microsoft.CDist": the operator that it is there for.
std::string last_operator(std::string_view text);

}  // namespace infernode::test
