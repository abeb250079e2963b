#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/system.h"
#include "ops/common/reals.h"
#include "ops/matmul/product.h"

namespace infernode::ops {

namespace {

using microkernels::FloatType;
using microkernels::GemmArgs;
using microkernels::GemmTable;
using tensor::DType;
using tensor::Tensor;

std::size_t type_bytes(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

const void* advance(const void* pointer, std::int64_t elements, std::size_t bytes) {
  return static_cast<const std::byte*>(pointer) + elements * static_cast<std::int64_t>(bytes);
}

/// What a thread has of its own while products are made.
struct Hands {
  float* scratch;
  microkernels::PreparedA a;
  std::size_t rows = static_cast<std::size_t>(-1);  ///< that `a` may hold: of all products' rows of ranges
};

/// Cuts each product into ranges and runs call(product, range, hands) for all of them; the hands' `a` is of the range's
/// rows. Small products are not cut: then only the batch is split. `taken`: k of a product of float32 that takes as
/// long.
template <class Call>
void split_work(kernel::KernelContext& ctx, const GemmTable& table, std::size_t m, std::size_t n, std::size_t k,
                std::size_t taken, std::size_t count, double flops_per_ns, const Call& call) {
  if (m == 0 || n == 0 || count == 0) return;
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const std::size_t per_product = ceil_div(threads, std::min(count, threads));
  const microkernels::GemmSplit split = microkernels::split_gemm(table, m, n, taken, per_product);
  const std::size_t own = align_up(table.scratch_floats * sizeof(float), 64);
  const std::size_t kept = split.count_n > 1 ? align_up(table.prepared_floats * sizeof(float), 64) : 0;
  const tensor::Buffer memory = ctx.scratch(checked_mul(own + kept, threads));
  std::vector<Hands> hands(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    std::byte* const at = memory.data() + i * (own + kept);
    hands[i].scratch = reinterpret_cast<float*>(at);
    if (kept > 0) hands[i].a.memory = reinterpret_cast<float*>(at + own);
  }
  constexpr double kNsPerCall = 20, kWritten = 8;  // multiply-adds in the time that an element takes beside them
  const double cost = kNsPerCall + 2.0 * static_cast<double>(m) * static_cast<double>(n) *
                                       (static_cast<double>(k) + kWritten) / static_cast<double>(split.count()) /
                                       flops_per_ns;
  ctx.parallel_for(count * split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t rows = i / split.count_n;
      if (std::exchange(hands[slot].rows, rows) != rows) hands[slot].a.ready = false;
      call(i / split.count(), split.range(i % split.count(), m, n), hands[slot]);
    }
  });
}

/// Elements of sums that are made between two looks whether the run is to end.
constexpr std::size_t kDepth = std::size_t{1} << 20;

/// Multiplies by parts of the sums, with a look between two: sums of more elements are those of their parts' sums,
/// wherever the work is cut.
template <class Args, class Multiply>
void by_depth(const kernel::RunContext& run, Args args, std::size_t a_bytes, std::size_t b_bytes,
              const Multiply& multiply) {
  for (std::size_t left = args.k;; run.check()) {
    args.k = std::min(left, kDepth);
    multiply(args);
    left -= args.k;
    if (left == 0) return;
    const std::size_t a_step = args.trans_a ? args.k * args.lda : args.k;
    const std::size_t b_step = args.trans_b ? args.k : args.k * args.ldb;
    args.a = static_cast<decltype(args.a)>(advance(args.a, static_cast<std::int64_t>(a_step), a_bytes));
    args.b = static_cast<decltype(args.b)>(advance(args.b, static_cast<std::int64_t>(b_step), b_bytes));
    args.accumulate = true;
    if constexpr (requires { args.epilogue; }) args.epilogue = {};  // the first part had it
  }
}

/// Whether the product's sums are long, and parts of them can be made one by one.
bool goes_by_depth(const GemmArgs& args) {
  return args.k > kDepth && !args.packed_b && args.b_quantized == nullptr &&
         args.epilogue.activation.kind == microkernels::Activation::kNone;
}

std::int64_t offset_at(std::span<const std::int64_t> offsets, std::size_t i) {
  return offsets.empty() ? 0 : offsets[i];
}

/// A weight of this size and more is packed in so many parts, and the pages of each are let go of when it is packed:
/// memory never holds the weight and its packed form whole. Between parts a load that is cancelled ends.
constexpr std::size_t kPackedInParts = std::size_t{2} << 20, kMostOfPart = std::size_t{16} << 20, kParts = 4;

void pack_in_parts(kernel::WeightPacker& packer, const GemmTable& table, const Tensor& weight, std::size_t n,
                   std::size_t k, bool transposed, void* out) {
  const std::size_t row = (transposed ? k : n) * weight.bytes() / (n * k);
  const std::size_t parts = std::max(kParts, weight.bytes() / kMostOfPart);
  const std::size_t columns = align_up(ceil_div(n, parts), table.nr);
  const FloatType type = *gemm_type(weight.dtype());
  for (std::size_t begin = 0; begin < n; begin += columns) {
    const std::size_t end = std::min(n, begin + columns);
    table.weights.pack(n, k, weight.raw(), type, transposed ? k : n, transposed, out, begin, end);
    if (weight.bytes() < kPackedInParts) continue;
    packer.look();
    if (transposed) {
      packer.done_with(weight, begin * row, (end - begin) * row);
      continue;
    }
    const std::size_t first = begin * row / n, bytes = end * row / n - first;
    if (bytes < 2 * page_size()) continue;  // too few columns to fill pages
    for (std::size_t i = 0; i < k; ++i) packer.done_with(weight, i * row + first, bytes);
  }
}

}  // namespace

