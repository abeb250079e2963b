// Matrix products: MatMul, Gemm, and FusedMatMul with what stands around them.

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/parts/moves.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

/// An operand as a stack of matrices [rows, columns]: vectors have become matrices.
struct Stack {
  DeviceTensor data;
  Shape batch;  ///< dims before the last two
  std::int64_t rows = 1, columns = 1;
};

Stack stack_of(const DeviceTensor& data, bool is_left) {
  Stack s{.data = data, .batch = {}};
  const Shape& shape = data.shape;
  if (shape.rank() == 1) {
    (is_left ? s.columns : s.rows) = shape[0];
    return s;
  }
  for (std::size_t d = 0; d + 2 < shape.rank(); ++d) s.batch.push_back(shape[d]);
  s.rows = shape[shape.rank() - 2];
  s.columns = shape.back();
  return s;
}

/// The operand with as many matrices as the output has.
void repeat(Builder& b, Stack& s, const Shape& batch) {
  if (s.batch == batch) return;
  Shape to = batch;
  to.push_back(s.rows);
  to.push_back(s.columns);
  Shape from = s.batch;
  from.push_back(s.rows);
  from.push_back(s.columns);
  const DevicePtr copy = b.scratch(tensor::byte_size(s.data.dtype, to.numel()));
  const Shape strides = tensor::broadcast_strides(from, to), dense = to.strides();
  b.launch(plan_strided_copy(b.target(), {.from = s.data.at,
                                          .to = copy,
                                          .element_bytes = s.data.element_bytes(),
                                          .dims = to,
                                          .from_stride = {strides.begin(), strides.end()},
                                          .to_stride = {dense.begin(), dense.end()}}));
  s.data.at = copy;
  s.batch = batch;
}

/// Batch dims as at most two parts, innermost first, with strides in matrices. False where broadcasting needs more.
bool batch_parts(const Shape& batch, const Stack& a, const Stack& b, GemmProblem& problem) {
  const Shape sa = tensor::broadcast_strides(a.batch, batch), sb = tensor::broadcast_strides(b.batch, batch);
  std::size_t parts = 0;
  for (std::size_t d = batch.rank(); d-- > 0;) {
    if (batch[d] == 1) continue;
    if (parts > 0) {
      const std::size_t last = parts - 1;
      const std::int64_t size = problem.batch[last];
      if (sa[d] == problem.a.batch_stride[last] * size && sb[d] == problem.b.batch_stride[last] * size) {
        problem.batch[last] *= batch[d];
        continue;
      }
    }
    if (parts == 2) return false;
    problem.batch[parts] = batch[d];
    problem.a.batch_stride[parts] = sa[d];
    problem.b.batch_stride[parts] = sb[d];
    ++parts;
  }
  return true;
}

/// The product of matrices without inner elements.
void sum_nothing(Builder& b, const DeviceTensor& out, const Epilogue& epilogue) {
  if (epilogue.bias != 0 || epilogue.residual != 0)
    fail(ErrorCode::UnsupportedOperator, "cuda adds nothing to a product over no elements: run it on the CPU");
  const Shape strides = out.shape.strides();
  b.launch(plan_fill(b.target(), {.to = out.at,
                                  .element_bytes = out.element_bytes(),
                                  .dims = out.shape,
                                  .to_stride = {strides.begin(), strides.end()},
                                  .bits = 0}));
}

/// How an operand lies in its input.
struct Side {
  bool transposed = false;    ///< the last two dims exchanged
  bool batch_inside = false;  ///< the dims of the batch behind the matrices' first one
};

/// The input with the dims of the batch first.
DeviceTensor batch_first(Builder& b, std::size_t i, const Side& side) {
  if (!side.batch_inside || b.input_shape(i).rank() <= 2) return b.input(i);
  const DeviceTensor given = b.input_strided(i);
  std::vector<std::int64_t> dims(given.shape.begin(), given.shape.end()), strides = strides_of(given);
  for (auto* all : {&dims, &strides}) std::rotate(all->begin(), all->begin() + 1, all->end() - 1);
  const DeviceTensor turned = scratch_tensor(b, given.dtype, Shape{std::span<const std::int64_t>(dims)});
  copy_dense(b, given.at, turned.shape, turned.element_bytes(), turned.at, std::move(strides));
  return turned;
}

