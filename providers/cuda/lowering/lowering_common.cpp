#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {

LoweringTable::LoweringTable() {
  register_all(all_);
  for (const Lowering& lowering : all_) by_name_.emplace(std::pair{lowering.domain, lowering.op}, &lowering);
}

const Lowering* LoweringTable::find(const graph::Node& node) const {
  const auto at = by_name_.find(std::pair<std::string_view, std::string_view>(node.domain, node.op_type));
  return at == by_name_.end() ? nullptr : at->second;
}

bool LoweringTable::can_run(const NodeView& view) const {
  const Lowering* lowering = find(view.node());
  return lowering != nullptr && lowering->can_run(view);
}

}  // namespace infernode::cuda
