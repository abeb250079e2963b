#include "session/engine.h"

#include <utility>

#include "base/cpu_features.h"
#include "base/system.h"
#include "passes/fusions.h"
#include "provider/absent.h"

namespace infernode::ops {
void register_all(kernel::OpRegistrar& registrar);
}

namespace infernode::session {

namespace {

/// One computes alone what its loops cannot share while another's loops have the other threads.
constexpr std::size_t kRunsPerThread = 2;
/// However many runs a user asks for.
constexpr std::size_t kMostRunners = 1024;

}  // namespace

std::shared_ptr<Engine> Engine::create(std::size_t threads, ThreadHooks hooks) {
  std::shared_ptr<Engine> engine(new Engine());
  engine->rung_ = infernode::cpu_rung();
  provider::register_all(engine->providers_);
  provider::add_absent(engine->providers_);
  engine->weights_ = std::make_unique<runtime::WeightStore>();
  engine->pool_ =
      std::make_unique<ThreadPool>(threads == 0 ? available_cores() : threads,
                                   ThreadPoolOptions{.max_runners = kMostRunners, .hooks = std::move(hooks)});
  engine->lanes_ = std::make_unique<TaskLanes>(*engine->pool_, kRunsPerThread * engine->pool_->size());
  return engine;
}

Engine::~Engine() = default;

void Engine::set_concurrent_runs(std::size_t most) {
  lanes_->set_most(most != 0 ? most : kRunsPerThread * pool_->size());
}

void Engine::prepare() noexcept {
  if (pool_->size() < 2) return;
  try {
    pool_->submit([this] {
      registry();
      fusions();
    });
  } catch (...) {  // no thread to be had
  }
}

const kernel::Registry& Engine::registry() const {
  return registry_.get([] {
    auto made = std::make_unique<kernel::Registry>();
    kernel::OpRegistrar registrar(*made);
    ops::register_all(registrar);
    return made;
  });
}

const passes::Fusions& Engine::fusions() const {
  return fusions_.get([this] { return std::make_unique<const passes::Fusions>(registry()); });
}

const provider::ProviderFactory* Engine::find_provider(std::string_view name) const {
  for (const provider::ProviderFactory& factory : providers_) {
    if (factory.name == name) return &factory;
  }
  return nullptr;
}

}  // namespace infernode::session