const GemmTable& product_table(const kernel::KernelInfo& info) {
  const microkernels::KernelSet& kernels = info.kernels();
  return info.input_type(0).elem == DType::Float32 ? kernels.gemm : kernels.gemm_float32;
}

std::vector<std::string> product_methods(const kernel::KernelInfo& info) {
  std::vector<std::string> names;
  const std::optional<ProductSite> site = product_site(info);
  if (!site) return names;
  for (const ProductChoice& choice : ProductLoops(info).choices(*site)) names.push_back(choice.name);
  return names;
}

PackedMatrix::PackedMatrix(kernel::KernelInfo& info, const GemmTable& table, std::size_t input, bool transposed) {
  const Tensor& b = *info.constant(input);
  n_ = b.dim(transposed ? 0 : 1);
  k_ = b.numel() / n_;
  const auto n = static_cast<std::size_t>(n_), k = static_cast<std::size_t>(k_);
  packed_ = PackedWeight(info, input, transposed ? "matrix.t" : "matrix", table.weights.packed(n, k, nullptr), 1,
                         [&](const Tensor& weight, std::size_t, std::byte* to) {
                           pack_in_parts(info.packer(), table, weight, n, k, transposed, to);
                         });
  b_ = packed_.read(table.weights.name);
  info.release_constant(input);
}

void check_packing(const GemmTable& table, const microkernels::PackedOperand& b) {
  const bool shared = b.packing != nullptr && std::string_view(b.packing) == table.operand.name;
  if (b && b.floats() == nullptr && !shared) check_packing(b, table.weights.name);
}

void run_gemm(kernel::KernelContext& ctx, const ProductLoops& loops, const GemmArgs& args, const GemmBatch& batch) {
  const ProductWay quickest = loops.quickest(product_site(args));
  GemmArgs chosen = args;
  chosen.way = quickest.way;
  run_gemm(ctx, *quickest.table, chosen, batch);
}

void run_gemm(kernel::KernelContext& ctx, const GemmTable& table, const GemmArgs& args, const GemmBatch& batch) {
  constexpr double kFlopsPerNs = 60;
  check_packing(table, args.packed_b);
  split_work(ctx, table, args.m, args.n, args.k, args.k, batch.count, kFlopsPerNs,
             [&](std::size_t product, const microkernels::GemmRange& range, Hands& hands) {
               GemmArgs one = args;
               const bool parts = goes_by_depth(args);
               if (hands.a.memory != nullptr && !parts) one.prepared_a = &hands.a;
               one.a = advance(args.a, offset_at(batch.a_offsets, product), type_bytes(args.a_type));
               if (args.b != nullptr)
                 one.b = advance(args.b, offset_at(batch.b_offsets, product),
                                 args.b_quantized != nullptr ? 1 : type_bytes(args.b_type));
               one.c = args.c + static_cast<std::int64_t>(product) * batch.c_stride;
               if (!parts) return table.gemm(one, range, hands.scratch);
               by_depth(ctx.run(), one, type_bytes(one.a_type), type_bytes(one.b_type),
                        [&](const GemmArgs& part) { table.gemm(part, range, hands.scratch); });
             });
}

void run_dgemm(kernel::KernelContext& ctx, const GemmTable& table, const microkernels::DgemmArgs& args,
               const GemmBatch& batch) {
  constexpr double kFlopsPerNs = 20;
  constexpr std::size_t kSlower = 4, kElement = 256;  // as products, and a short sum's element
  split_work(ctx, table, args.m, args.n, args.k, kSlower * args.k + kElement, batch.count, kFlopsPerNs,
             [&](std::size_t product, const microkernels::GemmRange& range, Hands& hands) {
               microkernels::DgemmArgs one = args;
               one.a = args.a + offset_at(batch.a_offsets, product);
               one.b = args.b + offset_at(batch.b_offsets, product);
               one.c = args.c + static_cast<std::int64_t>(product) * batch.c_stride;
               by_depth(ctx.run(), one, sizeof(double), sizeof(double),
                        [&](const microkernels::DgemmArgs& part) { table.dgemm(part, range, hands.scratch); });
             });
}

std::optional<FloatType> gemm_type(DType type) {
  switch (type) {
    case DType::Float32:
      return FloatType::kF32;
    case DType::Float16:
      return FloatType::kF16;
    case DType::BFloat16:
      return FloatType::kBf16;
    default:
      return std::nullopt;
  }
}

void narrow(const kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const float* from,
            const Tensor& to) {
  convert_reals(ctx.run(), kernels, DType::Float32, from, to.dtype(), to.mutable_raw(),
                static_cast<std::size_t>(to.numel()));
}

float* float_target(kernel::KernelContext& ctx, const Tensor& out, tensor::Buffer& hold) {
  if (out.dtype() == DType::Float32) return out.mutable_data<float>();
  hold = ctx.scratch(checked_mul(static_cast<std::size_t>(out.numel()), sizeof(float)));
  return reinterpret_cast<float*>(hold.data());
}

}  // namespace infernode::ops
