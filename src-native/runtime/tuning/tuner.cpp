#include "runtime/tuning/tuner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>

#include "base/content_hash.h"

namespace infernode::runtime {

namespace {

/// Runs of a method: some, then as many as fit into a hundredth of a second.
constexpr int kLeastRuns = 3, kMostRuns = 50;
constexpr double kEnoughNanoseconds = 1e7;
/// A method that takes so many times as long as the best so far is not run again.
constexpr double kFar = 1.5;
/// The kernel's own choice stands unless another takes less than this part of its time: measurements differ by as much
/// from load to load.
constexpr double kClear = 0.97;

std::string key_of(const Trial& trial, const std::vector<std::string>& methods) {
  std::string facts = trial.facts();
  for (const std::string& method : methods) facts += cat("\n", method);
  return content_hash(std::as_bytes(std::span(facts))).to_string();
}

}  // namespace

double Tuner::steady_clock() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Tuner::Tuner(ChoiceFile* file, const Logger& logger, Clock clock)
    : file_(file), logger_(logger), clock_(std::move(clock)) {}

std::optional<MethodChoice> Tuner::choose(Trial& trial) {
  const std::vector<std::string> methods = trial.methods();
  if (methods.empty()) return std::nullopt;
  const std::string key = key_of(trial, methods);
  if (const auto found = chosen_.find(key); found != chosen_.end()) return found->second;
  MethodChoice choice;
  if (file_ != nullptr) choice = {std::string(file_->find(key)), MethodChoice::Source::kKept};
  if (!choice.method.empty() && std::ranges::find(methods, choice.method) == methods.end()) {
    logger_.write(LogSeverity::Warning, "tuning", trial.node().op_type, " has no method '", choice.method,
                  "', which a file says was the quickest: it is measured again");
    choice.method.clear();
  }
  if (choice.method.empty()) choice = {measure(trial, methods), MethodChoice::Source::kMeasured};
  if (file_ != nullptr) file_->keep(key, choice.method);
  return chosen_.emplace(key, std::move(choice)).first->second;
}

std::string Tuner::measure(Trial& trial, const std::vector<std::string>& methods) {
  ++measured_;
  std::string report;
  std::size_t quickest = 0;
  double best = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const double nanoseconds = time(trial, *trial.make(methods[i]), best);
    if (i == 0 || nanoseconds < best) {
      best = i == 0 ? nanoseconds * kClear : nanoseconds;
      quickest = i;
    }
    if (logger_.enabled(LogSeverity::Verbose)) report += cat(" ", methods[i], " ", nanoseconds / 1e3, " us,");
  }
  logger_.write(LogSeverity::Verbose, "tuning", trial.node().op_type, " '", trial.node().name, "':", report,
                " taken: ", methods[quickest]);
  return methods[quickest];
}

double Tuner::time(Trial& trial, const kernel::Kernel& kernel, double best) const {
  trial.run(kernel);  // brings code and memory to hand
  double least = std::numeric_limits<double>::max(), spent = 0;
  for (int i = 0; i < kMostRuns && (i < kLeastRuns || spent < kEnoughNanoseconds); ++i) {
    const double begin = clock_();
    trial.run(kernel);
    const double took = clock_() - begin;
    least = std::min(least, took);
    spent += took;
    if (least > kFar * best) break;
  }
  return least;
}

}  // namespace infernode::runtime
