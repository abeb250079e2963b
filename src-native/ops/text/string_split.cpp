#include <algorithm>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/mover.h"
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

/// Pieces of each string, found once to count them and once to copy them, padded with empty strings along a new last
/// axis, and how many there are. Without a delimiter runs of whitespace separate and those at both ends are dropped,
/// also from what maxsplit leaves whole.
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
    const Tensor given = ctx.wants_output(1) ? ctx.output(1, DType::Int64, in.shape())
                                             : Tensor::make(DType::Int64, in.shape(), *ctx.run().allocator);
    auto* counts = given.mutable_data<std::int64_t>();
    ctx.parallel_for(strings.size(), kNsPerString, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        counts[i] = 0;
        split(strings[i], look, [&](std::string_view) { ++counts[i]; });
      }
    });
    kernel::Watch watch(ctx.run());
    std::int64_t longest = 0;
    each_in_pieces(watch, strings.size(), 0.5, [&](std::size_t i) { longest = std::max(longest, counts[i]); });

    Shape dims = in.shape();
    dims.push_back(longest);
    std::string* const out = ctx.output(0, DType::String, dims).mutable_data<std::string>();
    const auto width = static_cast<std::size_t>(longest);
    ctx.parallel_for(strings.size(), kNsPerString + 50.0 * static_cast<double>(width),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       Mover mover(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         std::string* to = out + i * width;
                         split(strings[i], look, [&](std::string_view piece) {
                           to->clear();
                           mover.append(*to++, piece);
                         });
                         mover.fill(to, longest - counts[i], std::string());
                       }
                     });
  }

 private:
  static constexpr double kNsPerString = 200;

  /// Calls f with each piece.
  template <class F>
  void split(std::string_view text, Look look, F&& f) const {
    if (delimiter_.empty()) {
      split_at_whitespace(text, look, f);
    } else {
      split_at_delimiter(text, look, f);
    }
  }

  template <class F>
  void split_at_delimiter(std::string_view text, Look look, F& f) const {
    TextWatch watch(look);
    const std::string_view all = text;
    std::size_t splits = 0;
    for (std::size_t found; splits < max_splits_ && (found = find_text(text, delimiter_, look)) != text.npos;
         ++splits) {
      f(text.substr(0, found));
      text.remove_prefix(found + delimiter_.size());
      watch.at(all.size() - text.size());
    }
    f(text);
  }

  template <class F>
  void split_at_whitespace(std::string_view text, Look look, F& f) const {
    std::size_t begin = text.npos, solid_end = 0;  // of the piece being read; the end of what is no whitespace
    std::size_t splits = 0;
    TextWatch watch(look);
    for (std::size_t at = 0; at < text.size();) {
      watch.at(at);
      const std::size_t here = at;
      const bool space = text::is_space(text::next_code_point(text, at));
      if (!space) {
        solid_end = at;
        if (begin == text.npos) begin = here;
      } else if (begin != text.npos && splits < max_splits_) {
        f(text.substr(begin, here - begin));
        ++splits;
        begin = text.npos;
      }
    }
    if (begin != text.npos) f(text.substr(begin, solid_end - begin));
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
