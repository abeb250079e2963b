#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_features.h"
#include "cost/fit.h"
#include "cost/model.h"
#include "microkernels/common/precision.h"

namespace infernode::bench {

/// By the name of a row of the table.
using Samples = std::map<std::string, std::vector<cost::Sample>>;

/// How much slower than the quickest the methods are that a table chooses.
struct Regret {
  double mean = 1, worst = 1;  ///< geometric mean
  double in_all = 1;           ///< the time of all of them beside that of all the quickest
  std::size_t count = 0;
  std::string worst_shape;
  /// Beside the methods that would be chosen without those of the matrix unit: of how many one was, how many are slower
  /// by more than a tenth, and how long those take in all beside the chosen ones.
  std::size_t units = 0, slower = 0;
  double gain = 1;
  /// Of convolutions, between the orders of memory that they can have: how many are chosen, how many of those in plain
  /// order take longer by more than a tenth than in blocks would, and the time of all beside the quicker orders'.
  std::size_t orders = 0, plain = 0, plain_slower = 0;
  double in_all_orders = 1;
};

/// What to measure: methods of random shapes.
struct Asked {
  std::size_t shapes;
  unsigned seed;
  std::string_view methods;  ///< those whose name begins so, of shapes that any of them takes

  bool takes(std::string_view method) const { return method.starts_with(methods); }
};

/// What expected times are multiplied by before they compete.
struct Margins {
  double unit;                            ///< of methods of the matrix unit
  double plain = cost::kPlainConvMargin;  ///< of convolutions in plain order, beside those in blocks
};

/// Operators whose methods compete with each other.
struct Family {
  using Precision = microkernels::Float32Precision;

  std::string_view name;
  /// Times every method asked for that can run on a random shape, and writes a line for each: the shape's numbers, the
  /// row's name (of attention a colon and the rows of a block, too), nanoseconds.
  void (*measure)(CpuRung rung, Precision precision, const Asked& asked, std::ostream& out);
  /// What `measure` wrote, by rows of the table.
  Samples (*read)(CpuRung rung, Precision precision, std::istream& in);
  /// Of the methods that these rates choose among those that were measured.
  Regret (*judge)(CpuRung rung, Precision precision, std::istream& in, const std::map<std::string, cost::Terms>& rates,
                  const Margins& margins);
  double unit_margin;  ///< the engine's
};
extern const Family kConv, kProducts, kAttention;

/// Times every method of convolution on the shapes that `in` holds, ten numbers each, beside what is expected of each.
void compare_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in, std::ostream& out);

}  // namespace infernode::bench
