#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "base/checked.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/ml/ml_scores.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using graph::Dim;
using graph::SymShape;
using graph::ValueType;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Map;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;
using tensor::Value;

const Map& map_input(const KernelContext& ctx, const char* op) {
  const Value& value = ctx.input_value(0);
  INFERNODE_CHECK(value.is_map(), ErrorCode::InvalidArgument, op, ": X is ", value.to_string(), ", not a map");
  return value.map();
}

/// The one element of a map's value. Throws InvalidArgument for a tensor of several, or of another type.
template <class T>
const T& element(const Value& value, const char* op) {
  INFERNODE_CHECK(value.is_tensor() && value.tensor().numel() == 1 && value.tensor().dtype() == tensor::kDTypeOf<T>,
                  ErrorCode::InvalidArgument, op, ": a value of the map is ", value.to_string());
  return value.tensor().data<T>()[0];
}

class DictVectorizer final : public Kernel {
 public:
  explicit DictVectorizer(KernelInfo& info)
      : ints_(info.attributes().get_ints("int64_vocabulary")),
        strings_(info.attributes().get_strings("string_vocabulary")) {
    INFERNODE_CHECK(ints_.empty() != strings_.empty(), ErrorCode::InvalidModel,
                    "exactly one of int64_vocabulary and string_vocabulary must be given");
  }

  static std::size_t width(const Attributes& attributes) {
    return std::max(attributes.get_ints("int64_vocabulary").size(), attributes.get_strings("string_vocabulary").size());
  }

  void run(KernelContext& ctx) const override {
    const Map& map = map_input(ctx, "DictVectorizer");
    const bool by_string = map.keys.dtype() == DType::String;
    INFERNODE_CHECK(by_string == ints_.empty(), ErrorCode::InvalidArgument, "DictVectorizer: the map's keys are ",
                    tensor::name(map.keys.dtype()), ", the vocabulary is not");
    const auto columns = static_cast<std::int64_t>(std::max(ints_.size(), strings_.size()));
    const Tensor out = ctx.output(0, Shape{1, columns});
    tensor::dispatch<float, double, std::int64_t, std::string>(out.dtype(), "DictVectorizer", [&]<class T>(TypeTag<T>) {
      const std::span<T> row = out.mutable_span<T>();
      Mover mover(ctx.run());
      mover.fill(row.data(), columns, T{});
      if (by_string) {
        fill<T, std::string>(mover, map, strings_, row);
      } else {
        fill<T, std::int64_t>(mover, map, ints_, row);
      }
    });
  }

 private:
  template <class T, class K>
  static void fill(Mover& mover, const Map& map, const std::vector<K>& vocabulary, std::span<T> row) {
    constexpr double kNsPerEntry = 100;
    std::unordered_map<K, std::size_t> entries;
    for (std::size_t i = 0; i < map.values.size(); ++i) {
      mover.did(kNsPerEntry);
      entries.emplace(map.keys.data<K>()[i], i);
    }
    for (std::size_t c = 0; c < row.size(); ++c) {
      mover.did(kNsPerEntry);
      const auto found = entries.find(vocabulary[c]);
      if (found != entries.end()) mover.set(row[c], element<T>(map.values[found->second], "DictVectorizer"));
    }
  }

  std::vector<std::int64_t> ints_;
  std::vector<std::string> strings_;
};

/// Values of a map in the order of their keys (DENSE), or each at the place that its key names (SPARSE).
class CastMap final : public Kernel {
 public:
  explicit CastMap(KernelInfo& info)
      : type_(type(info.attributes())), sparse_(sparse(info.attributes())), width_(width(info.attributes())) {}

  static DType type(const Attributes& attributes) {
    const std::string name = attributes.get_string("cast_to", "TO_FLOAT");
    if (name == "TO_FLOAT") return DType::Float32;
    if (name == "TO_INT64") return DType::Int64;
    INFERNODE_CHECK(name == "TO_STRING", ErrorCode::InvalidModel, "cast_to '", name,
                    "' is not TO_FLOAT, TO_STRING or TO_INT64");
    return DType::String;
  }
  static bool sparse(const Attributes& attributes) {
    const std::string form = attributes.get_string("map_form", "DENSE");
    INFERNODE_CHECK(form == "DENSE" || form == "SPARSE", ErrorCode::InvalidModel, "map_form '", form,
                    "' is not DENSE or SPARSE");
    return form == "SPARSE";
  }
  static std::int64_t width(const Attributes& attributes) {
    const std::int64_t width = attributes.get_int("max_map", 1);
    if (!sparse(attributes)) return width;
    INFERNODE_CHECK(width > 0, ErrorCode::InvalidModel, "max_map is ", width);
    return stated_width(width, 0, "max_map");
  }

