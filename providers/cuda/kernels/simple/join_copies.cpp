#include <algorithm>
#include <cstring>

#include "providers/cuda/kernels/params/movement.h"
#include "providers/cuda/kernels/simple/movement.h"

namespace infernode::cuda {

namespace {

constexpr std::string_view kFamily = "copy_";

/// Addresses [first, last).
struct Range {
  DevicePtr first = 0, last = 0;
  bool meets(const Range& other) const { return first < other.last && other.first < last; }
};

/// What a part touches at one of its ends.
Range range_of(const CopyPart& part, DevicePtr at, const std::int64_t (&strides)[kCopyRank], std::int64_t bytes) {
  std::int64_t low = 0, high = 1;
  for (std::int32_t d = 0; d < part.rank; ++d) {
    const std::int64_t reach = (std::int64_t{part.dims[d]} - 1) * strides[d];
    (reach < 0 ? low : high) += reach;
  }
  return {at + static_cast<DevicePtr>(low * bytes), at + static_cast<DevicePtr>(high * bytes)};
}

Range written(const CopyPart& part, std::int64_t bytes) { return range_of(part, part.to, part.to_stride, bytes); }
Range read(const CopyPart& part, std::int64_t bytes) {
  return part.from == 0 ? Range{} : range_of(part, part.from, part.from_stride, bytes);
}

CopyParams params_of(const Launch& launch) {
  CopyParams params;
  std::memcpy(&params, launch.params.data(), sizeof(params));
  return params;
}

bool can_hold(const Launch& first, const Launch& second) {
  return first.kernel == second.kernel && first.kernel.starts_with(kFamily) &&
         first.grid.y + second.grid.y <= kCopyParts;
}

bool meet(const Launch& first, const Launch& second) {
  const std::int64_t bytes = std::stoi(first.kernel.substr(kFamily.size()));
  const CopyParams before = params_of(first), after = params_of(second);
  for (std::uint32_t b = 0; b < second.grid.y; ++b) {
    const Range from = read(after.part[b], bytes), to = written(after.part[b], bytes);
    for (std::uint32_t a = 0; a < first.grid.y; ++a) {
      const Range own = written(before.part[a], bytes);
      if (own.meets(from) || own.meets(to) || read(before.part[a], bytes).meets(to)) return true;
    }
  }
  return false;
}

}  // namespace

bool add_copies(Launch& first, const Launch& second) {
  if (!can_hold(first, second)) return false;
  CopyParams all = params_of(first);
  const CopyParams added = params_of(second);
  std::copy_n(added.part, second.grid.y, all.part + first.grid.y);
  first.grid.x = std::max(first.grid.x, second.grid.x);
  first.grid.y += second.grid.y;
  first.params = param_bytes(all);
  return true;
}

bool join_copies(Launch& first, const Launch& second) {
  return can_hold(first, second) && !meet(first, second) && add_copies(first, second);
}

}  // namespace infernode::cuda
