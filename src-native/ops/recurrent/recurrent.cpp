#include <cctype>

#include "base/error.h"
#include "ops/matmul/product.h"
#include "ops/recurrent/recurrent.h"

namespace infernode::ops {

using kernel::KernelContext;
using microkernels::GemmTable;
using tensor::Shape;
using tensor::Tensor;

namespace {

struct KnownFunction {
  const char* name;
  CellFunction function;
  bool takes_alpha, takes_beta;
};

using Kind = CellFunction::Kind;
constexpr KnownFunction kFunctions[] = {
    {"relu", {Kind::Relu, 0, 0}, false, false},
    {"tanh", {Kind::Tanh, 0, 0}, false, false},
    {"sigmoid", {Kind::Sigmoid, 0, 0}, false, false},
    {"affine", {Kind::Affine, 1, 0}, true, true},
    {"leakyrelu", {Kind::LeakyRelu, 0.01f, 0}, true, false},
    {"thresholdedrelu", {Kind::ThresholdedRelu, 1, 0}, true, false},
    {"scaledtanh", {Kind::ScaledTanh, 1, 1}, true, true},
    {"hardsigmoid", {Kind::HardSigmoid, 0.2f, 0.5f}, true, true},
    {"elu", {Kind::Elu, 1, 0}, true, false},
    {"softsign", {Kind::Softsign, 0, 0}, false, false},
    {"softplus", {Kind::Softplus, 0, 0}, false, false},
};

const KnownFunction& find_function(const std::string& name) {
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const KnownFunction& known : kFunctions) {
    if (lower == known.name) return known;
  }
  fail(ErrorCode::InvalidModel, cat("unknown activation '", name, "' of a recurrent operator"));
}

void check_shape(const char* what, const Tensor* t, std::initializer_list<std::size_t> dims) {
  if (t == nullptr) return;
  Shape expected;
  for (const std::size_t d : dims) expected.push_back(static_cast<std::int64_t>(d));
  if (t->shape() == expected) return;
  fail(ErrorCode::ShapeMismatch, cat(what, " is ", t->shape().to_string(), ", expected ", expected.to_string()),
       {.expected = expected.to_string(), .actual = t->shape().to_string()});
}

}  // namespace

RecurrentAttributes::RecurrentAttributes(const graph::Attributes& attributes, std::size_t gate_count,
                                         std::initializer_list<Kind> defaults)
    : gates(gate_count),
      batch_first(attributes.get_int("layout", 0) != 0),
      clip(attributes.get_float("clip", 0)),
      functions_per_direction(defaults.size()),
      hidden_size(attributes.get_int("hidden_size", 0)) {
  const std::string direction = attributes.get_string("direction", "forward");
  if (direction == "bidirectional") {
    directions = 2;
  } else if (direction == "reverse") {
    first_reverse = true;
  } else if (direction != "forward" && direction != "foward") {  // GRU 1's default is spelt so
    fail(ErrorCode::InvalidModel, cat("direction '", direction, "' is none of forward, reverse, bidirectional"));
  }
  const std::size_t count = directions * defaults.size();
  const std::vector<std::string> names = attributes.get_strings("activations");
  const std::vector<float> alphas = attributes.get_floats("activation_alpha");
  const std::vector<float> betas = attributes.get_floats("activation_beta");
  // RNN 1's attribute has defaults for two directions, also where there is one.
  if (!names.empty() && names.size() < count)
    fail(ErrorCode::InvalidModel, cat("attribute activations names ", names.size(), " functions, expected ", count));
  std::size_t alpha = 0, beta = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Kind usual = defaults.begin()[i % defaults.size()];
    if (names.empty()) {
      functions.push_back({usual, 0, 0});
      continue;
    }
    const KnownFunction& known = find_function(names[i]);
    functions.push_back(known.function);
    if (known.takes_alpha && alpha < alphas.size()) functions.back().alpha = alphas[alpha++];
    if (known.takes_beta && beta < betas.size()) functions.back().beta = betas[beta++];
    standard = standard && known.function.kind == usual;
  }
}

