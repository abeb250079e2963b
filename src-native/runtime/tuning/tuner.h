#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/plan/step.h"
#include "runtime/tuning/choice_file.h"
#include "runtime/tuning/trial.h"

namespace infernode::runtime {

/// Finds the quickest method of each node by running all of them, nodes of equal shapes once. What an operator can be
/// made with its registration says (kernel::OpBuilder::methods). Of one load, on its thread.
class Tuner {
 public:
  /// Nanoseconds since some moment.
  using Clock = std::function<double()>;
  static double steady_clock();

  /// `file`, where there is one, is asked before anything is measured. What is given outlives this.
  Tuner(ChoiceFile* file, const Logger& logger, Clock clock = steady_clock);

  /// Nullopt where the node has nothing to choose. Throws Aborted where the load was cancelled.
  std::optional<MethodChoice> choose(Trial& trial);
  /// How many nodes' methods were run, of different shapes.
  std::size_t measured() const { return measured_; }

 private:
  std::string measure(Trial& trial, const std::vector<std::string>& methods);
  /// Least time of a run; gives up where the method is far from `best`.
  double time(Trial& trial, const kernel::Kernel& kernel, double best) const;

  ChoiceFile* file_;
  const Logger& logger_;
  Clock clock_;
  std::map<std::string, MethodChoice, std::less<>> chosen_;  ///< by key
  std::size_t measured_ = 0;
};

}  // namespace infernode::runtime
