#pragma once

#include "calibrate/conv.h"

namespace infernode::bench {

/// Times every method of products that can run on `shapes` random ones, and writes a line for each: the product's
/// numbers, the row's name, nanoseconds.
void measure_products(CpuRung rung, microkernels::Float32Precision precision, unsigned seed, std::size_t shapes,
                      std::ostream& out);
/// What measure_products wrote, by rows of the table.
Samples read_products(CpuRung rung, microkernels::Float32Precision precision, std::istream& in);
/// Of the methods that these rates choose among those that were measured.
Regret judge_products(CpuRung rung, microkernels::Float32Precision precision, std::istream& in,
                      const std::map<std::string, cost::Terms>& rates);

}  // namespace infernode::bench
