#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/system.h"
#include "microkernels/elementwise/convert.h"
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

/// Cuts each product into ranges and runs call(product, range, scratch, again) for all of them; `again`: the call
/// before with this scratch was one of the same product's same rows. Small products are not cut: then only the batch is
/// split.
template <class Call>
void split_work(kernel::KernelContext& ctx, const GemmTable& table, std::size_t m, std::size_t n, std::size_t k,
                std::size_t count, double flops_per_ns, const Call& call) {
  if (m == 0 || n == 0 || count == 0) return;
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const std::size_t per_product = ceil_div(threads, std::min(count, threads));
  const microkernels::GemmSplit split = microkernels::split_gemm(table, m, n, k, per_product);
  const std::size_t stride = align_up(table.scratch_floats * sizeof(float), 64);
  const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
  const double cost = 2.0 * static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(std::max<std::size_t>(k, 1)) / static_cast<double>(split.count()) /
                      flops_per_ns;
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> rows_before(threads, kNone);  // by slot: of all products' rows of ranges, the last
  ctx.parallel_for(count * split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    auto* memory = reinterpret_cast<float*>(scratch.data() + slot * stride);
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t rows = i / split.count_n, before = std::exchange(rows_before[slot], rows);
      call(i / split.count(), split.range(i % split.count(), m, n), memory, rows == before);
    }
  });
}

std::int64_t offset_at(std::span<const std::int64_t> offsets, std::size_t i) {
  return offsets.empty() ? 0 : offsets[i];
}

/// A weight of this size and more is packed in so many parts, and the pages of each are let go of when it is packed:
/// memory never holds the weight and its packed form whole.
constexpr std::size_t kPackedInParts = std::size_t{2} << 20, kParts = 4;

void pack_in_parts(kernel::WeightPacker& packer, const GemmTable& table, const Tensor& weight, std::size_t n,
                   std::size_t k, bool transposed, float* out) {
  const std::size_t row = (transposed ? k : n) * weight.bytes() / (n * k);
  const std::size_t columns = align_up(ceil_div(n, kParts), table.nr);
  const FloatType type = *gemm_type(weight.dtype());
  for (std::size_t begin = 0; begin < n; begin += columns) {
    const std::size_t end = std::min(n, begin + columns);
    table.pack_b(n, k, weight.raw(), type, transposed ? k : n, transposed, out, begin, end);
    if (weight.bytes() < kPackedInParts) continue;
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
  return microkernels::gemm_table(info.cpu_rung(), info.input_type(0).elem == DType::Float32
                                                       ? info.float32_precision()
                                                       : microkernels::Float32Precision::kHighest);
}

PackedMatrix::PackedMatrix(kernel::KernelInfo& info, const GemmTable& table, std::size_t input, bool transposed) {
  const Tensor& b = *info.constant(input);
  n_ = b.dim(transposed ? 0 : 1);
  k_ = b.numel() / n_;
  const auto n = static_cast<std::size_t>(n_), k = static_cast<std::size_t>(k_);
  packed_ = info.packer().pack(
      info.node(), input, cat("gemm.b.", table.name, transposed ? ".t" : ""), [&](const Tensor& weight) {
        const std::size_t bytes = checked_mul(table.packed_b_floats(n, k), sizeof(float));
        tensor::Buffer packed = tensor::host_allocator().allocate(bytes);
        pack_in_parts(info.packer(), table, weight, n, k, transposed, reinterpret_cast<float*>(packed.data()));
        return packed;
      });
  info.release_constant(input);
}

void run_gemm(kernel::KernelContext& ctx, const GemmTable& table, const GemmArgs& args, const GemmBatch& batch) {
  constexpr double kFlopsPerNs = 60;
  split_work(ctx, table, args.m, args.n, args.k, batch.count, kFlopsPerNs,
             [&](std::size_t product, const microkernels::GemmRange& range, float* scratch, bool again) {
               GemmArgs one = args;
               one.a_again = again;
               one.precision = ctx.run().precision;
               one.a = advance(args.a, offset_at(batch.a_offsets, product), type_bytes(args.a_type));
               if (args.b != nullptr)
                 one.b = advance(args.b, offset_at(batch.b_offsets, product),
                                 args.b_quantized != nullptr ? 1 : type_bytes(args.b_type));
               one.c = args.c + static_cast<std::int64_t>(product) * batch.c_stride;
               table.gemm(one, range, scratch);
             });
}

void run_dgemm(kernel::KernelContext& ctx, const GemmTable& table, const microkernels::DgemmArgs& args,
               const GemmBatch& batch) {
  constexpr double kFlopsPerNs = 20;
  split_work(ctx, table, args.m, args.n, args.k, batch.count, kFlopsPerNs,
             [&](std::size_t product, const microkernels::GemmRange& range, float* scratch, bool) {
               microkernels::DgemmArgs one = args;
               one.a = args.a + offset_at(batch.a_offsets, product);
               one.b = args.b + offset_at(batch.b_offsets, product);
               one.c = args.c + static_cast<std::int64_t>(product) * batch.c_stride;
               table.dgemm(one, range, scratch);
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

void narrow(CpuRung rung, const float* from, const Tensor& to) {
  const microkernels::ConvertTable& table = microkernels::convert_table(rung);
  auto* bits = static_cast<std::uint16_t*>(to.mutable_raw());
  (to.dtype() == DType::Float16 ? table.f32_to_f16 : table.f32_to_bf16)(from, bits,
                                                                        static_cast<std::size_t>(to.numel()));
}

float* float_target(kernel::KernelContext& ctx, const Tensor& out, tensor::Buffer& hold) {
  if (out.dtype() == DType::Float32) return out.mutable_data<float>();
  hold = ctx.scratch(checked_mul(static_cast<std::size_t>(out.numel()), sizeof(float)));
  return reinterpret_cast<float*>(hold.data());
}

}  // namespace infernode::ops
