#include <algorithm>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/text/unicode.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
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
    std::vector<std::vector<std::string_view>> pieces(strings.size());
    ctx.parallel_for(strings.size(), 200, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        if (delimiter_.empty())
          split_at_whitespace(strings[i], pieces[i]);
        else
          split_at_delimiter(strings[i], pieces[i]);
      }
    });
    std::size_t longest = 0;
    for (const auto& p : pieces) longest = std::max(longest, p.size());

    Shape dims = in.shape();
    dims.push_back(static_cast<std::int64_t>(longest));
    std::string* out = ctx.output(0, DType::String, dims).mutable_data<std::string>();
    for (const auto& p : pieces) {
      std::fill(std::copy(p.begin(), p.end(), out), out + longest, std::string());
      out += longest;
    }
    if (!ctx.wants_output(1)) return;
    auto* counts = ctx.output(1, DType::Int64, in.shape()).mutable_data<std::int64_t>();
    for (const auto& p : pieces) *counts++ = static_cast<std::int64_t>(p.size());
  }

 private:
  void split_at_delimiter(std::string_view text, std::vector<std::string_view>& out) const {
    for (std::size_t found; out.size() < max_splits_ && (found = text.find(delimiter_)) != text.npos;) {
      out.push_back(text.substr(0, found));
      text.remove_prefix(found + delimiter_.size());
    }
    out.push_back(text);
  }

  void split_at_whitespace(std::string_view text, std::vector<std::string_view>& out) const {
    std::size_t begin = text.npos, solid_end = 0;  // of the piece being read; the end of what is no whitespace
    for (std::size_t at = 0; at < text.size();) {
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
