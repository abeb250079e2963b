// Measures the methods that the engine chooses between, fits what each takes (cost/model.h) and writes the table of
// this CPU at a precision:
//
//   INFERNODE_CPU=avx512 build/release/bench/calibrate/bench_calibrate highest src-native/cost/tables/avx512.inc
//
// usage: bench_calibrate PRECISION FILE|- [SHAPES] [SEED] [-v]
// A FILE of `-` writes nothing: with another seed that says how well the table at hand chooses.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/float_mode.h"
#include "calibrate/conv.h"

namespace {

using namespace infernode;

void write(const std::string& path, const std::string& command, const bench::Samples& samples) {
  std::ofstream out(path);
  out << "// " << cpu_name() << ", rung " << to_string(cpu_rung()) << ". Written by:\n//   " << command
      << "\n// {method, rates in nanoseconds of one of each of its terms, residual}\n";
  char line[512];
  for (const auto& [name, list] : samples) {
    const cost::Fit fit = cost::fit(list);
    std::string rates;
    for (const double rate : fit.rates) {
      std::snprintf(line, sizeof line, "%s%.4g", rates.empty() ? "" : ", ", rate);
      rates += line;
    }
    std::snprintf(line, sizeof line, "{\"%s\", {%s}, %.3f},  // %zu shapes, worst %.2f\n", name.c_str(), rates.c_str(),
                  fit.residual, list.size(), fit.worst);
    out << line;
  }
}

int run(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: bench_calibrate highest|high|medium FILE|- [SHAPES] [SEED] [-v]\n");
    return 2;
  }
  const std::string_view asked = arguments[1];
  const auto precision = asked == "medium" ? microkernels::Float32Precision::kMedium
                         : asked == "high" ? microkernels::Float32Precision::kHigh
                                           : microkernels::Float32Precision::kHighest;
  const std::size_t shapes = count > 3 ? std::strtoul(arguments[3], nullptr, 10) : 300;
  const auto seed = static_cast<unsigned>(count > 4 ? std::strtoul(arguments[4], nullptr, 10) : 1);
  bench::Samples samples;
  bench::Regret regret;
  bench::measure_conv(cpu_rung(), precision, seed, shapes, samples, regret, count > 5);
  for (const auto& [name, list] : samples) {
    const cost::Fit fit = cost::fit(list);
    std::printf("%-24s %4zu shapes  residual %5.1f %%  worst %5.1f %%\n", name.c_str(), list.size(),
                100 * fit.residual, 100 * fit.worst);
  }
  std::printf("the table at hand chooses methods %.3f times slower than the quickest (geometric mean of %zu), worst %.2f"
              " at %s\n",
              std::exp(regret.sum_of_logs / static_cast<double>(regret.count ? regret.count : 1)), regret.count,
              regret.worst, regret.worst_shape.c_str());
  if (std::strcmp(arguments[2], "-") != 0) {
    const std::string command = cat("INFERNODE_CPU=", to_string(cpu_rung()), " bench_calibrate ", asked, " FILE ",
                                    shapes, " ", seed);
    write(arguments[2], command, samples);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
