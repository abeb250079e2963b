#include "transform/transformation.h"

#include <algorithm>

#include "base/error.h"

namespace infernode::transform {

namespace {

constexpr Transformation kAll[] = {
    {"quantizeDynamic", quantize_dynamic},
    {"quantizeWeights", quantize_weights},
};

}  // namespace

std::span<const Transformation> transformations() { return kAll; }

const Transformation& find_transformation(std::string_view name) {
  const auto at = std::ranges::find(kAll, name, &Transformation::name);
  if (at == std::end(kAll)) fail(ErrorCode::InvalidArgument, cat("there is no transformation '", name, "'"));
  return *at;
}

}  // namespace infernode::transform
