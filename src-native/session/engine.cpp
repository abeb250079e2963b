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

std::shared_ptr<Engine> Engine::create(std::size_t threads, ThreadHooks hooks) {
  std::shared_ptr<Engine> engine(new Engine());
  engine->rung_ = infernode::cpu_rung();
  provider::register_all(engine->providers_);
  provider::add_absent(engine->providers_);
  engine->weights_ = std::make_unique<runtime::WeightStore>();
  engine->pool_ = std::make_unique<ThreadPool>(threads == 0 ? available_cores() : threads,
                                               ThreadPoolOptions{.hooks = std::move(hooks)});
  return engine;
}

Engine::~Engine() = default;

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
