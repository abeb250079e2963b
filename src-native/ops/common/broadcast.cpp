#include <algorithm>

#include "base/error.h"
#include "ops/common/broadcast.h"

namespace infernode::ops {

using tensor::Shape;

namespace {

/// Runs are cut into pieces of at most this many elements, so that one long run still splits over threads. A multiple
/// of most small numbers: pieces of a repeating plan hold whole rows.
constexpr std::int64_t kPiece = 20160;

}  // namespace

BroadcastPlan::BroadcastPlan(const Shape& out, std::initializer_list<const Shape*> inputs) : count_(inputs.size()) {
  if (count_ > kMaxInputs) fail(ErrorCode::Internal, "a broadcast of too many inputs");
  total_ = out.numel();
  std::array<Shape, kMaxInputs> strides;
  std::size_t k = 0;
  for (const Shape* in : inputs) strides[k++] = tensor::broadcast_strides(*in, out);

  // From the innermost dim outwards: a dim joins the one inside it where all inputs go on in the same manner.
  InlineVector<std::int64_t, 6> dims;
  std::array<InlineVector<std::int64_t, 6>, kMaxInputs> steps;
  for (std::size_t axis = out.rank(); axis-- > 0;) {
    if (out[axis] == 1) continue;
    bool joins = !dims.empty();
    for (k = 0; k < count_ && joins; ++k) joins = strides[k][axis] == steps[k].back() * dims.back();
    if (joins) {
      dims.back() *= out[axis];
      continue;
    }
    dims.push_back(out[axis]);
    for (k = 0; k < count_; ++k) steps[k].push_back(strides[k][axis]);
  }
  if (dims.empty()) {
    dims.push_back(1);
    for (k = 0; k < count_; ++k) steps[k].push_back(0);
  }
  inner_ = dims[0];
  for (k = 0; k < count_; ++k) inner_still_[k] = steps[k][0] == 0;
  for (std::size_t d = dims.size(); d-- > 1;) {
    dims_.push_back(dims[d]);
    rows_ *= dims[d];
    for (k = 0; k < count_; ++k) strides_[k].push_back(steps[k][d]);
  }
}

std::optional<BroadcastPlan> BroadcastPlan::repeating(std::size_t k) const {
  constexpr std::int64_t kShort = 64;
  if (total_ == 0 || dims_.empty() || inner_ > kShort || kPiece % inner_ != 0) return std::nullopt;
  for (std::size_t i = 0; i < count_; ++i) {
    if (inner_still_[i] || strides_[i].back() != (i == k ? 0 : inner_)) return std::nullopt;
  }
  BroadcastPlan longer = *this;
  longer.inner_ *= dims_.back();
  longer.rows_ /= dims_.back();
  longer.inner_still_[k] = true;
  longer.dims_.pop_back();
  for (std::size_t i = 0; i < count_; ++i) longer.strides_[i].pop_back();
  return longer;
}

void BroadcastPlan::for_each_run(const kernel::RunContext& run, double cost_ns,
                                 FunctionRef<void(std::size_t, const std::size_t*, std::size_t)> f) const {
  if (total_ == 0) return;
  const std::int64_t piece = std::min(inner_, kPiece);
  const std::int64_t pieces = (inner_ + piece - 1) / piece;
  run.parallel_for(static_cast<std::size_t>(rows_ * pieces), cost_ns * static_cast<double>(piece) + 2.0,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     const std::size_t outer = dims_.size();
                     std::int64_t row = static_cast<std::int64_t>(begin) / pieces;
                     std::int64_t part = static_cast<std::int64_t>(begin) % pieces;
                     InlineVector<std::int64_t, 6> index(outer, 0);
                     std::array<std::int64_t, kMaxInputs> at{};
                     for (std::int64_t rest = row, d = static_cast<std::int64_t>(outer); d-- > 0;) {
                       const auto axis = static_cast<std::size_t>(d);
                       index[axis] = rest % dims_[axis];
                       rest /= dims_[axis];
                       for (std::size_t k = 0; k < count_; ++k) at[k] += index[axis] * strides_[k][axis];
                     }
                     for (std::size_t item = begin; item < end; ++item) {
                       const std::int64_t first = part * piece, n = std::min(piece, inner_ - first);
                       std::array<std::size_t, kMaxInputs> in;
                       for (std::size_t k = 0; k < count_; ++k)
                         in[k] = static_cast<std::size_t>(at[k] + (inner_still_[k] ? 0 : first));
                       f(static_cast<std::size_t>(row * inner_ + first), in.data(), static_cast<std::size_t>(n));
                       if (++part < pieces) continue;
                       part = 0;
                       ++row;
                       for (std::size_t d = outer; d-- > 0;) {
                         for (std::size_t k = 0; k < count_; ++k) at[k] += strides_[k][d];
                         if (++index[d] < dims_[d]) break;
                         for (std::size_t k = 0; k < count_; ++k) at[k] -= strides_[k][d] * dims_[d];
                         index[d] = 0;
                       }
                     }
                   });
}

Shape LegacyBroadcast::align(const Shape& a, const Shape& b) const {
  if (a == b) return b;
  const auto bad = [&] {
    fail(ErrorCode::ShapeMismatch,
         cat("shape ", b.to_string(), " does not fit into ", a.to_string(), enabled_ ? "" : " without broadcast=1"));
  };
  if (!enabled_) bad();
  const auto rank = static_cast<std::int64_t>(a.rank()), inner = static_cast<std::int64_t>(b.rank());
  if (b.numel() == 1 && inner <= rank) return b;
  std::int64_t axis = axis_ == INT64_MIN ? rank - inner : axis_;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank - inner) bad();
  Shape out = b;
  out.resize(static_cast<std::size_t>(rank - axis), 1);
  for (std::size_t i = 0; i < out.rank(); ++i) {
    if (out[i] != 1 && out[i] != a[static_cast<std::size_t>(axis) + i]) bad();
  }
  return out;
}

}  // namespace infernode::ops
