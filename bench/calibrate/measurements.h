#pragma once
// What the families of calibrate have in common: lines of times, and how good a choice by rates is.

#include <algorithm>
#include <cmath>
#include <istream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "calibrate/families.h"

namespace infernode::bench {

/// The times of a shape's methods, by rows of the table.
template <class Shape>
struct Measured {
  Shape shape;
  std::map<std::string, double> times;
};

/// Lines of a shape, a row's name and nanoseconds; those of one shape follow one another.
template <class Shape>
std::vector<Measured<Shape>> read_measured(std::istream& in) {
  std::vector<Measured<Shape>> list;
  std::string line, before;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Measured<Shape> m;
    std::string name;
    double taken = 0;
    if (!(words >> m.shape >> name >> taken)) fail(ErrorCode::InvalidArgument, cat("not a measurement: ", line));
    std::ostringstream key;
    key << m.shape;
    if (list.empty() || key.str() != before) list.push_back(m);
    before = key.str();
    list.back().times[name] = taken;
  }
  return list;
}

/// Which of a shape's methods is expected to be the quickest, and what it took beside the quickest.
struct Choice {
  Choice() = default;
  explicit Choice(double unit_margin) : margin(unit_margin) {}

  double margin = 1;  ///< methods of the matrix unit compete at this many times what is expected of them
  double expected = 1e18, taken = 0, best = 1e18;
  std::string name;
  bool unit = false;
  double vectors_expected = 1e18, vectors_taken = 0;  ///< of those without the matrix unit

  void consider(const std::string& row, double expected_ns, double taken_ns, bool of_unit = false) {
    if (of_unit) expected_ns *= margin;
    best = std::min(best, taken_ns);
    if (!of_unit && expected_ns < vectors_expected) {
      vectors_expected = expected_ns;
      vectors_taken = taken_ns;
    }
    if (expected_ns >= expected) return;
    expected = expected_ns;
    taken = taken_ns;
    name = row;
    unit = of_unit;
  }
};

/// The regret of many choices.
class Regrets {
 public:
  template <class Shape>
  void add(const Shape& shape, const Choice& choice) {
    if (choice.taken == 0) return;  // nothing to choose
    const double times = choice.taken / choice.best;
    logs_ += std::log(times);
    chosen_ += choice.taken;
    best_ += choice.best;
    ++regret_.count;
    if (choice.unit) ++regret_.units;
    if (choice.vectors_taken > 0) {
      if (choice.taken > 1.1 * choice.vectors_taken) ++regret_.slower;
      taken_ += choice.taken;
      vectors_taken_ += choice.vectors_taken;
    }
    if (times <= regret_.worst) return;
    regret_.worst = times;
    std::ostringstream text;
    text << shape << " by " << choice.name;
    regret_.worst_shape = text.str();
  }
  Regret result() const {
    Regret all = regret_;
    if (best_ > 0) all.in_all = chosen_ / best_;
    if (taken_ > 0) all.gain = vectors_taken_ / taken_;
    all.mean = std::exp(logs_ / static_cast<double>(std::max<std::size_t>(1, all.count)));
    return all;
  }

 private:
  Regret regret_;
  double logs_ = 0, chosen_ = 0, best_ = 0, taken_ = 0, vectors_taken_ = 0;
};

}  // namespace infernode::bench
