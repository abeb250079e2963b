// Measures the methods that the engine chooses between, and fits what each takes (cost/model.h):
//
//   INFERNODE_CPU=avx512 bench_calibrate measure highest times.txt 1000 1
//   INFERNODE_CPU=avx512 bench_calibrate fit highest times.txt src-native/cost/tables/avx512.inc
//
// `measure PRECISION TIMES [SHAPES] [SEED]` times them on this CPU. `fit PRECISION TIMES FILE [OTHER_TIMES]` writes the
// table, on any CPU that has the loops (INFERNODE_CPU names the rung), and says how well it chooses among the methods
// that were measured, with OTHER_TIMES of another seed. `compare PRECISION SHAPES` times the methods of given shapes:
// in out groups kernel stride dilation height width line transform.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "base/error.h"
#include "calibrate/conv.h"

namespace {

using namespace infernode;
using microkernels::Float32Precision;

Float32Precision precision_of(std::string_view name) {
  if (name == "highest") return Float32Precision::kHighest;
  if (name == "high") return Float32Precision::kHigh;
  if (name == "medium") return Float32Precision::kMedium;
  fail(ErrorCode::InvalidArgument, cat("'", name, "' is none of highest, high, medium"));
}

std::ifstream open(const char* path) {
  std::ifstream in(path);
  if (!in) fail(ErrorCode::Io, cat("cannot read ", path));
  return in;
}

CpuRung rung_of_tables() {
  const char* const name = std::getenv("INFERNODE_CPU");
  return cpu_rung_from(name, CpuRung::Amx);
}

void measure(std::string_view precision, const char* path, std::size_t shapes, unsigned seed) {
  std::ofstream out(path);
  out << "# " << cpu_name() << ": INFERNODE_CPU=" << to_string(cpu_rung()) << " bench_calibrate measure " << precision
      << " TIMES " << shapes << ' ' << seed << '\n';
  bench::measure_conv(cpu_rung(), precision_of(precision), seed, shapes, out);
}

void write(const char* path, const std::string& command, const bench::Samples& samples,
           std::map<std::string, cost::Terms>& rates) {
  std::ofstream out(path);
  out << "//" << command << "\n// {method, rates in nanoseconds of one of each of its terms, residual}\n";
  for (const auto& [name, list] : samples) {
    const cost::Fit fit = cost::fit(list);
    rates[name] = fit.rates;
    char number[64];
    std::string text;
    for (const double rate : fit.rates) {
      std::snprintf(number, sizeof number, "%s%.4g", text.empty() ? "" : ", ", rate);
      text += number;
    }
    std::snprintf(number, sizeof number, "%.3f},  // %zu shapes, worst %.2f", fit.residual, list.size(), fit.worst);
    out << "{\"" << name << "\", {" << text << "}, " << number << '\n';
    std::printf("%-24s %4zu shapes  residual %5.1f %%  worst %5.1f %%\n", name.c_str(), list.size(), 100 * fit.residual,
                100 * fit.worst);
  }
}

void fit(std::string_view asked, const char* times, const char* path, const char* others) {
  const CpuRung rung = rung_of_tables();
  const Float32Precision precision = precision_of(asked);
  std::ifstream in = open(times);
  std::string command;
  std::getline(in, command);
  std::map<std::string, cost::Terms> rates;
  write(path, command.substr(1), bench::read_conv(rung, precision, in), rates);
  std::ifstream again = open(others);
  const bench::Regret regret = bench::judge_conv(rung, precision, again, rates);
  std::printf("chooses methods %.3f times slower than the quickest (geometric mean of %zu), worst %.2f: %s\n",
              regret.mean, regret.count, regret.worst, regret.worst_shape.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string_view what = count > 3 ? arguments[1] : "";
    if (what == "measure") {
      measure(arguments[2], arguments[3], count > 4 ? std::strtoul(arguments[4], nullptr, 10) : 1000,
              static_cast<unsigned>(count > 5 ? std::strtoul(arguments[5], nullptr, 10) : 1));
    } else if (what == "compare") {
      std::ifstream shapes = open(arguments[3]);
      bench::compare_conv(cpu_rung(), precision_of(arguments[2]), shapes, std::cout);
    } else if (what == "fit" && count > 4) {
      fit(arguments[2], arguments[3], arguments[4], count > 5 ? arguments[5] : arguments[3]);
    } else {
      std::fprintf(stderr,
                   "usage: bench_calibrate measure PRECISION TIMES [SHAPES] [SEED]\n"
                   "       bench_calibrate fit PRECISION TIMES FILE [OTHER_TIMES]\n"
                   "       bench_calibrate compare PRECISION SHAPES\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
