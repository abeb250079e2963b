#pragma once

#include <set>
#include <string>
#include <string_view>

namespace infernode::passes {

/// Adds the name of a pass or fusion to `names`; one that only onnxruntime has adds what does here what that one does
/// there. Names that neither has are added as they are.
void add_optimizer(std::set<std::string, std::less<>>& names, std::string_view name);

}  // namespace infernode::passes
