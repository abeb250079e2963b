#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/long_text.h"
#include "ops/text/unicode.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

void infer_string_normalizer(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::String);
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const bool row = in->size() == 2;
  INFERNODE_CHECK((in->size() == 1 || row) && !(row && (*in)[0].known() && !(*in)[0].is(1)), ErrorCode::ShapeMismatch,
                  "the input must be [C] or [1,C], got ", graph::to_string(*in));
  const Dim& count = in->back();
  const bool keeps_all = ctx.attributes().get_strings("stopwords").empty() && count.known() && count.value() > 0;
  const Dim kept = keeps_all ? count : Dim::unknown();
  ctx.set_output_shape(0, row ? SymShape{1, kept} : SymShape{kept});
}

/// Drops the strings that are stop words, then changes the case of the others. `locale` is accepted and ignored: the
/// mappings are Unicode's simple ones, alike everywhere.
class StringNormalizer final : public Kernel {
 public:
  explicit StringNormalizer(KernelInfo& info)
      : case_sensitive_(info.attributes().get_int("is_case_sensitive", 0) != 0) {
    const std::string action = info.attributes().get_string("case_change_action", "NONE");
    if (action == "UPPER")
      map_ = text::to_upper;
    else if (action == "LOWER")
      map_ = text::to_lower;
    else
      INFERNODE_CHECK(action == "NONE", ErrorCode::InvalidModel,
                      "case_change_action must be LOWER, UPPER or NONE, got \"", action, "\"");
    for (std::string& word : info.attributes().get_strings("stopwords")) {
      stop_words_.emplace(case_sensitive_ ? std::move(word) : text::map_characters(word, text::fold_case, [] {}), {});
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() == 1 || (in.rank() == 2 && in.dim(0) == 1), ErrorCode::ShapeMismatch,
                    "the input must be [C] or [1,C], got ", in.shape().dims());
    const auto look = [&] { ctx.run().check(); };
    kernel::Watch watch(ctx.run());
    kernel::CountedVector<const std::string*> kept(ctx.run());
    kept.reserve(static_cast<std::size_t>(in.numel()));
    for (const std::string& s : in.span<std::string>()) {
      watch.did(100);
      if (!is_stop_word(s, look)) kept.push_back(&s);
    }
    const std::int64_t count = kept.empty() ? 1 : static_cast<std::int64_t>(kept.size());
    const Tensor out = ctx.output(0, in.rank() == 2 ? Shape{1, count} : Shape{count});
    std::string* y = out.mutable_data<std::string>();
    if (kept.empty()) *y = std::string();
    ctx.parallel_for(kept.size(), 100, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        if (map_ != nullptr) {
          y[i] = text::map_characters(*kept[i], map_, look);
        } else {
          assign_text(y[i], *kept[i], look);
        }
      }
    });
  }

 private:
  bool is_stop_word(const std::string& s, Look look) const {
    if (stop_words_.size() == 0) return false;
    if (case_sensitive_) return stop_words_.find(s) != nullptr;
    return stop_words_.find(text::map_characters(s, text::fold_case, look)) != nullptr;
  }

  bool case_sensitive_;
  char32_t (*map_)(char32_t) = nullptr;
  struct Nothing {};
  TextMap<Nothing> stop_words_;
};

}  // namespace

void register_string_normalizer(kernel::OpRegistrar& r) {
  r.op("StringNormalizer")
      .version(10, "X:string -> Y:string")
      .infer(infer_string_normalizer)
      .kernel<StringNormalizer>();
}

}  // namespace infernode::ops
