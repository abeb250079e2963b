#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "cost/fit.h"
#include "microkernels/common/precision.h"

namespace infernode::bench {

/// By the name of a row of the table.
using Samples = std::map<std::string, std::vector<cost::Sample>>;

/// Times every method of convolution that can run on `shapes` random shapes, and writes a line for each: the shape's
/// numbers, the row's name, nanoseconds.
void measure_conv(CpuRung rung, microkernels::Float32Precision precision, unsigned seed, std::size_t shapes,
                  std::ostream& out);

/// The same of the shapes that `in` holds, ten numbers each, beside what is expected of each method.
void compare_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in, std::ostream& out);

/// How much slower than the quickest the methods are that a table chooses.
struct Regret {
  double mean = 1, worst = 1;  ///< geometric mean
  std::size_t count = 0;
  std::string worst_shape;
};

/// What measure_conv wrote, by rows of the table.
Samples read_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in);
/// Of the methods that these rates choose among those that were measured.
Regret judge_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in,
                  const std::map<std::string, cost::Terms>& rates);

}  // namespace infernode::bench