  void run(KernelContext& ctx) const override {
    const Map& map = map_input(ctx, "CastMap");
    INFERNODE_CHECK(map.keys.dtype() == DType::Int64, ErrorCode::InvalidArgument, "CastMap: keys are ",
                    tensor::name(map.keys.dtype()));
    const std::span<const std::int64_t> keys = map.keys.span<std::int64_t>();
    std::map<std::int64_t, std::size_t> order;
    constexpr double kNsPerEntry = 100;
    Mover mover(ctx.run());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      mover.did(kNsPerEntry);
      order.emplace(keys[i], i);
    }
    const std::int64_t columns = sparse_ ? width_ : static_cast<std::int64_t>(order.size());
    if (sparse_ && !order.empty()) {
      INFERNODE_CHECK(order.begin()->first >= 0, ErrorCode::InvalidArgument, "CastMap: key ", order.begin()->first,
                      " names no place");
    }
    const Tensor out = ctx.output(0, type_, Shape{1, columns});
    tensor::dispatch<float, std::int64_t, std::string>(type_, "CastMap", [&]<class T>(TypeTag<T>) {
      const std::span<T> row = out.mutable_span<T>();
      if constexpr (std::is_same_v<T, std::string>) {
        mover.fill(row.data(), columns, std::string("0.f"));  // what the peer pads with
      } else {
        mover.fill(row.data(), columns, T{});
      }
      std::size_t next = 0;
      for (const auto& [key, i] : order) {
        if (sparse_ && key >= width_) break;
        mover.did(kNsPerEntry);
        row[sparse_ ? static_cast<std::size_t>(key) : next++] = cast<T>(map.values[i]);
      }
    });
  }

 private:
  template <class T>
  static T cast(const Value& value) {
    if (value.is_tensor() && value.tensor().dtype() == DType::String) {
      const std::string& text = element<std::string>(value, "CastMap");
      if constexpr (std::is_same_v<T, std::string>) {
        return text;
      } else {
        double number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        INFERNODE_CHECK(error == std::errc() && end == text.data() + text.size(), ErrorCode::InvalidArgument,
                        "CastMap: '", text, "' is no number");
        return from_real<T>(number);
      }
    }
    const float number = element<float>(value, "CastMap");
    if constexpr (std::is_same_v<T, std::string>) {
      char text[64];
      const int length = std::snprintf(text, sizeof(text), "%f", static_cast<double>(number));
      return std::string(text, static_cast<std::size_t>(std::clamp<int>(length, 0, sizeof(text) - 1)));
    } else {
      return from_real<T>(static_cast<double>(number));
    }
  }
  template <class T>
  static T from_real(double number) {
    if constexpr (std::is_integral_v<T>) {
      constexpr double kLimit = 9223372036854775808.0;
      if (std::isnan(number)) return 0;
      if (number >= kLimit) return INT64_MAX;
      if (number <= -kLimit) return INT64_MIN;
    }
    return static_cast<T>(number);
  }

  DType type_;
  bool sparse_;
  std::int64_t width_;
};

