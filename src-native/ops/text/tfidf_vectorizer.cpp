#include <algorithm>
#include <span>
#include <unordered_map>

#include "base/checked.h"
#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/long_text.h"
#include "ops/ml/ml_scores.h"

namespace infernode::ops {
namespace {

using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

enum class Weighting { kTf, kIdf, kTfIdf };

/// Columns of the output: one more than the largest index.
std::int64_t column_count(const graph::Attributes& attributes) {
  const std::vector<std::int64_t> indexes = attributes.get_ints("ngram_indexes");
  INFERNODE_CHECK(!indexes.empty(), ErrorCode::InvalidModel, "ngram_indexes is missing or empty");
  const auto [least, most] = std::minmax_element(indexes.begin(), indexes.end());
  INFERNODE_CHECK(*least >= 0, ErrorCode::InvalidModel, "ngram_indexes holds ", *least);
  return stated_width(checked_add<std::int64_t>(*most, 1, ErrorCode::InvalidModel), indexes.size(), "ngram_indexes");
}

void infer_tfidf(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  INFERNODE_CHECK(in->size() <= 2, ErrorCode::ShapeMismatch, "the input must be [C] or [N,C], got ",
                  graph::to_string(*in));
  const std::int64_t columns = column_count(ctx.attributes());
  ctx.set_output_shape(0, in->size() == 2 ? SymShape{(*in)[0], columns} : SymShape{columns});
}

/// Counts n-grams of tokens. Tokens become numbers at the first look-up; the n-grams of the pool form a tree whose
/// edges are looked up by (node, token).
class TfIdfVectorizer final : public Kernel {
 public:
  explicit TfIdfVectorizer(KernelInfo& info)
      : columns_(column_count(info.attributes())),
        indexes_(info.attributes().get_ints("ngram_indexes")),
        weights_(info.attributes().get_floats("weights")) {
    const graph::Attributes& a = info.attributes();
    const std::string mode = a.get_string("mode");
    INFERNODE_CHECK(mode == "TF" || mode == "IDF" || mode == "TFIDF", ErrorCode::InvalidModel,
                    "mode must be TF, IDF or TFIDF, got \"", mode, "\"");
    weighting_ = mode == "TF" ? Weighting::kTf : mode == "IDF" ? Weighting::kIdf : Weighting::kTfIdf;
    min_length_ = a.get_int("min_gram_length");
    max_length_ = a.get_int("max_gram_length");
    max_skips_ = a.get_int("max_skip_count");
    INFERNODE_CHECK(min_length_ >= 1 && max_length_ >= min_length_, ErrorCode::InvalidModel,
                    "min_gram_length must be at least 1 and max_gram_length not below it, got ", min_length_, " and ",
                    max_length_);
    INFERNODE_CHECK(max_skips_ >= 0, ErrorCode::InvalidModel, "max_skip_count is negative: ", max_skips_);
    INFERNODE_CHECK(weights_.empty() || weights_.size() == indexes_.size(), ErrorCode::InvalidModel, "there are ",
                    indexes_.size(), " ngram_indexes, but ", weights_.size(), " weights");

    strings_ = a.has("pool_strings");
    INFERNODE_CHECK(strings_ != a.has("pool_int64s"), ErrorCode::InvalidModel,
                    "exactly one of pool_strings and pool_int64s must be given");
    std::vector<std::uint32_t> pool;
    if (strings_) {
      for (const std::string& s : a.get_strings("pool_strings"))
        pool.push_back(*string_tokens_.emplace(s, checked_cast<std::uint32_t>(string_tokens_.size())).first);
    } else {
      for (const std::int64_t v : a.get_ints("pool_int64s"))
        pool.push_back(int_tokens_.try_emplace(v, checked_cast<std::uint32_t>(int_tokens_.size())).first->second);
    }
    build_tree(pool, a.get_ints("ngram_counts"));
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() <= 2, ErrorCode::ShapeMismatch, "the input must be [C] or [N,C], got ",
                    in.shape().dims());
    INFERNODE_CHECK((in.dtype() == DType::String) == strings_, ErrorCode::InvalidArgument, "the input holds ",
                    tensor::name(in.dtype()), ", but the pool has ", strings_ ? "strings" : "integers");
    const bool batch = in.rank() == 2;
    const auto length = static_cast<std::size_t>(in.rank() == 0 ? 1 : in.shape().back());
    const Tensor out = ctx.output(0, batch ? Shape{in.dim(0), columns_} : Shape{columns_});
    auto* y = out.mutable_data<float>();
    const auto columns = static_cast<std::size_t>(columns_);
    ctx.parallel_for(batch ? static_cast<std::size_t>(in.dim(0)) : 1,
                     50.0 * static_cast<double>(length) + static_cast<double>(columns),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::CountedVector<std::uint32_t> tokens(length, ctx.run());
                       for (std::size_t row = begin; row < end; ++row) {
                         read_tokens(ctx.run(), in, row * length, tokens);
                         std::fill_n(y + row * columns, columns, 0.0f);
                         count_row(ctx.run(), tokens, y + row * columns);
                       }
                     });
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  static std::uint64_t edge(std::uint32_t node, std::uint32_t token) {
    return static_cast<std::uint64_t>(node) << 32 | token;
  }

