#include "fuzz/campaign.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "fuzz/models.h"

namespace infernode::fuzz {

namespace fs = std::filesystem;

Campaign::Campaign() : engine_(session::Engine::create(2)), last_(setting("INFERNODE_FUZZ_LAST", "")) {
  const fs::path folder = fs::temp_directory_path() / cat("infernode-fuzz-", std::random_device{}());
  fs::create_directories(folder);
  std::ofstream(folder / kWeights, std::ios::binary) << std::string(kWeightBytes, '\0');
  folder_ = folder.string();
}

Campaign::~Campaign() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Campaign::meet(const std::string& model, Mutator& random, std::string_view what) {
  keep(model);
  const Verdict verdict = try_model(engine_, model, random, folder_);
  ++stages_[verdict.stage];
  if (verdict.fault.empty()) return;
  FAIL_CHECK(what, ": ", verdict.fault);
  if (!last_.empty()) fs::copy_file(last_, cat(last_, ".", ++faults_), fs::copy_options::overwrite_existing);
}

/// The file stays open: one that is emptied and closed for each model is written to the disk each time.
void Campaign::keep(const std::string& model) {
  if (last_.empty()) return;
  if (!file_.is_open()) file_.open(last_, std::ios::binary);
  file_.seekp(0);
  file_.write(model.data(), static_cast<std::streamsize>(model.size()));
  file_.flush();
  fs::resize_file(last_, model.size());
}

long Campaign::count(Verdict::Stage stage) const {
  const auto found = stages_.find(stage);
  return found == stages_.end() ? 0 : found->second;
}

void Campaign::close() {
  MESSAGE("refused ", count(Verdict::Stage::Refused), ", failed ", count(Verdict::Stage::Failed), ", ran ",
          count(Verdict::Stage::Ran));
}

}  // namespace infernode::fuzz