/// Each row of scores as a map from labels.
class ZipMap final : public Kernel {
 public:
  explicit ZipMap(KernelInfo& info)
      : labels_(ClassLabels(info.attributes(), "classlabels_int64s", "classlabels_strings").tensor()) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    INFERNODE_CHECK(x.dtype() == DType::Float32, ErrorCode::InvalidArgument, "ZipMap: X is ", x.to_string());
    const MlMatrix matrix = ml_matrix(x, "ZipMap");
    INFERNODE_CHECK(matrix.columns == static_cast<std::size_t>(labels_.numel()), ErrorCode::InvalidArgument,
                    "ZipMap: X has ", matrix.columns, " columns for ", labels_.numel(), " labels");
    // All values share one copy of X: an element each.
    const Tensor scores = Tensor::make(DType::Float32, x.shape(), *ctx.run().allocator);
    copy_all(ctx.run(), x, scores);
    kernel::Watch watch(ctx.run());
    tensor::Sequence out;
    out.items.reserve(matrix.rows);
    for (std::size_t r = 0; r < matrix.rows; ++r) {
      watch.did(100);
      Map map{labels_, {}};
      map.values.reserve(matrix.columns);
      for (std::size_t c = 0; c < matrix.columns; ++c) {
        watch.did(100);
        const std::size_t at = (r * matrix.columns + c) * sizeof(float);
        map.values.emplace_back(Tensor(DType::Float32, Shape{}, scores.buffer().slice(at, sizeof(float))));
      }
      out.items.emplace_back(std::move(map));
    }
    ctx.set_output(0, std::move(out));
  }

 private:
  Tensor labels_;
};

/// Joins matrices by columns; each is cut, or filled up with zeros, to the stated width.
class FeatureVectorizer final : public Kernel {
 public:
  explicit FeatureVectorizer(KernelInfo& info) : widths_(widths(info.attributes(), info.input_count())) {}

  static std::vector<std::int64_t> widths(const Attributes& attributes, std::size_t inputs) {
    std::vector<std::int64_t> widths = attributes.get_ints("inputdimensions");
    INFERNODE_CHECK(widths.size() == inputs, ErrorCode::InvalidModel, "inputdimensions has ", widths.size(),
                    " elements for ", inputs, " inputs");
    std::int64_t total = 0;
    for (const std::int64_t width : widths) {
      INFERNODE_CHECK(width >= 0, ErrorCode::InvalidModel, "inputdimensions holds ", width);
      total = checked_add(total, width, ErrorCode::InvalidModel);
    }
    widths.push_back(stated_width(total, 0, "inputdimensions"));
    return widths;
  }

  void run(KernelContext& ctx) const override {
    const std::size_t rows = ml_matrix(ctx.input(0), "FeatureVectorizer").rows;
    const auto total = static_cast<std::size_t>(widths_.back());
    const Tensor out = ctx.output(0, DType::Float32, Shape{static_cast<std::int64_t>(rows), widths_.back()});
    float* const y = out.mutable_data<float>();
    fill_bytes(ctx.run(), out);
    kernel::Watch watch(ctx.run());
    std::size_t at = 0;
    for (std::size_t i = 0; i < ctx.input_count(); ++i) {
      const MlMatrix x = ml_matrix(ctx.input(i), "FeatureVectorizer");
      INFERNODE_CHECK(x.rows == rows, ErrorCode::InvalidArgument, "FeatureVectorizer: inputs of ", rows, " and ",
                      x.rows, " rows");
      const std::size_t width = std::min(x.columns, static_cast<std::size_t>(widths_[i]));
      for (std::size_t r = 0; r < rows; ++r) {
        in_pieces(watch, width, 1.0, [&](std::size_t begin, std::size_t end) {
          read_reals(ctx.input(i), r * x.columns + begin, end - begin, y + r * total + at + begin);
        });
        watch.did(10);
      }
      at += static_cast<std::size_t>(widths_[i]);
    }
  }

 private:
  std::vector<std::int64_t> widths_;  ///< of each input, then their sum
};

