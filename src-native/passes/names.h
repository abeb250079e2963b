#pragma once

#include <set>
#include <string>
#include <string_view>

namespace infernode::passes {

/// Adds the name of a pass or fusion to `names`. A name that onnxruntime alone has stands for those of ours that make
/// the same rewrites. Names that neither has are added as they are.
void add_optimizer(std::set<std::string, std::less<>>& names, std::string_view name);

}  // namespace infernode::passes