/// out = epilogue(a * b), of inputs 0 and 1.
void product(Builder& b, const Side& side_a, const Side& side_b, Epilogue epilogue) {
  constexpr std::size_t kA = 0, kB = 1;
  const bool a_transposed = side_a.transposed, b_transposed = side_b.transposed;
  const Shape b_shape = b.input_shape(kB);
  const bool weights = b.known(kB) != nullptr && b_shape.rank() <= 2;
  // Rows that wait to be normalized: perhaps the product's kernel does it.
  const Deferred* rows = weights && !a_transposed && !side_a.batch_inside ? b.deferred(kA) : nullptr;
  if (rows != nullptr && !rows->norm) rows = nullptr;
  DeviceTensor a_data{.dtype = b.input_dtype(kA), .shape = b.input_shape(kA)};
  if (rows == nullptr) a_data = batch_first(b, kA, side_a);
  Stack left = stack_of(a_data, true);
  if (a_transposed) std::swap(left.rows, left.columns);
  DeviceTensor b_data{.dtype = b.input_dtype(kB), .shape = b_shape};
  if (!weights) b_data = batch_first(b, kB, side_b);
  Stack right = stack_of(b_data, false);
  if (b_transposed) std::swap(right.rows, right.columns);
  if (left.columns != right.rows) {
    fail(ErrorCode::ShapeMismatch,
         cat("dimension mismatch: ", left.columns, " columns of A meet ", right.rows, " rows of B"));
  }
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  if (left.columns == 0) return sum_nothing(b, out, epilogue);

  GemmProblem p;
  p.m = left.rows, p.n = right.columns, p.k = left.columns;
  p.precision = precision_of(b);
  p.epilogue = epilogue;
  p.epilogue.out = out.at;
  p.epilogue.out_type = element_of(out.dtype);
  p.epilogue.out_row = p.n;
  p.epilogue.residual_row = epilogue.residual != 0 ? p.n : 0;
  const Shape batch = tensor::broadcast(left.batch, right.batch);
  if (right.batch.numel() == 1 && !a_transposed) {
    p.m *= batch.numel();  // one matrix B: all rows of A are one matrix
  } else if (!batch_parts(batch, left, right, p)) {
    repeat(b, left, batch);
    repeat(b, right, batch);
    p.batch[0] = p.batch[1] = 1;
    batch_parts(batch, left, right, p);
  }
  const std::int64_t sizes[] = {left.rows * left.columns, right.rows * right.columns, p.m * p.n};
  p.a.address = rows != nullptr ? rows->reads[0].at : left.data.at;
  p.a.type = element_of(left.data.dtype);
  p.a.row_stride = a_transposed ? 1 : left.columns;
  p.a.k_stride = a_transposed ? left.rows : 1;
  p.b.address = right.data.at;
  p.b.type = element_of(right.data.dtype);
  p.b.row_stride = b_transposed ? p.k : 1;
  p.b.k_stride = b_transposed ? 1 : p.n;
  std::int64_t matrices = 1;
  for (int i = 0; i < 2; ++i) {
    p.a.batch_stride[i] *= sizes[0];
    p.b.batch_stride[i] *= sizes[1];
    p.epilogue.out_batch[i] = matrices * sizes[2];
    p.epilogue.residual_batch[i] = p.epilogue.out_batch[i];
    matrices *= p.batch[i];
  }
  WeightLayout layout;
  p.b_constant = weights;
  if (weights) use_weights(b, kB, b_transposed, p, layout);
  if (rows != nullptr) {
    p.norm = rows->norm;
    if (weights && can_normalize_rows(b.target(), p)) {
      b.use_deferred(kA);
    } else {
      p.norm = {};
      p.a.address = b.input(kA).at;
    }
  }
  launch_gemm(b, p);
}

bool has_product_types(const NodeView& node) {
  return !node.is_empty(0) && !node.is_empty(1) && kProductTypes.contains(node.input_dtype(0)) &&
         node.all_of({node.input_dtype(0)});
}

bool can_matmul(const NodeView& node) { return has_product_types(node); }
void lower_matmul(Builder& b) { product(b, {}, {}, {}); }

