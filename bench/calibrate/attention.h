#pragma once

#include "calibrate/conv.h"

namespace infernode::bench {

/// Times every method of attention that can run on `shapes` random ones, with each size of blocks, and writes a line
/// for each: the shape's numbers, the row's name, a colon and the rows of a block, nanoseconds.
void measure_attention(CpuRung rung, microkernels::Float32Precision precision, unsigned seed, std::size_t shapes,
                       std::ostream& out);
/// What measure_attention wrote, by rows of the table.
Samples read_attention(CpuRung rung, microkernels::Float32Precision precision, std::istream& in);
/// Of the methods and blocks that these rates choose among those that were measured.
Regret judge_attention(CpuRung rung, microkernels::Float32Precision precision, std::istream& in,
                       const std::map<std::string, cost::Terms>& rates);

}  // namespace infernode::bench
