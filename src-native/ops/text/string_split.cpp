#include <algorithm>

#include "base/checked.h"
#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/long_text.h"
#include "ops/text/unicode.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::CountedVector;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

void infer_string_split(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::String);
  ctx.set_output_dtype(1, DType::Int64);
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  SymShape out = *in;
  out.push_back(Dim::unknown());
  ctx.set_output_shape(0, std::move(out));
  ctx.set_output_shape(1, *in);
}

/// Pieces of each string, padded with empty strings along a new last axis, and how many there are. Without a delimiter
/// runs of whitespace separate and those at both ends are dropped, also from what maxsplit leaves whole.
class StringSplit final : public Kernel {
 public:
  explicit StringSplit(KernelInfo& info) : delimiter_(info.attributes().get_string("delimiter", "")) {
    const std::int64_t most = info.attributes().get_int("maxsplit", -1);
    if (most >= 0) max_splits_ = checked_cast<std::size_t>(most);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const auto strings = in.span<std::string>();
    const auto look = [&] { ctx.run().check(); };
    CountedVector<Pieces> pieces(strings.size(), Pieces(ctx.run()), ctx.run());
    ctx.parallel_for(strings.size(), 200, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        if (delimiter_.empty())
          split_at_whitespace(strings[i], pieces[i], look);
        else
          split_at_delimiter(strings[i], pieces[i], look);
      }
    });
    std::size_t longest = 0;
    for (const auto& p : pieces) longest = std::max(longest, p.size());

    Shape dims = in.shape();
    dims.push_back(static_cast<std::int64_t>(longest));
    std::string* out = ctx.output(0, DType::String, dims).mutable_data<std::string>();
    kernel::Watch watch(ctx.run());
    for (const auto& p : pieces) {
      for (std::size_t i = 0; i < longest; ++i, ++out) {
        watch.did(20);
        out->clear();
        if (i < p.size()) append_text(*out, p[i], look);
      }
    }
    if (!ctx.wants_output(1)) return;
    auto* counts = ctx.output(1, DType::Int64, in.shape()).mutable_data<std::int64_t>();
    for (const auto& p : pieces) *counts++ = static_cast<std::int64_t>(p.size());
  }

 private:
  using Pieces = CountedVector<std::string_view>;

  void split_at_delimiter(std::string_view text, Pieces& out, Look look) const {
    TextWatch watch(look);
    const std::string_view all = text;
    for (std::size_t found; out.size() < max_splits_ && (found = find_text(text, delimiter_, look)) != text.npos;) {
      out.push_back(text.substr(0, found));
      text.remove_prefix(found + delimiter_.size());
      watch.at(all.size() - text.size());
    }
    out.push_back(text);
  }

  void split_at_whitespace(std::string_view text, Pieces& out, Look look) const {
    std::size_t begin = text.npos, solid_end = 0;  // of the piece being read; the end of what is no whitespace
    TextWatch watch(look);
    for (std::size_t at = 0; at < text.size();) {
      watch.at(at);
      const std::size_t here = at;
      const bool space = text::is_space(text::next_code_point(text, at));
      if (!space) {
        solid_end = at;
        if (begin == text.npos) begin = here;
      } else if (begin != text.npos && out.size() < max_splits_) {
        out.push_back(text.substr(begin, here - begin));
        begin = text.npos;
      }
    }
    if (begin != text.npos) out.push_back(text.substr(begin, solid_end - begin));
  }

  std::string delimiter_;
  std::size_t max_splits_ = SIZE_MAX;
};

}  // namespace

void register_string_split(kernel::OpRegistrar& r) {
  r.op("StringSplit")
      .version(20, "X:T1 -> Y:T2, Z:T3; T1 = string, T2 = string, T3 = int64")
      .infer(infer_string_split)
      .kernel<StringSplit>();
}

}  // namespace infernode::ops