RecurrentSizes recurrent_sizes(const KernelContext& ctx, const RecurrentAttributes& attributes, const Shape& w,
                               const Shape& r, std::size_t states) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3) {
    fail(ErrorCode::ShapeMismatch,
         cat("X, W and R must have rank 3, got ", x.shape().to_string(), ", ", w.to_string(), " and ", r.to_string()));
  }
  const auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  RecurrentSizes s{.steps = size(x.dim(attributes.batch_first ? 1 : 0)),
                   .batch = size(x.dim(attributes.batch_first ? 0 : 1)),
                   .input = size(x.dim(2)),
                   .hidden = size(r[2]),
                   .directions = attributes.directions,
                   .batch_first = attributes.batch_first,
                   .lengths = {}};
  const std::int64_t rows = checked_mul(r[2], static_cast<std::int64_t>(attributes.gates));
  const auto directions = static_cast<std::int64_t>(s.directions);
  if (w != Shape{directions, rows, x.dim(2)} || r != Shape{directions, rows, r[2]}) {
    fail(ErrorCode::ShapeMismatch,
         cat("W ", w.to_string(), " and R ", r.to_string(), " do not fit X ", x.shape().to_string(), " and ",
             s.directions, " direction(s) of ", attributes.gates, " gates"));
  }
  if (attributes.hidden_size != 0 && attributes.hidden_size != r[2])
    fail(ErrorCode::ShapeMismatch, cat("hidden_size is ", attributes.hidden_size, " but R is ", r.to_string()));
  check_shape("B", ctx.optional_input(3), {s.directions, 2 * attributes.gates * s.hidden});
  for (std::size_t i = 5; i < 5 + states; ++i) {
    const char* what = i == 5 ? "initial_h" : "initial_c";
    if (s.batch_first) {
      check_shape(what, ctx.optional_input(i), {s.batch, s.directions, s.hidden});
    } else {
      check_shape(what, ctx.optional_input(i), {s.directions, s.batch, s.hidden});
    }
  }
  s.lengths.reserve(s.batch);
  kernel::Watch watch(ctx.run());
  in_pieces(watch, s.batch, 2.0, [&](std::size_t, std::size_t end) { s.lengths.resize(end, s.steps); });
  if (const Tensor* lengths = ctx.optional_input(4)) {
    check_shape("sequence_lens", lengths, {s.batch});
    each_in_pieces(watch, s.batch, 1.0, [&](std::size_t b) {
      const std::int32_t n = lengths->data<std::int32_t>()[b];
      if (n < 0 || size(n) > s.steps) {
        fail(ErrorCode::InvalidArgument,
             cat("sequence_lens[", b, "] is ", n, ", expected a length from 0 to ", s.steps));
      }
      s.lengths[b] = size(n);
    });
  }
  return s;
}

const GemmTable& recurrent_table(const kernel::KernelInfo& info) {
  constexpr std::size_t kLongSum = 1024;
  const GemmTable& table = product_table(info);
  return table.weights.form(kLongSum) == microkernels::PackedForm::kBf16Pieces ? info.kernels().gemm_float32 : table;
}

RecurrentWeight::RecurrentWeight(kernel::KernelInfo& info, std::size_t input, std::size_t first_gate,
                                 std::size_t last_gate, std::size_t gates)
    : input_(input),
      first_(first_gate),
      last_(last_gate),
      gates_(gates),
      kernels_(info.kernels()),
      table_(recurrent_table(info)) {
  const Tensor* weight = info.constant(input);
  if (weight == nullptr || weight->rank() != 3 || weight->numel() == 0 || !gemm_type(weight->dtype())) return;
  if (weight->dim(1) % static_cast<std::int64_t>(gates) != 0) return;
  shape_ = weight->shape();
  packed_ = PackedWeight(
      info, input, cat("recurrent.", first_, ".", last_, ".", gates_),
      table_.weights.packed(n(shape_), static_cast<std::size_t>(shape_[2]), nullptr),
      static_cast<std::size_t>(shape_[0]),
      [&](const Tensor& t, std::size_t direction, std::byte* to) { pack(t, direction, 0, n(shape_), to); });
}

/// Columns [begin, end) of the right-hand side.
void RecurrentWeight::pack(const Tensor& weight, std::size_t direction, std::size_t begin, std::size_t end,
                           std::byte* to) const {
  const std::size_t rows = static_cast<std::size_t>(weight.dim(1)), k = static_cast<std::size_t>(weight.dim(2)),
                    count = n(weight.shape()), bytes = tensor::bit_size(weight.dtype()) / 8;
  const auto* first =
      static_cast<const std::byte*>(weight.raw()) + (direction * rows + rows / gates_ * first_) * k * bytes;
  table_.weights.pack(count, k, first, *gemm_type(weight.dtype()), k, true, to, begin, end);
}

template <>
RecurrentWeight::Matrix<float> RecurrentWeight::matrix(KernelContext& ctx, std::size_t direction) const {
  const Shape& s = shape(ctx);
  Matrix<float> m{.n = n(s), .k = static_cast<std::size_t>(s[2]), .packed = {}, .plain = nullptr, .hold = {}};
  if (packed_) {
    m.packed = packed_.read(table_.weights.name, direction);
  } else {
    m.hold = PackedWeight(ctx.run(), table_.weights.packed(m.n, m.k, nullptr), 1, table_.nr,
                          [&](std::size_t, std::size_t begin, std::size_t end, std::byte* to) {
                            pack(ctx.input(input_), direction, begin, end, to);
                          });
    m.packed = m.hold.read(table_.weights.name);
  }
  return m;
}

template <>
RecurrentWeight::Matrix<double> RecurrentWeight::matrix(KernelContext& ctx, std::size_t direction) const {
  const Tensor& t = ctx.input(input_);
  const std::size_t rows = static_cast<std::size_t>(t.dim(1)), k = static_cast<std::size_t>(t.dim(2));
  return {.n = n(t.shape()),
          .k = k,
          .packed = {},
          .plain = t.data<double>() + (direction * rows + rows / gates_ * first_) * k,
          .hold = {}};
}

