#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "cost/fit.h"
#include "microkernels/common/precision.h"

namespace infernode::bench {

/// By the name of a row of the table.
using Samples = std::map<std::string, std::vector<cost::Sample>>;

/// How long the method takes that the table at hand would choose, against the quickest one.
struct Regret {
  double sum_of_logs = 0, worst = 1;
  std::size_t count = 0;
  std::string worst_shape;
};

/// Times every method of convolution that can run on `shapes` random shapes.
void measure_conv(CpuRung rung, microkernels::Float32Precision precision, unsigned seed, std::size_t shapes,
                  Samples& samples, Regret& regret, bool verbose);

}  // namespace infernode::bench
