// Measures the methods that the engine chooses between, and fits what each takes (cost/model.h):
//
//   INFERNODE_CPU=avx512 bench_calibrate measure conv highest times.txt 1000 1
//   INFERNODE_CPU=avx512 bench_calibrate fit conv highest times.txt src-native/cost/tables/avx512.inc
//
// `measure FAMILY PRECISION TIMES [SHAPES] [SEED] [METHODS]` times them on this CPU, or those alone whose names begin
// with METHODS; families are conv, products and attention, whose tables are avx512.inc, products-avx512.inc,
// attention-avx512.inc and so on. `fit FAMILY PRECISION TIMES FILE
// [OTHER_TIMES]` writes the table, on any CPU that has the loops (INFERNODE_CPU names the rung), and says how well it
// chooses among the methods that were measured, with OTHER_TIMES of another seed. TIMES may be several files of times,
// one after the other. `judge FAMILY PRECISION TIMES [UNIT_MARGIN [PLAIN_MARGIN]]` says so of the engine's
// own table, where methods of the matrix unit compete at UNIT_MARGIN times what is expected of them, and convolutions
// in plain order at PLAIN_MARGIN beside those in blocks. `compare PRECISION SHAPES` times the methods of given
// convolutions: in out groups kernel stride dilation height width line transform.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "base/error.h"
#include "calibrate/families.h"

namespace {

using namespace infernode;
using microkernels::Float32Precision;

Float32Precision precision_of(std::string_view name) {
  if (name == "highest") return Float32Precision::kHighest;
  if (name == "high") return Float32Precision::kHigh;
  if (name == "medium") return Float32Precision::kMedium;
  fail(ErrorCode::InvalidArgument, cat("'", name, "' is none of highest, high, medium"));
}

using bench::Family;

const Family& family_of(std::string_view name) {
  for (const Family* const family : {&bench::kConv, &bench::kProducts, &bench::kAttention})
    if (family->name == name) return *family;
  fail(ErrorCode::InvalidArgument, cat("'", name, "' is none of conv, products, attention"));
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

void measure(const Family& family, std::string_view precision, const char* path, const bench::Asked& asked) {
  std::ofstream out(path);
  out << "# " << cpu_name() << ": INFERNODE_CPU=" << to_string(cpu_rung()) << " bench_calibrate measure " << family.name
      << ' ' << precision << " TIMES " << asked.shapes << ' ' << asked.seed << (asked.methods.empty() ? "" : " ")
      << asked.methods << '\n';
  family.measure(cpu_rung(), precision_of(precision), asked, out);
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

/// The CPU and the commands in the comments of a file of times, which may be several files one after the other.
std::string commands_of(const char* times) {
  constexpr std::string_view kProgram = "bench_calibrate ";
  std::ifstream in = open(times);
  std::string commands;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('#')) continue;
    const std::size_t program = line.find(kProgram);
    if (commands.empty() || program == std::string::npos) {
      commands += line.substr(1);
    } else {
      commands += "; " + line.substr(program + kProgram.size());
    }
  }
  return commands;
}

void report(const bench::Regret& regret) {
  std::printf(
      "chooses methods %.3f times slower than the quickest (geometric mean of %zu), %.3f in all, worst %.2f: %s\n",
      regret.mean, regret.count, regret.in_all, regret.worst, regret.worst_shape.c_str());
  if (regret.units > 0)
    std::printf(
        "of which %zu of the matrix unit; %zu are slower by more than a tenth than with vectors, which take %.3f "
        "times as long in all\n",
        regret.units, regret.slower, regret.gain);
  if (regret.orders > 0)
    std::printf(
        "of %zu choices between orders of memory %zu are plain; %zu of those are slower by more than a tenth than in "
        "blocks; all take %.3f times as long as the quicker orders\n",
        regret.orders, regret.plain, regret.plain_slower, regret.in_all_orders);
}

void judge(const Family& family, std::string_view asked, const char* times, const bench::Margins& margins) {
  const CpuRung rung = rung_of_tables();
  const Float32Precision precision = precision_of(asked);
  std::map<std::string, cost::Terms> rates;
  for (const cost::Row& row : cost::table(rung, precision)) rates[std::string(row.method)] = row.rates;
  std::ifstream in = open(times);
  report(family.judge(rung, precision, in, rates, margins));
}

void fit(const Family& family, std::string_view asked, const char* times, const char* path, const char* others) {
  const CpuRung rung = rung_of_tables();
  const Float32Precision precision = precision_of(asked);
  std::ifstream in = open(times);
  std::map<std::string, cost::Terms> rates;
  write(path, commands_of(times), family.read(rung, precision, in), rates);
  std::ifstream again = open(others);
  report(family.judge(rung, precision, again, rates, {family.unit_margin}));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string_view what = count > 3 ? arguments[1] : "";
    if (what == "measure" && count > 4) {
      measure(family_of(arguments[2]), arguments[3], arguments[4],
              {.shapes = count > 5 ? std::strtoul(arguments[5], nullptr, 10) : 1000,
               .seed = static_cast<unsigned>(count > 6 ? std::strtoul(arguments[6], nullptr, 10) : 1),
               .methods = count > 7 ? arguments[7] : ""});
    } else if (what == "judge" && count > 4) {
      bench::Margins margins{family_of(arguments[2]).unit_margin};
      if (count > 5) margins.unit = std::strtod(arguments[5], nullptr);
      if (count > 6) margins.plain = std::strtod(arguments[6], nullptr);
      judge(family_of(arguments[2]), arguments[3], arguments[4], margins);
    } else if (what == "compare") {
      std::ifstream shapes = open(arguments[3]);
      bench::compare_conv(cpu_rung(), precision_of(arguments[2]), shapes, std::cout);
    } else if (what == "fit" && count > 5) {
      fit(family_of(arguments[2]), arguments[3], arguments[4], arguments[5], count > 6 ? arguments[6] : arguments[4]);
    } else {
      std::fprintf(stderr,
                   "usage: bench_calibrate measure FAMILY PRECISION TIMES [SHAPES] [SEED] [METHODS]\n"
                   "       bench_calibrate fit FAMILY PRECISION TIMES FILE [OTHER_TIMES]\n"
                   "       bench_calibrate judge FAMILY PRECISION TIMES [UNIT_MARGIN [PLAIN_MARGIN]]\n"
                   "       bench_calibrate compare PRECISION SHAPES\n"
                   "       FAMILY: conv, products, attention\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
