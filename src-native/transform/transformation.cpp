#include "transform/transformation.h"

#include <algorithm>

#include "base/error.h"

namespace infernode::transform {

namespace {

constexpr Transformation kAll[] = {
    {"observeTensors", observe_tensors},
    {"quantizeDynamic", quantize_dynamic},
    {"quantizeStatic", quantize_static},
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
