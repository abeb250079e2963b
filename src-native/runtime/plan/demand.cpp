#include "runtime/plan/demand.h"

#include "runtime/plan/step.h"

namespace infernode::runtime {

using graph::kNoValue;
using graph::ValueId;

std::shared_ptr<Demand> make_demand(const graph::Graph& graph, std::span<const Step> steps,
                                    const std::vector<bool>& outputs) {
  const auto index = [](ValueId id) { return static_cast<std::size_t>(id); };
  auto made = std::make_shared<Demand>();
  made->outputs = outputs;
  made->steps.resize(steps.size());
  made->wanted.resize(steps.size());
  std::vector<bool> read(graph.values().size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) read[index(graph.outputs()[i])] = true;
  }
  for (std::size_t s = steps.size(); s-- > 0;) {
    const Step& step = steps[s];
    made->wanted[s] = std::make_unique<bool[]>(step.outputs.size());
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      made->wanted[s][o] = step.outputs[o] != kNoValue && read[index(step.outputs[o])];
      if (made->wanted[s][o]) made->steps[s] = true;
    }
    if (!made->steps[s]) continue;
    for (const auto* inputs : {&step.inputs, &step.implicit}) {
      for (const ValueId id : *inputs) {
        if (id != kNoValue) read[index(id)] = true;
      }
    }
  }
  return made;
}

}  // namespace infernode::runtime
