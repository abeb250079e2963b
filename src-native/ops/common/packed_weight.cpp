#include "ops/common/packed_weight.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/error.h"

namespace infernode::ops {

using microkernels::PackedOperand;

namespace {

/// From one operand to the next.
std::size_t stride_of(const PackedOperand& one) { return align_up(one.bytes, std::size_t{64}); }
std::size_t bytes_of(const PackedOperand& one, std::size_t count) {
  return count == 1 ? one.bytes : checked_mul(stride_of(one), count);
}

bool is_made_by(const PackedOperand& packed, std::string_view packing) {
  return packed.packing != nullptr && packed.packing == packing;
}

}  // namespace

PackedWeight::PackedWeight(const kernel::RunContext& run, const PackedOperand& one, std::size_t count,
                           std::size_t at_once,
                           FunctionRef<void(std::size_t, std::size_t, std::size_t, std::byte*)> fill)
    : one_(one), count_(count), memory_(run.allocator->allocate(bytes_of(one, count))) {
  constexpr double kNs = 2;  // of a number
  at_once = std::max<std::size_t>(1, at_once);
  const std::size_t parts = std::max<std::size_t>(1, ceil_div(one.n, at_once));
  const double cost = kNs * static_cast<double>(std::min(at_once, one.n)) * static_cast<double>(one.k);
  run.parallel_for(checked_mul(count, parts), cost, [&](std::size_t first, std::size_t last, std::size_t) {
    while (first < last) {
      const std::size_t i = first / parts, part = first % parts, end = std::min(parts, part + last - first);
      fill(i, part * at_once, std::min(one.n, end * at_once), memory_.data() + i * stride_of(one));
      first += end - part;
    }
  });
}

PackedWeight::PackedWeight(kernel::KernelInfo& info, std::size_t input, std::string_view what, const PackedOperand& one,
                           std::size_t count, FunctionRef<void(const tensor::Tensor&, std::size_t, std::byte*)> fill)
    : one_(one), count_(count) {
  const auto make = [&](const tensor::Tensor& weight) {
    tensor::Buffer memory = tensor::host_allocator().allocate(bytes_of(one, count));
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const to = memory.data() + i * stride_of(one);
      fill(weight, i, to);
      if (count > 1) std::fill(to + one.bytes, to + stride_of(one), std::byte{0});  // equal weights are equal bytes
    }
    return memory;
  };
  const std::string key =
      cat(what, ".", one.packing, ".", microkernels::to_string(one.form), ".", count, "x", one.n, "x", one.k);
  memory_ = info.packer().pack(info.node(), input, key, make);
  // One that comes from a file is taken only where it is whole: loops read all of it.
  if (memory_.size() < bytes_of(one, count)) memory_ = make(*info.constant(input));
}

bool PackedWeight::made_by(std::string_view packing) const { return is_made_by(one_, packing); }

PackedOperand PackedWeight::read(std::string_view packing, std::size_t i) const {
  check_packing(one_, packing);
  if (i >= count_) fail(ErrorCode::Internal, cat("operand ", i, " of ", count_, " that ", packing, " packed"));
  PackedOperand operand = one_;
  operand.data = memory_.data() + i * stride_of(one_);
  return operand;
}

void check_packing(const PackedOperand& packed, std::string_view packing) {
  if (is_made_by(packed, packing)) return;
  fail(ErrorCode::Internal, cat("weights that ", packed.packing == nullptr ? "nothing" : packed.packing, " packed as ",
                                microkernels::to_string(packed.form), " are read as ", packing, " packs them"));
}

}  // namespace infernode::ops
