// The written cases of operators (test/fixtures), changed: random shapes are refused at once by operators whose inputs
// must fit one another and their attributes, so these begin from inputs that do. Settings: campaign.h, and
// INFERNODE_FUZZ_OPERATOR names the only operator to take.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "fuzz/campaign.h"
#include "fuzz/models.h"

using namespace infernode;
using fuzz::Mutator;
using fuzz::setting;
using Stage = fuzz::Verdict::Stage;

namespace {

/// What no written case can run, by the beginning of "domain.name".
constexpr std::string_view kNeverRun[] = {
    "ai.onnx.preview.training.Gradient",  // refused whatever it is given
    "infernode.CopyTo",                   // between devices, which these sessions have none of
    "com.microsoft.EPContext",            // refused without the provider that wrote it
};

using Models = std::map<std::string, std::vector<std::string>>;

Models models_of_operators() {
  Models out = fuzz::written_models();
  const std::string only = setting("INFERNODE_FUZZ_OPERATOR", "");
  if (!only.empty()) std::erase_if(out, [&](const auto& entry) { return !entry.first.ends_with(only); });
  return out;
}

}  // namespace

TEST_CASE("every operator runs in a written case") {
  const auto engine = session::Engine::create(2);
  const Models models = fuzz::written_models();
  for (const kernel::OpSchema* schema : engine->registry().schemas()) {
    const std::string key = fuzz::key_of(schema->domain, schema->name);
    if (schema->deprecated || std::any_of(std::begin(kNeverRun), std::end(kNeverRun),
                                          [&](std::string_view start) { return key.starts_with(start); }))
      continue;
    CAPTURE(key);
    const auto found = models.find(key);
    CHECK_MESSAGE(found != models.end(), "extend the operator's test, test/native/ops/<family>/<name>.test.cpp, by ",
                  "EdgeCases (ops/written_cases.h) that have an answer");
    if (found == models.end()) continue;
    Mutator random({}, 1);
    fuzz::Verdict best;
    for (std::size_t i = 0; i < 400 && best.stage != Stage::Ran; ++i) {
      best = fuzz::try_model(engine, found->second[i % found->second.size()], random);
      CHECK(best.fault == "");
    }
    CHECK_MESSAGE(best.stage == Stage::Ran, best.error);
  }
}

TEST_CASE("written cases, changed, end in answers or in errors") {
  fuzz::Campaign campaign;
  Mutator mutator({}, static_cast<std::uint32_t>(std::stoul(setting("INFERNODE_FUZZ_SEED", "1"))));
  const Models models = models_of_operators();
  for (const auto& [op, own] : models)
    for (const std::string& model : own) mutator.learn(model);
  const long count = std::stol(setting("INFERNODE_FUZZ_COUNT", "3000"));
  std::map<std::string, long> answers;
  // Operators take turns: each is met as often as any other, however many cases it has.
  for (long tried = 0; tried < count && !models.empty();) {
    for (const auto& [op, own] : models) {
      if (tried++ == count) break;
      const long before = campaign.count(Stage::Ran);
      campaign.meet(mutator.mutate(own[mutator.below(own.size())]), mutator, op);
      answers[op] += campaign.count(Stage::Ran) - before;
    }
  }
  std::string none;
  for (const auto& [op, number] : answers)
    if (number == 0) none += cat(" ", op);
  if (!none.empty()) MESSAGE("without an answer in ", count / models.size(), " models each:", none);
  campaign.close();
  CHECK(campaign.count(Stage::Ran) > 0);
  CHECK(campaign.count(Stage::Failed) > 0);
}
