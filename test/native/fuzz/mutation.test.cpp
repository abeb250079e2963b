// Whatever a model says, loading and running it ends in an answer or in an Error that blames the model. The bounded run
// here takes the seeds of seeds.h; by hand, for longer and with other seeds:
//   INFERNODE_FUZZ_MODELS=<folder of .onnx files> INFERNODE_FUZZ_COUNT=100000 INFERNODE_FUZZ_SEED=7
//   INFERNODE_FUZZ_LAST=<file that gets each model before it is tried> test_fuzz
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "fuzz/models.h"
#include "fuzz/seeds.h"
#include "fuzz/trial.h"

using namespace infernode;
using fuzz::setting;

namespace {

std::vector<std::string> operators(const session::Engine& engine) {
  std::vector<std::string> out;
  for (const kernel::OpSchema* schema : engine.registry().schemas())
    if (out.empty() || out.back() != schema->name) out.push_back(schema->name);
  return out;
}

}  // namespace

TEST_CASE("seed models load and run") {
  const auto engine = session::Engine::create(2);
  for (const std::string_view text : fuzz::kSeeds) {
    CAPTURE(text);
    fuzz::Mutator random({}, 1);
    fuzz::Verdict best;
    for (int i = 0; i < 40 && best.stage != fuzz::Verdict::Stage::Ran; ++i) {
      best = fuzz::try_model(engine, fuzz::from_text(text), random);
      CHECK(best.fault == "");
    }
    CHECK_MESSAGE(best.stage == fuzz::Verdict::Stage::Ran, best.error);
  }
}

TEST_CASE("changed models end in answers or in errors") {
  const auto engine = session::Engine::create(2);
  const std::vector<std::string> models = fuzz::seed_models();
  fuzz::Mutator mutator(operators(*engine),
                        static_cast<std::uint32_t>(std::stoul(setting("INFERNODE_FUZZ_SEED", "1"))));
  for (const std::string& model : models) mutator.learn(model);
  const std::string last = setting("INFERNODE_FUZZ_LAST", "");
  std::map<fuzz::Verdict::Stage, int> stages;
  for (long count = std::stol(setting("INFERNODE_FUZZ_COUNT", "3000")); count > 0; --count) {
    const std::string model = mutator.mutate(models[mutator.below(models.size())]);
    if (!last.empty()) std::ofstream(last, std::ios::binary) << model;
    const fuzz::Verdict verdict = fuzz::try_model(engine, model, mutator);
    ++stages[verdict.stage];
    if (verdict.fault.empty()) continue;
    FAIL_CHECK(verdict.fault);
    if (!last.empty())
      std::filesystem::copy_file(last, cat(last, ".", count), std::filesystem::copy_options::overwrite_existing);
  }
  MESSAGE("refused ", stages[fuzz::Verdict::Stage::Refused], ", failed ", stages[fuzz::Verdict::Stage::Failed],
          ", ran ", stages[fuzz::Verdict::Stage::Ran]);
  // Changes that the loader always refuses would test no kernel.
  CHECK(stages[fuzz::Verdict::Stage::Ran] > 0);
  CHECK(stages[fuzz::Verdict::Stage::Failed] > 0);
}
