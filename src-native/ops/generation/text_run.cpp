#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "ops/common/reals.h"
#include "ops/generation/text_model.h"

namespace infernode::ops {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

namespace {

std::int64_t dim(std::size_t v) { return static_cast<std::int64_t>(v); }

/// The axis of a cache along which prompts lie: keys and values of one tensor come first.
std::size_t batch_axis(const Tensor& cache) { return cache.rank() == 5 ? 1 : 0; }

/// Each row `copies` times.
void repeat_rows(std::vector<std::int32_t>& values, std::size_t rows, std::size_t copies) {
  if (rows == 0 || copies == 1) return;
  const std::size_t n = values.size() / rows;
  std::vector<std::int32_t> out;
  out.reserve(values.size() * copies);
  for (std::size_t i = 0; i < rows * copies; ++i) {
    const auto from = values.begin() + dim(i / copies * n);
    out.insert(out.end(), from, from + dim(n));
  }
  values = std::move(out);
}

/// One more value at the end of each row.
template <class F>
void append_column(std::vector<std::int32_t>& values, std::size_t rows, const F& value) {
  const std::size_t n = values.size() / rows;
  std::vector<std::int32_t> out;
  out.reserve(rows * (n + 1));
  for (std::size_t r = 0; r < rows; ++r) {
    out.insert(out.end(), values.begin() + dim(r * n), values.begin() + dim((r + 1) * n));
    out.push_back(value(r));
  }
  values = std::move(out);
}

std::vector<std::int32_t> read_ints(const Tensor& t) {
  std::vector<std::int32_t> out;
  for (const std::int64_t v : tensor::to_int64_vector(t)) out.push_back(static_cast<std::int32_t>(v));
  return out;
}

}  // namespace

void TextRun::start(const Tensor& input, const Tensor* mask, const Tensor* decoder_ids, std::size_t copies) {
  const char* op = m_.op_;
  if (input.rank() < 2) fail(ErrorCode::ShapeMismatch, cat(op, ": input_ids is ", input.to_string()));
  rows_ = static_cast<std::size_t>(input.dim(0));
  const bool ids = input.rank() == 2 && (input.dtype() == DType::Int32 || input.dtype() == DType::Int64);
  if (!ids && !m_.encodes()) fail(ErrorCode::ShapeMismatch, cat(op, ": input_ids is ", input.to_string()));
  const std::size_t length = static_cast<std::size_t>(input.dim(ids ? 1 : input.rank() - 1));
  if (length == 0) fail(ErrorCode::ShapeMismatch, cat(op, ": prompts of no tokens, ", input.to_string()));
  if (mask != nullptr && (mask->rank() != 2 || mask->dim(0) != input.dim(0) || (ids && mask->dim(1) != input.dim(1))))
    fail(ErrorCode::ShapeMismatch, cat(op, ": attention_mask ", mask->to_string(), " for ", input.to_string()));
  tokens_ = ids ? read_ints(input) : std::vector<std::int32_t>();
  std::vector<std::int32_t> attended(rows_ * length, 1);
  for (std::size_t i = 0; i < tokens_.size(); ++i) attended[i] = tokens_[i] != m_.pad_token_ ? 1 : 0;
  if (m_.encodes()) {
    encoder_mask_ = mask != nullptr ? read_ints(*mask) : attended;
    tokens_.assign(rows_, m_.start_token_);
    if (decoder_ids != nullptr) {
      if (decoder_ids->rank() != 2 || decoder_ids->dim(0) != input.dim(0) || decoder_ids->dim(1) == 0)
        fail(ErrorCode::ShapeMismatch, cat(op, ": decoder_input_ids is ", decoder_ids->to_string()));
      tokens_ = read_ints(*decoder_ids);
    } else if (m_.start_token_ < 0) {
      fail(ErrorCode::InvalidArgument, cat(op, ": neither decoder_start_token_id nor decoder_input_ids"));
    }
    first_length_ = decoder_ids != nullptr ? static_cast<std::size_t>(decoder_ids->dim(1)) : 1;
    attended.assign(tokens_.size(), 1);
  } else {
    first_length_ = length;
  }
  mask_ = !m_.encodes() && mask != nullptr ? read_ints(*mask) : attended;
  positions_.assign(tokens_.size(), 0);
  for (std::size_t r = 0; r < rows_; ++r) {  // padding in front has no place
    for (std::size_t i = 0, place = 0; i < first_length_; ++i) {
      if (attended[r * first_length_ + i] != 0) positions_[r * first_length_ + i] = static_cast<std::int32_t>(place++);
    }
  }
  if (m_.encodes()) {
    run(m_.encoder_, &input, first_length_, m_.encoder_.gives("logits") ? copies : 0);
    if (!m_.encoder_.gives("logits")) run(m_.first_.runner ? m_.first_ : m_.decoder_, &input, first_length_, copies);
  } else {
    run(m_.first_.runner ? m_.first_ : m_.decoder_, &input, first_length_, copies);
  }
  spread(copies);
}

/// Gives every prompt its rows.
void TextRun::spread(std::size_t copies) {
  for (auto& [name, cache] : caches_) cache = repeated(cache, batch_axis(cache), copies);
  if (hidden_) hidden_ = repeated(hidden_, 0, copies);
  for (auto* values : {&tokens_, &positions_, &mask_, &encoder_mask_}) repeat_rows(*values, rows_, copies);
  rows_ = checked_mul(rows_, copies);
}

void TextRun::step(std::span<const std::int32_t> tokens, std::span<const std::size_t> parents, bool more) {
  bool same = true;
  for (std::size_t r = 0; r < parents.size(); ++r) same = same && parents[r] == r;
  if (!same) {
    const std::size_t n = length();
    std::vector<std::int32_t> continued(tokens_.size());
    for (std::size_t r = 0; r < rows_; ++r)
      std::copy_n(tokens_.begin() + dim(parents[r] * n), n, continued.begin() + dim(r * n));
    tokens_ = std::move(continued);
    for (auto& [name, cache] : caches_) {  // rows of one prompt share what the encoder gave
      if (more && m_.decoder_.gives("present" + name)) cache = picked(cache, batch_axis(cache), parents);
    }
  }
  append_column(tokens_, rows_, [&](std::size_t r) { return tokens[r]; });
  if (!more) return;
  append_column(mask_, rows_, [](std::size_t) { return 1; });
  const std::size_t places = positions_.size() / rows_;
  append_column(positions_, rows_, [&](std::size_t r) { return positions_[(r + 1) * places - 1] + 1; });
  run(m_.decoder_, nullptr, m_.whole_ ? length() : 1, 1);
}

/// `fresh`: tokens of each row that the part reads. `copies` 0: it gives no logits.
void TextRun::run(const TextModel::Part& part, const Tensor* input, std::size_t fresh, std::size_t copies) {
  ctx_.run().check();
  std::vector<Value> inputs;
  for (const TextModel::Parameter& parameter : part.inputs) inputs.push_back(feed(parameter, input, fresh));
  std::vector<Value> results = part.runner->run(ctx_, std::move(inputs));
  for (std::size_t o = 0; o < results.size(); ++o) {
    const std::string& name = part.outputs[o];
    if (!results[o].is_tensor()) fail(ErrorCode::InvalidModel, cat(m_.op_, ": '", name, "' is no tensor"));
    const Tensor& t = results[o].tensor();
    if (name == "logits") {
      if (copies > 0) keep_logits(t, copies);
    } else if (name == "encoder_hidden_states") {
      hidden_ = t;
    } else if (name.starts_with("present")) {
      if (t.rank() <= batch_axis(t) || t.dim(batch_axis(t)) != dim(rows_))
        fail(ErrorCode::ShapeMismatch, cat(m_.op_, ": '", name, "' is ", t.to_string(), " for ", rows_, " rows"));
      const std::string cache = name.substr(7);
      const auto found = std::find_if(caches_.begin(), caches_.end(), [&](const auto& c) { return c.first == cache; });
      if (found == caches_.end()) {
        caches_.emplace_back(cache, t);
      } else {
        found->second = t;
      }
    }
  }
}

Value TextRun::feed(const TextModel::Parameter& parameter, const Tensor* input, std::size_t fresh) const {
  const std::string& name = parameter.name;
  const DType type = parameter.type.elem == DType::Int64 ? DType::Int64 : DType::Int32;
  if (name == "input_ids" || name == "decoder_input_ids") return integers(type, tokens_, fresh);
  if (name == "position_ids") return integers(type, positions_, fresh);
  if (name == "attention_mask") return integers(type, mask_, mask_.size() / std::max<std::size_t>(1, rows_));
  if (name == "encoder_attention_mask")
    return integers(type, encoder_mask_, encoder_mask_.size() / std::max<std::size_t>(1, rows_));
  if (name == "encoder_hidden_states") {
    if (!hidden_) fail(ErrorCode::InvalidModel, cat(m_.op_, ": the encoder gives no '", name, "'"));
    return hidden_;
  }
  if (!name.starts_with("past")) {
    if (input == nullptr) fail(ErrorCode::InvalidModel, cat(m_.op_, ": the decoder takes '", name, "' at each step"));
    return *input;
  }
  const std::string cache = name.substr(4);
  const auto found = std::find_if(caches_.begin(), caches_.end(), [&](const auto& c) { return c.first == cache; });
  return found != caches_.end() ? found->second : empty_cache(parameter);
}

/// The last columns of rows of integers.
Tensor TextRun::integers(DType type, std::span<const std::int32_t> values, std::size_t last) const {
  Tensor out = Tensor::make(type, Shape{dim(rows_), dim(last)}, *ctx_.run().allocator);
  const std::size_t n = rows_ == 0 ? 0 : values.size() / rows_;
  for (std::size_t r = 0; r < rows_; ++r) {
    const auto from = values.begin() + dim((r + 1) * n - last);
    if (type == DType::Int64) {
      std::copy_n(from, last, out.mutable_data<std::int64_t>() + r * last);
    } else {
      std::copy_n(from, last, out.mutable_data<std::int32_t>() + r * last);
    }
  }
  return out;
}

/// A cache before the first token: of the dims that it is declared with, of this run's rows, and of length 0.
Tensor TextRun::empty_cache(const TextModel::Parameter& parameter) const {
  const auto& declared = parameter.type.shape;
  if (!declared || (declared->size() != 4 && declared->size() != 5))
    fail(ErrorCode::InvalidModel,
         cat(m_.op_, ": '", parameter.name, "' is not declared with its heads and their size"));
  Shape shape;
  const std::size_t axis = declared->size() == 5 ? 1 : 0;
  for (std::size_t i = 0; i < declared->size(); ++i) {
    const graph::Dim& d = (*declared)[i];
    if (i == axis) {
      shape.push_back(dim(rows_));
    } else if (i == axis + 2) {
      shape.push_back(0);
    } else if (d.known()) {
      shape.push_back(d.value());
    } else {
      fail(ErrorCode::InvalidModel, cat(m_.op_, ": dim ", i, " of '", parameter.name, "' must be a number"));
    }
  }
  return Tensor::make(parameter.type.elem, shape, *ctx_.run().allocator);
}

Tensor TextRun::repeated(const Tensor& t, std::size_t axis, std::size_t copies) const {
  if (copies == 1) return t;
  std::vector<std::size_t> rows(checked_mul(static_cast<std::size_t>(t.dim(axis)), copies));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i / copies;
  return picked(t, axis, rows);
}

Tensor TextRun::picked(const Tensor& t, std::size_t axis, std::span<const std::size_t> rows) const {
  Shape shape = t.shape();
  shape[axis] = dim(rows.size());
  Tensor out = Tensor::make(t.dtype(), shape, *ctx_.run().allocator);
  if (out.numel() == 0) return out;
  const std::size_t outer = static_cast<std::size_t>(shape.numel(0, axis));
  const std::size_t bytes = out.bytes() / outer / rows.size(), held = static_cast<std::size_t>(t.dim(axis));
  const auto* from = static_cast<const std::byte*>(t.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  ctx_.parallel_for(
      outer * rows.size(), static_cast<double>(bytes) * 0.1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i)
          std::memcpy(to + i * bytes, from + (i / rows.size() * held + rows[i % rows.size()]) * bytes, bytes);
      });
  return out;
}