/// Elements of the last axis by index.
class ArrayFeatureExtractor final : public Kernel {
 public:
  explicit ArrayFeatureExtractor(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &indices = ctx.input(1);
    INFERNODE_CHECK(x.rank() > 0 && indices.numel() > 0, ErrorCode::InvalidArgument, "ArrayFeatureExtractor: X is ",
                    x.to_string(), " and Y ", indices.to_string());
    const std::int64_t width = x.dim(x.rank() - 1), picked = indices.numel();
    const kernel::Numbers<std::int64_t> index(ctx.run(), indices);
    kernel::Watch watch(ctx.run());
    for (std::size_t i = 0; i < index.size(); ++i) {
      watch.did(1);
      INFERNODE_CHECK(index[i] >= 0 && index[i] < width, ErrorCode::InvalidArgument, "ArrayFeatureExtractor: Y[", i,
                      "] is ", index[i], ", but X has ", width, " columns");
    }
    Shape shape = x.rank() == 1 ? Shape{1, picked} : x.shape();
    shape[shape.rank() - 1] = picked;
    const Tensor out = ctx.output(0, shape);
    if (width == 0) return;
    const auto rows = static_cast<std::size_t>(x.numel() / width);
    dispatch_elements(x.dtype(), "ArrayFeatureExtractor", [&]<class T>(TypeTag<T>) {
      const T* from = elements<T>(x);
      T* to = mutable_elements<T>(out);
      ctx.parallel_for(rows, static_cast<double>(picked), [&](std::size_t begin, std::size_t end, std::size_t) {
        Mover mover(ctx.run());
        for (auto r = static_cast<std::int64_t>(begin); r < static_cast<std::int64_t>(end); ++r) {
          for (std::int64_t i = 0; i < picked; ++i) {
            mover.did(1);
            mover.set(to[r * picked + i], from[r * width + index[static_cast<std::size_t>(i)]]);
          }
        }
      });
    });
  }
};

void infer_dict_vectorizer(InferContext& ctx) {
  if (ctx.input_type(0).inner) ctx.set_output_dtype(0, ctx.input_type(0).inner->elem);
  ctx.set_output_shape(0, SymShape{1, static_cast<std::int64_t>(DictVectorizer::width(ctx.attributes()))});
}

void infer_cast_map(InferContext& ctx) {
  ctx.set_output_dtype(0, CastMap::type(ctx.attributes()));
  const bool sparse = CastMap::sparse(ctx.attributes());
  ctx.set_output_shape(0, SymShape{1, sparse ? Dim(CastMap::width(ctx.attributes())) : Dim::unknown()});
}

void infer_zip_map(InferContext& ctx) {
  const DType key = ClassLabels(ctx.attributes(), "classlabels_int64s", "classlabels_strings").dtype();
  const ValueType map = ValueType::map(key, ValueType::tensor(DType::Float32, SymShape{}));
  ctx.set_output_type(0, ValueType::sequence(map));
}

void infer_feature_vectorizer(InferContext& ctx) {
  infer_scores(ctx, FeatureVectorizer::widths(ctx.attributes(), ctx.input_count()).back());
}

void infer_array_feature_extractor(InferContext& ctx) {
  const SymShape *x = ctx.input_shape(0), *indices = ctx.input_shape(1);
  if (x == nullptr || x->empty()) return;
  SymShape shape = x->size() == 1 ? SymShape{1, Dim::unknown()} : *x;
  shape.back() = indices != nullptr ? graph::numel(*indices) : Dim::unknown();
  ctx.set_output_shape(0, std::move(shape));
}

}  // namespace

void register_ml_vectorize(kernel::OpRegistrar& r) {
  r.op("DictVectorizer", kMlDomain)
      .version(1,
               "X:T1 -> Y:T2; T1 = map(string, int64)|map(int64, string)|map(int64, float)|map(int64, double)|"
               "map(string, float)|map(string, double), T2 = int64|float|double|string")
      .infer(infer_dict_vectorizer)
      .kernel<DictVectorizer>();
  r.op("CastMap", kMlDomain)
      .version(1, "X:T1 -> Y:T2; T1 = map(int64, string)|map(int64, float), T2 = string|float|int64")
      .infer(infer_cast_map)
      .kernel<CastMap>();
  r.op("ZipMap", kMlDomain)
      .version(1, "X:float -> Z:T; T = seq(map(string, float))|seq(map(int64, float))")
      .infer(infer_zip_map)
      .kernel<ZipMap>();
  r.op("FeatureVectorizer", kMlDomain)
      .version(1, "X:T1* -> Y:float; T1 = int32|int64|float|double")
      .infer(infer_feature_vectorizer)
      .kernel<FeatureVectorizer>();
  r.op("ArrayFeatureExtractor", kMlDomain)
      .version(1, "X:T, Y:int64 -> Z:T; T = float|double|int64|int32|string")
      .infer(infer_array_feature_extractor)
      .kernel<ArrayFeatureExtractor>();
}

}  // namespace infernode::ops