void multiply_rows(KernelContext& ctx, const GemmTable& table, std::size_t rows, const float* a,
                   const RecurrentWeight::Matrix<float>& matrix, float* c, std::size_t ldc, bool accumulate,
                   std::size_t begin, std::size_t end, const StepHands& hands) {
  const microkernels::GemmArgs args{.m = rows,
                                    .n = matrix.n,
                                    .k = matrix.k,
                                    .a = a,
                                    .lda = matrix.k,
                                    .packed_b = matrix.packed,
                                    .c = c,
                                    .ldc = ldc,
                                    .accumulate = accumulate,
                                    .epilogue = {}};
  const std::size_t panels = ceil_div(matrix.n, table.nr), parts = std::min(hands.threads, panels);
  if (parts < 2) return table.gemm(args, {begin, end, 0, matrix.n}, hands.scratch);
  // Few rows wait for the weights, which each thread then has in a cache of its own.
  constexpr double kProductsPerNs = 35;
  const double cost = static_cast<double>((end - begin) * matrix.n) * static_cast<double>(matrix.k) /
                      static_cast<double>(parts) / kProductsPerNs;
  ctx.parallel_for(parts, cost, [&](std::size_t first, std::size_t last, std::size_t slot) {
    table.gemm(args,
               {begin, end, first * panels / parts * table.nr, std::min(matrix.n, last * panels / parts * table.nr)},
               hands.scratch + slot * hands.stride);
  });
}

void multiply_rows(KernelContext&, const GemmTable& table, std::size_t rows, const double* a,
                   const RecurrentWeight::Matrix<double>& matrix, double* c, std::size_t ldc, bool accumulate,
                   std::size_t begin, std::size_t end, const StepHands& hands) {
  table.dgemm({.m = rows,
               .n = matrix.n,
               .k = matrix.k,
               .a = a,
               .lda = matrix.k,
               .b = matrix.plain,
               .ldb = matrix.k,
               .trans_b = true,
               .c = c,
               .ldc = ldc,
               .accumulate = accumulate},
              {begin, end, 0, matrix.n}, hands.scratch);
}

void project_rows(KernelContext& ctx, const GemmTable& table, std::size_t rows, const float* x,
                  const RecurrentWeight::Matrix<float>& matrix, const float* bias, float* out) {
  run_gemm(ctx, table,
           {.m = rows,
            .n = matrix.n,
            .k = matrix.k,
            .a = x,
            .lda = matrix.k,
            .packed_b = matrix.packed,
            .c = out,
            .ldc = matrix.n,
            .epilogue = {.bias_n = bias, .activation = {}}});
}

void project_rows(KernelContext& ctx, const GemmTable& table, std::size_t rows, const double* x,
                  const RecurrentWeight::Matrix<double>& matrix, const double* bias, double* out) {
  ctx.parallel_for(rows, 0.3 * static_cast<double>(matrix.n), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) std::copy_n(bias, matrix.n, out + i * matrix.n);
  });
  run_dgemm(ctx, table,
            {.m = rows,
             .n = matrix.n,
             .k = matrix.k,
             .a = x,
             .lda = matrix.k,
             .b = matrix.plain,
             .ldb = matrix.k,
             .trans_b = true,
             .c = out,
             .ldc = matrix.n,
             .accumulate = true});
}

Tensor recurrent_output(KernelContext& ctx, const RecurrentSizes& sizes) {
  if (!ctx.wants_output(0)) return {};
  const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
  const std::int64_t steps = dim(sizes.steps), batch = dim(sizes.batch), d = dim(sizes.directions);
  return ctx.output(
      0, sizes.batch_first ? Shape{batch, steps, d, dim(sizes.hidden)} : Shape{steps, d, batch, dim(sizes.hidden)});
}

void infer_recurrent(kernel::InferContext& ctx) {
  using graph::Dim;
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  if (x->size() != 3)
    fail(ErrorCode::ShapeMismatch, cat(ctx.node().op_type, ": X must have rank 3, got ", graph::to_string(*x)));
  const bool batch_first = ctx.attributes().get_int("layout", 0) != 0;
  const Dim steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1];
  const Dim directions = ctx.attributes().get_string("direction", "forward") == "bidirectional" ? 2 : 1;
  Dim hidden = Dim::unknown();
  const graph::SymShape* r = ctx.input_shape(2);
  if (r != nullptr && r->size() == 3) {
    hidden = (*r)[2];
  } else if (ctx.attributes().has("hidden_size")) {
    hidden = ctx.attributes().get_int("hidden_size");
  }
  if (ctx.has_output(0)) {
    ctx.set_output_shape(0, batch_first ? graph::SymShape{batch, steps, directions, hidden}
                                        : graph::SymShape{steps, directions, batch, hidden});
  }
  for (std::size_t o : {1, 2}) {
    if (!ctx.has_output(o)) continue;
    ctx.set_output_shape(
        o, batch_first ? graph::SymShape{batch, directions, hidden} : graph::SymShape{directions, batch, hidden});
  }
}

}  // namespace infernode::ops
