// Whatever a model says, loading and running it ends in an answer or in an Error that blames the model. The bounded run
// here takes the seeds of seeds.h; `npm run fuzz` goes on for longer, with other seeds. Settings: campaign.h.
#include <doctest/doctest.h>

#include <iterator>

#include "fuzz/campaign.h"
#include "fuzz/models.h"
#include "fuzz/seeds.h"

using namespace infernode;
using fuzz::Campaign;
using fuzz::Mutator;
using fuzz::setting;
using Stage = fuzz::Verdict::Stage;

namespace {

std::vector<std::string> operators(const session::Engine& engine) {
  std::vector<std::string> out;
  for (const kernel::OpSchema* schema : engine.registry().schemas())
    if (out.empty() || out.back() != schema->name) out.push_back(schema->name);
  return out;
}

/// Models, each changed by a member of Mutator before it is tried.
void meet_changed(Campaign& campaign, const std::vector<std::string>& models,
                  std::string (Mutator::*change)(std::string_view)) {
  Mutator mutator(operators(*campaign.engine()),
                  static_cast<std::uint32_t>(std::stoul(setting("INFERNODE_FUZZ_SEED", "1"))));
  for (const std::string& model : fuzz::seed_models()) mutator.learn(model);
  for (long left = std::stol(setting("INFERNODE_FUZZ_COUNT", "3000")); left > 0; --left)
    campaign.meet((mutator.*change)(models[mutator.below(models.size())]), mutator, "a changed model");
  campaign.close();
}

}  // namespace

TEST_CASE("seed models load and run") {
  const auto engine = session::Engine::create(2);
  for (const std::string_view text : fuzz::kSeeds) {
    CAPTURE(text);
    Mutator random({}, 1);
    fuzz::Verdict best;
    for (int i = 0; i < 400 && best.stage != Stage::Ran; ++i) {
      best = fuzz::try_model(engine, fuzz::from_text(text), random);
      CHECK(best.fault == "");
    }
    CHECK_MESSAGE(best.stage == Stage::Ran, best.error);
  }
}

TEST_CASE("seed models in ORT format load and run") {
  const auto engine = session::Engine::create(2);
  const std::vector<std::string> models = fuzz::ort_models(engine);
  CHECK(models.size() >= 2 * std::size(fuzz::kSeeds) * 9 / 10);
  for (const std::string& model : models) {
    Mutator random({}, 1);
    fuzz::Verdict best;
    for (int i = 0; i < 400 && best.stage != Stage::Ran; ++i) {
      best = fuzz::try_model(engine, model, random);
      CHECK(best.fault == "");
    }
    CHECK_MESSAGE(best.stage == Stage::Ran, best.error);
  }
}

TEST_CASE("changed models end in answers or in errors") {
  Campaign campaign;
  meet_changed(campaign, fuzz::seed_models(), &Mutator::mutate);
  // Changes that the loader always refuses would test no kernel.
  CHECK(campaign.count(Stage::Ran) > 0);
  CHECK(campaign.count(Stage::Failed) > 0);
}

TEST_CASE("changed models in ORT format end in answers or in errors") {
  Campaign campaign;
  meet_changed(campaign, fuzz::ort_models(campaign.engine()), &Mutator::bend);
  CHECK(campaign.count(Stage::Ran) > 0);
  CHECK(campaign.count(Stage::Failed) > 0);
}

TEST_CASE("torn models end in answers or in errors") {
  Campaign campaign;
  std::vector<std::string> models = fuzz::seed_models();
  for (std::string& model : fuzz::ort_models(campaign.engine())) models.push_back(std::move(model));
  meet_changed(campaign, models, &Mutator::tear);
  CHECK(campaign.count(Stage::Refused) > 0);
  CHECK(campaign.count(Stage::Ran) > 0);
}