/// Bias along the last dim; float32 in kernels, as sums are.
void set_bias(Builder& b, std::size_t input, Epilogue& epilogue) {
  if (!b.has_input(input)) return;
  const Shape bias = b.input_shape(input);
  if (bias.numel() != b.output_shape(0).back()) {
    fail(ErrorCode::ShapeMismatch,
         cat("a bias of shape ", bias.to_string(), " does not fit ", b.output_shape(0).back(), " columns"));
  }
  epilogue.bias = b.input_floats(input);
  epilogue.columns_constant = b.known(input) != nullptr;
}

bool can_fused_matmul(const NodeView& node) { return has_product_types(node) && can_activate(node); }
void lower_fused_matmul(Builder& b) {
  Epilogue epilogue{.alpha = b.attributes().get_float("alpha", 1)};
  set_bias(b, 2, epilogue);
  if (b.has_input(3)) {
    const DeviceTensor residual = b.input(3);
    epilogue.residual = residual.at;
    epilogue.residual_type = element_of(residual.dtype);
  }
  set_activation(b.attributes(), epilogue);
  product(b, {}, {.transposed = b.attributes().get_int("transB", 0) != 0}, epilogue);
}

/// com.microsoft's: vectors are not transposed.
void lower_turned_matmul(Builder& b) {
  const auto side = [&](std::size_t i, const char* matrix, const char* batch) {
    return Side{.transposed = b.input_shape(i).rank() > 1 && b.attributes().get_int(matrix, 0) != 0,
                .batch_inside = b.attributes().get_int(batch, 0) != 0};
  };
  product(b, side(0, "transA", "transBatchA"), side(1, "transB", "transBatchB"),
          {.alpha = b.attributes().get_float("alpha", 1)});
}

/// C with every element there and times beta.
DevicePtr whole_c(Builder& b, const DeviceTensor& c, const Shape& shape, float beta) {
  const DevicePtr to = b.scratch(tensor::byte_size(c.dtype, shape.numel()));
  const Shape strides = tensor::broadcast_strides(c.shape, shape), dense = shape.strides();
  b.launch(plan_strided_copy(b.target(), {.from = c.at,
                                          .to = to,
                                          .element_bytes = c.element_bytes(),
                                          .dims = shape,
                                          .from_stride = {strides.begin(), strides.end()},
                                          .to_stride = {dense.begin(), dense.end()}}));
  const DeviceTensor all{.dtype = c.dtype, .shape = shape, .at = to};
  if (beta != 1) {
    b.launch(plan_elementwise(b.target(), {.kernel = cat("unary_", kernel_suffix(c.dtype)),
                                           .op = static_cast<std::uint32_t>(UnaryOp::affine),
                                           .inputs = {all},
                                           .out = all,
                                           .a = beta}));
  }
  return to;
}

bool can_gemm(const NodeView& node) { return has_product_types(node) && can_activate(node); }
void lower_gemm(Builder& b) {
  Epilogue epilogue{.alpha = b.attributes().get_float("alpha", 1)};
  set_activation(b.attributes(), epilogue);
  const float beta = b.attributes().get_float("beta", 1);
  const Shape out = b.output_shape(0);
  if (b.has_input(2) && beta != 0) {
    const Shape shape = b.input_shape(2);
    const bool is_row = shape.numel() == out[1] && shape.rank() > 0 && shape.back() == out[1];
    if (beta == 1 && is_row) {
      set_bias(b, 2, epilogue);
    } else {
      const DeviceTensor c = b.input(2);
      epilogue.residual = beta == 1 && shape == out ? c.at : whole_c(b, c, out, beta);
      epilogue.residual_type = element_of(c.dtype);
    }
  }
  product(b, {.transposed = b.attributes().get_int("transA", 0) != 0},
          {.transposed = b.attributes().get_int("transB", 0) != 0}, epilogue);
}

}  // namespace

void register_matmul(Lowerings& lowerings) {
  lowerings.push_back({"", "MatMul", can_matmul, lower_matmul});
  lowerings.push_back({"", "Gemm", can_gemm, lower_gemm});
  lowerings.push_back({graph::kMicrosoft, "FusedMatMul", can_matmul, lower_turned_matmul});
  lowerings.push_back({graph::kMicrosoft, "TransposeMatMul", can_matmul, lower_turned_matmul});
  lowerings.push_back({graph::kOwn, "FusedMatMul", can_fused_matmul, lower_fused_matmul});
}

}  // namespace infernode::cuda
