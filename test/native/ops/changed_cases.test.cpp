// The written cases with one input changed: whatever comes, an answer or an error, comes without a crash.

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "ops/evaluate.h"
#include "ops/written_cases.h"

namespace infernode::test {
namespace {

/// A tensor of another shape that repeats the elements of `t`, or holds zeros where `t` has none.
Tensor resized(const Tensor& t, const Shape& shape) {
  Tensor out = Tensor::make(t.dtype(), shape);
  const std::int64_t count = t.numel();
  if (t.dtype() == DType::String) {
    for (std::int64_t i = 0; i < out.numel() && count > 0; ++i)
      out.mutable_data<std::string>()[i] = t.data<std::string>()[i % count];
    return out;
  }
  const std::size_t size = tensor::bit_size(t.dtype()) / 8;
  auto* to = static_cast<char*>(out.mutable_raw());
  std::fill_n(to, out.bytes(), char{0});
  for (std::int64_t i = 0; i < out.numel() && count > 0; ++i)
    std::memcpy(to + static_cast<std::size_t>(i) * size,
                static_cast<const char*>(t.raw()) + static_cast<std::size_t>(i % count) * size, size);
  return out;
}

/// `long_axes`: also those of no elements beside an axis of any length.
std::vector<Tensor> with_other_shapes(const Tensor& t, bool long_axes) {
  std::vector<Tensor> out;
  if (tensor::is_sub_byte(t.dtype())) return out;
  const Shape& shape = t.shape();
  out.push_back(resized(t, Shape{}));
  out.push_back(resized(t, Shape{t.numel()}));
  Shape longer{1};
  for (const std::int64_t d : shape) longer.push_back(d);
  if (longer.rank() <= 8) out.push_back(resized(t, longer));
  if (shape.rank() > 0) out.push_back(resized(t, Shape(shape.dims().first(shape.rank() - 1))));
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    for (const std::int64_t dim : {std::int64_t{0}, shape[axis] - 1, shape[axis] + 1}) {
      if (dim < 0) continue;
      Shape other = shape;
      other[axis] = dim;
      out.push_back(resized(t, other));
    }
  }
  for (const std::size_t empty : {std::size_t{0}, shape.rank() - 1}) {
    if (shape.rank() < 2 || !long_axes) break;
    Shape other = shape;
    other[empty] = 0;
    other[shape.rank() - 1 - empty] = std::int64_t{1} << 33;
    out.push_back(resized(t, other));
  }
  return out;
}

template <class T>
void add_other_values(const Tensor& t, std::vector<Tensor>& out) {
  using Limits = std::numeric_limits<T>;
  for (const std::int64_t at : {std::int64_t{0}, t.numel() - 1}) {
    for (const T value : {Limits::min(), T{-1}, T{0}, T{1}, T{7}, Limits::max()}) {
      if (t.numel() == 0) return;
      Tensor other = resized(t, t.shape());
      other.mutable_data<T>()[at] = value;
      out.push_back(std::move(other));
    }
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStep = 8;  // all of them take minutes
#else
constexpr std::size_t kStep = 1;
#endif

/// Runs each case with each input changed, of the changes each `step`th. `values`: also the elements of integer inputs.
/// There are more than `least` answers, and errors.
void change_all(const char* file, const std::string& header, bool values, std::size_t step, std::size_t least = 100) {
  std::size_t answers = 0, errors = 0, next = 0;
  const std::vector<WrittenCase> cases = read_cases(file);
  for (const WrittenCase& c : cases) {
    CAPTURE(c.title);
    std::string names, results;
    const std::vector<Value> inputs = tensors_of(c.inputs, &names);
    if (c.fails())
      results = "y0";
    else
      tensors_of(c.outputs, &results);
    const std::string model = cat("<ir_version: 14, opset_import: [\"\" : ", c.opset, header, "]> g (", names, ") => (",
                                  results, ") { ", c.nodes, " }");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& t = inputs[i].tensor();
      if (t.numel() > 4096) continue;
      std::vector<Tensor> others = with_other_shapes(t, c.op != "Scan");  // it takes its steps
      if (values && t.dtype() == DType::Int32) add_other_values<std::int32_t>(t, others);
      if (values && t.dtype() == DType::Int64) add_other_values<std::int64_t>(t, others);
      for (Tensor& other : others) {
        if (next++ % (step * step_of_changed_cases()) != 0) continue;
        std::vector<Value> feeds = inputs;
        feeds[i] = std::move(other);
        try {
          answers += run_op(model, c.opset, feeds).size() > 0;
        } catch (const Error& error) {
          ++errors;
          // Aborted: it took longer than the tests' deadline.
          CHECK_MESSAGE((error.code() != ErrorCode::Internal && error.code() != ErrorCode::Aborted), error.message());
          CHECK(error.message().size() > 10);
        } catch (const std::bad_alloc&) {
          FAIL_CHECK("memory was asked of the system without a check, for input ", i, " ", feeds[i].to_string());
        }
      }
    }
  }
  CHECK(answers > least / step_of_changed_cases());
  CHECK(errors > least / step_of_changed_cases());
}

}  // namespace

TEST_CASE("attention meets changed shapes, lengths, positions and beams with answers or errors") {
  change_all("contrib-attention.txt", ", \"com.microsoft\" : 1", true, 1);
  change_all("contrib-paged.txt", ", \"com.microsoft\" : 1", true, 1);
}

TEST_CASE("experts, groups and generated text meet changed shapes with answers or errors") {
  for (const char* file : {"contrib-experts.txt", "contrib-group-norm.txt", "contrib-generation.txt"})
    change_all(file, ", \"com.microsoft\" : 1", false, 1, 10);
}

TEST_CASE("operators meet changed shapes with answers or errors") {
  change_all("operator-edges.txt",
             ", \"com.microsoft\" : 1, \"ai.onnx.ml\" : 5, \"ai.onnx.preview\" : 1, \"ai.onnx.preview.training\" : 1, "
             "\"infernode\" : 1",
             false, kStep);
}

}  // namespace infernode::test
