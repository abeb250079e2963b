#include <algorithm>

#include "base/error.h"
#include "ops/common/arguments.h"

namespace infernode::ops {

using graph::Dim;
using tensor::DType;

Ints read_ints(const tensor::Tensor& tensor) {
  Ints out;
  out.reserve(static_cast<std::size_t>(tensor.numel()));
  if (tensor.dtype() == DType::Int64) {
    out.append(tensor.span<std::int64_t>());
  } else {
    for (std::int64_t v : tensor::to_int64_vector(tensor)) out.push_back(v);
  }
  return out;
}

Ints normalize_axes(std::span<const std::int64_t> axes, std::size_t rank, const char* what) {
  Ints out;
  for (std::int64_t axis : axes) {
    const auto a = static_cast<std::int64_t>(tensor::normalize_axis(axis, rank, what));
    INFERNODE_CHECK(std::find(out.begin(), out.end(), a) == out.end(), ErrorCode::InvalidArgument, what, " ", axis,
                    " is given twice in ", axes);
    out.push_back(a);
  }
  return out;
}

IntsArgument::IntsArgument(kernel::KernelInfo& info, std::string_view name, std::size_t input) : input_(input) {
  if (!name.empty() && info.attributes().has(name)) {
    const auto values = info.attributes().get_ints(name);
    fixed_.emplace(std::span<const std::int64_t>(values));
  } else if (info.has_input(input)) {
    if (const tensor::Tensor* constant = info.constant(input)) fixed_ = read_ints(*constant);
  }
}

std::optional<Ints> IntsArgument::read(const kernel::KernelContext& ctx) const {
  if (fixed_) return fixed_;
  if (const tensor::Tensor* t = ctx.optional_input(input_)) return read_ints(*t);
  return std::nullopt;
}

Ints IntsArgument::required(const kernel::KernelContext& ctx, const char* what) const {
  std::optional<Ints> out = read(ctx);
  INFERNODE_CHECK(out, ErrorCode::InvalidModel, "the node says nothing of its ", what);
  return std::move(*out);
}

InferredInts infer_ints(const kernel::InferContext& ctx, std::string_view attribute, std::size_t input) {
  InferredInts out;
  if (!attribute.empty() && ctx.attributes().has(attribute)) {
    const auto values = ctx.attributes().get_ints(attribute);
    out.given = true;
    out.values.emplace(std::span<const std::int64_t>(values));
    return out;
  }
  if (!ctx.has_input(input)) return out;
  out.given = true;
  if (const tensor::Tensor* constant = ctx.input_constant(input)) {
    out.values = read_ints(*constant);
  } else if (const auto contents = ctx.input_contents(input)) {
    Ints values;
    for (const Dim& d : *contents) {
      if (!d.known()) return out;
      values.push_back(d.value());
    }
    out.values = std::move(values);
  }
  return out;
}

graph::SymShape unknown_shape(std::size_t rank) {
  graph::SymShape out;
  out.reserve(rank);
  for (std::size_t i = 0; i < rank; ++i) out.push_back(Dim::unknown());
  return out;
}

Dim merge_dims(const Dim& a, const Dim& b, const char* what) {
  if (!a.known()) return b.known() || a.symbol_name().empty() ? b : a;
  INFERNODE_CHECK(!b.known() || a.value() == b.value(), ErrorCode::ShapeMismatch, what, ": dims ", a.value(), " and ",
                  b.value(), " differ");
  return a;
}

void infer_same_contents(kernel::InferContext& ctx) {
  if (auto contents = ctx.input_contents(0)) ctx.set_output_contents(0, std::move(*contents));
}

}  // namespace infernode::ops
