#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "fuzz/trial.h"

namespace infernode::fuzz {

/// Tries models one after another and counts the outcomes. Settings of the environment:
///   INFERNODE_FUZZ_COUNT   models of a test case (of operators.test.cpp: of each version of an operator)
///   INFERNODE_FUZZ_SEED    of all that is drawn
///   INFERNODE_FUZZ_MODELS  a folder of .onnx files to take in place of the models of seeds.h
///   INFERNODE_FUZZ_LAST    a file that gets each model before it is tried; those with faults are kept beside it
class Campaign {
 public:
  Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;
  ~Campaign();  ///< removes its folder

  /// A fault fails the test case and is reported with `what`.
  void meet(const std::string& model, Mutator& random, std::string_view what);
  /// Reports the counts.
  void close();

  const std::shared_ptr<session::Engine>& engine() const { return engine_; }
  long count(Verdict::Stage stage) const;

 private:
  void keep(const std::string& model);

  std::shared_ptr<session::Engine> engine_;
  std::string folder_, last_;
  std::ofstream file_;
  std::map<Verdict::Stage, long> stages_;
  int faults_ = 0;
};

}  // namespace infernode::fuzz