  void build_tree(const std::vector<std::uint32_t>& pool, const std::vector<std::int64_t>& starts) {
    INFERNODE_CHECK(!starts.empty(), ErrorCode::InvalidModel, "ngram_counts is missing or empty");
    std::size_t gram = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto size = static_cast<std::int64_t>(pool.size());
      const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
      const std::size_t n = i + 1;
      INFERNODE_CHECK(begin >= 0 && begin <= end && end <= size && (end - begin) % static_cast<std::int64_t>(n) == 0,
                      ErrorCode::InvalidModel, "ngram_counts ", starts, " does not divide a pool of ", size,
                      " items into n-grams: the ", n, "-grams would be items ", begin, " to ", end);
      const std::size_t grams = static_cast<std::size_t>(end - begin) / n;
      INFERNODE_CHECK(grams <= indexes_.size() - gram, ErrorCode::InvalidModel, "the pool holds more n-grams than the ",
                      indexes_.size(), " ngram_indexes");
      const bool wanted = static_cast<std::int64_t>(n) >= min_length_ && static_cast<std::int64_t>(n) <= max_length_;
      for (std::size_t g = 0; g < grams; ++g, ++gram) {
        if (wanted)
          add_gram(pool.data() + static_cast<std::size_t>(begin) + g * n, n, static_cast<std::uint32_t>(gram));
      }
    }
  }

  void add_gram(const std::uint32_t* tokens, std::size_t n, std::uint32_t gram) {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto [found, fresh] =
          edges_.try_emplace(edge(node, tokens[i]), static_cast<std::uint32_t>(gram_at_.size()));
      if (fresh) gram_at_.push_back(kNone);
      node = found->second;
    }
    gram_at_[node] = gram;
  }

  void read_tokens(const kernel::RunContext& run, const Tensor& in, std::size_t first,
                   std::span<std::uint32_t> tokens) const {
    kernel::Watch watch(run);
    const auto read = [&](auto&& number_at) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        watch.did(50);
        tokens[i] = number_at(first + i);
      }
    };
    const auto number_of = [&](std::int64_t value) {
      const auto found = int_tokens_.find(value);
      return found == int_tokens_.end() ? kNone : found->second;
    };
    if (strings_) {
      read([x = in.data<std::string>(), this](std::size_t i) {
        const std::uint32_t* found = string_tokens_.find(x[i]);
        return found == nullptr ? kNone : *found;
      });
    } else if (in.dtype() == DType::Int32) {
      read([&, x = in.data<std::int32_t>()](std::size_t i) { return number_of(x[i]); });
    } else {
      read([&, x = in.data<std::int64_t>()](std::size_t i) { return number_of(x[i]); });
    }
  }

  void found_gram(std::uint32_t gram, float* row) const {
    float& cell = row[indexes_[gram]];
    const float weight = weights_.empty() ? 1.0f : weights_[gram];
    switch (weighting_) {
      case Weighting::kTf:
        cell += 1.0f;
        break;
      case Weighting::kIdf:
        cell = weight;
        break;
      case Weighting::kTfIdf:
        cell += weight;
        break;
    }
  }

  void count_row(const kernel::RunContext& run, std::span<const std::uint32_t> tokens, float* row) const {
    const std::size_t length = tokens.size();
    kernel::Watch watch(run);
    // More skips than tokens reach no second token.
    const std::size_t strides =
        static_cast<std::size_t>(std::min<std::int64_t>(max_skips_, static_cast<std::int64_t>(length))) + 1;
    for (std::size_t stride = 1; stride <= strides; ++stride) {
      // 1-grams know no skips: they count once.
      const std::int64_t shortest = stride == 1 ? min_length_ : std::max<std::int64_t>(min_length_, 2);
      if (shortest > max_length_) break;
      for (std::size_t start = 0; start < length; ++start) {
        std::uint32_t node = 0;
        std::size_t at = start;
        watch.did(20);
        for (std::int64_t n = 1; n <= max_length_ && at < length; ++n, at += stride) {
          if (tokens[at] == kNone) break;
          const auto next = edges_.find(edge(node, tokens[at]));
          if (next == edges_.end()) break;
          watch.did(20);
          node = next->second;
          if (n >= shortest && gram_at_[node] != kNone) found_gram(gram_at_[node], row);
        }
      }
    }
  }

  std::int64_t columns_, min_length_ = 1, max_length_ = 1, max_skips_ = 0;
  std::vector<std::int64_t> indexes_;
  std::vector<float> weights_;
  Weighting weighting_ = Weighting::kTf;
  bool strings_ = false;
  TextMap<std::uint32_t> string_tokens_;
  std::unordered_map<std::int64_t, std::uint32_t> int_tokens_;
  std::vector<std::uint32_t> gram_at_{kNone};  ///< by node: the n-gram of the pool that ends there
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
};

}  // namespace

void register_tfidf_vectorizer(kernel::OpRegistrar& r) {
  r.op("TfIdfVectorizer")
      .version(9, "X:T -> Y:T1; T = string|int32|int64, T1 = float")
      .infer(infer_tfidf)
      .kernel<TfIdfVectorizer>();
}

}  // namespace infernode::ops