/// Of each row the last position's, as float32.
void TextRun::keep_logits(const Tensor& logits, std::size_t copies) {
  if (logits.rank() != 3 || logits.dim(0) != dim(rows_) || (rows_ > 0 && logits.dim(1) == 0) || logits.dim(2) == 0)
    fail(ErrorCode::ShapeMismatch, cat(m_.op_, ": logits are ", logits.to_string(), " for ", rows_, " rows"));
  const std::int64_t width = logits.dim(2), positions = logits.dim(1);
  if (m_.vocab_size_ > width)
    fail(ErrorCode::InvalidModel, cat(m_.op_, ": vocab_size is ", m_.vocab_size_, ", logits are ", logits.to_string()));
  vocabulary_ = static_cast<std::size_t>(m_.vocab_size_ > 0 ? m_.vocab_size_ : width);
  logits_ =
      Tensor::make(DType::Float32, Shape{dim(checked_mul(rows_, copies)), dim(vocabulary_)}, *ctx_.run().allocator);
  const std::size_t item = tensor::bit_size(logits.dtype()) / 8;
  for (std::size_t r = 0; r < rows_ * copies; ++r) {
    const std::size_t at = static_cast<std::size_t>(((dim(r / copies) + 1) * positions - 1) * width);
    convert_reals(ctx_.run(), m_.kernels_, logits.dtype(), static_cast<const std::byte*>(logits.raw()) + at * item,
                  DType::Float32, logits_.mutable_data<float>() + r * vocabulary_, vocabulary_);
  }
}

}  // namespace infernode::ops
