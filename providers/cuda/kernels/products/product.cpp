#include "providers/cuda/kernels/products/product.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/half.h"
#include "providers/cuda/kernels/params/gemv.h"
#include "providers/cuda/kernels/products/tensor_map.h"
#include "providers/cuda/kernels/shared_request.h"

namespace infernode::cuda {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t batches(const Product& p) { return p.batch[0] * p.batch[1]; }

std::int64_t tiles(const Product& p, const ProductChoice& c) { return ceil_div(p.m, c.bm) * ceil_div(p.n, c.bn); }

std::string kind_name(const Product& p) {
  if (p.b.pieces > 1) return p.b.pieces == 3 ? "bf16x6" : "bf16x3";
  return p.a.type == Element::f16 ? "f16" : p.a.type == Element::bf16 ? "bf16" : "tf32";
}

std::string tile_name(const ProductChoice& c) { return std::to_string(c.bm) + "x" + std::to_string(c.bn); }

template <class Params>
Launch launch_of(std::string kernel, Dim3 grid, std::uint32_t threads, std::size_t shared, const Params& params) {
  Launch launch;
  launch.kernel = std::move(kernel);
  launch.grid = grid;
  launch.block = {threads, 1, 1};
  launch.shared_bytes = shared_request(shared);
  launch.programmatic = true;
  launch.params = param_bytes(params);
  return launch;
}

Dim3 grid_of(const Product& p, const ProductChoice& c) {
  return {static_cast<std::uint32_t>(tiles(p, c)), static_cast<std::uint32_t>(batches(p)),
          static_cast<std::uint32_t>(c.split)};
}

/// A convolution reads steps of one tap: what a tap has beyond its channels is zero in B.
ConvParams stepped(const Product& p) {
  ConvParams conv = p.conv;
  const std::int64_t step = product_step(p);
  if (conv.taps == 1) conv.channels_padded = static_cast<std::int32_t>(ceil_div(conv.channels_padded, step) * step);
  return conv;
}

FloatOperands float_operands(const Product& p) {
  FloatOperands f{};
  f.a = p.a.address, f.b = p.b.address;
  f.a_row = p.a.row, f.b_row = p.b.row;
  for (int i = 0; i < 2; i++) f.a_batch[i] = p.a.batch[i], f.b_batch[i] = p.b.batch[i];
  f.b_plane = static_cast<std::int32_t>(p.b.plane);
  f.k = static_cast<std::int32_t>(p.k);
  return f;
}

bool is_whole(const Product& p) {
  return p.n % 8 == 0 && is_whole(epilogue_params(p.epilogue, p.column_batch), p.a.type);
}

Launch plan_block(const Target& target, const Product& p, const ProductChoice& c) {
  GemmTmaParams q{};
  if (p.conv.taps) {
    q.a = pixel_map(target, p.a.address, p.a.type, p.conv.channels * p.groups, p.images, p.conv, c.bm);
    q.conv = stepped(p);
  } else {
    TiledView a{p.a.address, p.a.type, p.k, p.m, {p.batch[0], p.batch[1]}, p.a.row, {p.a.batch[0], p.a.batch[1]}};
    q.a = tiled_map(target, a, c.bm);
    for (int i = 0; i < 2; i++) q.a_batch[i] = p.a.batch[i] != 0;
  }
  const std::int64_t b_k = p.b.pieces > 1 ? p.b.plane * (p.b.pieces - 1) + p.b.row : p.k;
  TiledView b{p.b.address, p.b.type, b_k, p.n, {p.batch[0], p.batch[1]}, p.b.row, {p.b.batch[0], p.b.batch[1]}};
  q.b = tiled_map(target, b, c.bn);
  for (int i = 0; i < 2; i++) q.b_batch[i] = p.b.batch[i] != 0;
  q.e = epilogue_params(p.epilogue, p.column_batch);
  q.m = static_cast<std::int32_t>(p.m);
  q.n = static_cast<std::int32_t>(p.n);
  q.n_tiles = static_cast<std::int32_t>(ceil_div(p.n, c.bn));
  q.k_blocks = static_cast<std::int32_t>(product_steps(p));
  q.b_plane = static_cast<std::int32_t>(p.b.plane);
  q.stages = c.stages;
  while (1 << q.log_split < c.split) q.log_split++;
  const std::int64_t stage = (c.bm * (p.b.pieces > 1 ? 2 : 1) + c.bn * p.b.pieces) * 128;
  const std::int64_t sums = std::int64_t{c.kw} * c.bm * (c.bn + 8) * 4;
  q.receive_offset = static_cast<std::int32_t>(ceil_div(std::max(c.stages * stage, sums), 128) * 128);
  q.batch_inner = p.batch[1] == 1 ? 1 << 30 : static_cast<std::int32_t>(p.batch[0]);
  q.b_constant = p.b_constant;
  if (p.b.pieces > 1) q.floats = float_operands(p);
  Dim3 grid{static_cast<std::uint32_t>(q.n_tiles), static_cast<std::uint32_t>(ceil_div(p.m, c.bm)),
            static_cast<std::uint32_t>(batches(p) * c.split)};
  // Weights that the cache cannot hold are read once: by all tiles of rows together.
  const auto weight_bytes = static_cast<std::size_t>(p.n * p.k * p.b.pieces * element_size(p.b.type));
  q.rows_first = weight_bytes > target.l2_bytes / 2 && q.n_tiles <= 65535;
  if (q.rows_first) std::swap(grid.x, grid.y);
  const bool whole = is_whole(p) && (finishes_in_registers(p, c) || !ends_in_registers(c.bm, c.bn));
  const std::string epilogue = whole ? "_whole" : "";
  Launch launch =
      launch_of("gemm_block_" + kind_name(p) + "_" + tile_name(c) + "x" + std::to_string(c.kw) + epilogue, grid,
                static_cast<std::uint32_t>(c.bm / 64 * c.kw * 128 + producers(c.bm, c.bn)), product_shared(p, c), q);
  if (c.split > 1) launch.cluster.z = static_cast<std::uint32_t>(c.split);
  return launch;
}

GemmMmaParams mma_params(const Product& p, const ProductChoice& c) {
  GemmMmaParams q{};
  q.a = p.a.address;
  q.b = p.b.address;
  q.e = epilogue_params(p.epilogue, p.column_batch);
  q.conv = p.conv;
  q.a_row = p.a.row;
  q.b_row = p.b.row;
  for (int i = 0; i < 2; i++) {
    q.a_batch[i] = p.a.batch[i];
    q.b_batch[i] = p.b.batch[i];
  }
  q.b_plane = p.b.plane;
  q.m = static_cast<std::int32_t>(p.m);
  q.n = static_cast<std::int32_t>(p.n);
  q.k = static_cast<std::int32_t>(p.k);
  q.n_tiles = static_cast<std::int32_t>(ceil_div(p.n, c.bn));
  q.k_blocks = static_cast<std::int32_t>(ceil_div(p.k, product_step(p)));
  q.batch_inner = static_cast<std::int32_t>(p.batch[0]);
  q.b_constant = p.b_constant;
  q.a_type = p.a.type;
  q.b_type = p.b.type;
  return q;
}

/// Shared memory to ask for. On Hopper blocks that hold some spread over the SMs, and leave room for the next kernels'
/// only.
std::size_t gemv_shared(const Target& target, const Product& p, const ProductChoice& c) {
  constexpr std::size_t kThreeOfThem = 72 * 1024;
  const std::size_t used = product_shared(p, c);
  return target.sm >= 90 && tiles(p, c) * batches(p) <= 2 * target.sm_count ? std::max(used, kThreeOfThem) : used;
}

Launch plan_gemv(const Target& target, const Product& p, const ProductChoice& c) {
  GemvParams q{};
  q.a = p.a.address;
  q.b = p.b.address;
  q.e = epilogue_params(p.epilogue, p.column_batch);
  q.a_row = p.a.row;
  q.b_row = p.b.row;
  for (int i = 0; i < 2; i++) {
    q.a_batch[i] = p.a.batch[i];
    q.b_batch[i] = p.b.batch[i];
  }
  q.m = static_cast<std::int32_t>(p.m);
  q.n = static_cast<std::int32_t>(p.n);
  q.k = static_cast<std::int32_t>(p.k);
  q.stages = c.stages;
  q.batch_inner = static_cast<std::int32_t>(p.batch[0]);
  q.b_constant = p.b_constant;
  q.norm_scale = p.norm.scale;
  q.norm_bias = p.norm.bias;
  q.norm_epsilon = p.norm.epsilon;
  q.per_k = 1.0f / static_cast<float>(p.k);
  q.norm_no_mean = p.norm.no_mean;
  const float up = p.norm.largest > 1 ? std::exp2(std::ceil(std::log2(p.norm.largest))) : 1;
  const std::uint32_t down = p.a.type == Element::f16 ? Float16(1 / up).bits : BFloat16(1 / up).bits;
  q.norm_down = down << 16 | down;
  q.norm_up = up;
  return launch_of((p.norm ? "gemv_norm_" : "gemv_") + kind_name(p), grid_of(p, c),
                   static_cast<std::uint32_t>(c.kw * 32), gemv_shared(target, p, c), q);
}

Launch plan_reduce(const Product& p, const ProductChoice& c, DevicePtr partial) {
  GemmReduceParams r{};
  r.partial = partial;
  r.e = epilogue_params(p.epilogue, p.column_batch);
  r.m = static_cast<std::int32_t>(p.m);
  r.n = static_cast<std::int32_t>(p.n);
  r.parts = c.split;
  r.batch = static_cast<std::int32_t>(batches(p));
  r.batch_inner = static_cast<std::int32_t>(p.batch[0]);
  const Dim3 grid{static_cast<std::uint32_t>(ceil_div(p.m * ceil_div(p.n, 8), 256)),
                  static_cast<std::uint32_t>(r.batch), 1};
  return launch_of("gemm_reduce", grid, 256, 0, r);
}

/// Grids have no more blocks along y and z.
constexpr std::int64_t kMostBatches = 65535;

/// The product of `count` indices of batch part `part` from `first` on.
Product batch_range(const Product& p, int part, std::int64_t first, std::int64_t count) {
  Product q = p;
  const auto moved = [first](DevicePtr base, std::int64_t stride, Element type) {
    return base ? base + static_cast<DevicePtr>(first * stride * element_size(type)) : 0;
  };
  q.batch[part] = count;
  q.a.address = moved(p.a.address, p.a.batch[part], p.a.type);
  q.b.address = moved(p.b.address, p.b.batch[part], p.b.type);
  Epilogue& e = q.epilogue;
  e.out = moved(e.out, e.out_batch[part], e.out_type);
  e.residual = moved(e.residual, e.residual_batch[part], e.residual_type);
  const std::int64_t columns = part == 0 ? p.column_batch : 0;
  e.bias = moved(e.bias, columns, Element::f32);
  e.scale = moved(e.scale, columns, Element::f32);
  return q;
}

}  // namespace

bool finishes_in_registers(const Product& p, const ProductChoice& c) {
  return ends_in_registers(c.bm, c.bn) && c.split == 1 && is_whole(p);
}

std::int64_t product_step(const Product& p) { return p.a.type == Element::f32 && p.b.pieces == 1 ? 32 : 64; }

std::int64_t product_steps(const Product& p) {
  const std::int64_t step = product_step(p);
  if (!p.conv.taps) return ceil_div(p.k, step);
  return p.conv.taps * ceil_div(p.conv.channels_padded, step);
}

std::size_t product_shared(const Product& p, const ProductChoice& c) {
  const std::int64_t stage = (c.bm * (p.b.pieces > 1 ? 2 : 1) + c.bn * p.b.pieces) * 128;
  const std::int64_t tile = std::int64_t{c.bm} * (c.bn + 8) * 4;
  switch (c.kernel) {
    case ProductKernel::block:
      return static_cast<std::size_t>(1024 + ceil_div(std::max(c.stages * stage, c.kw * tile), 128) * 128 +
                                      (c.split > 1 ? tile : 0));
    case ProductKernel::mma:
      return static_cast<std::size_t>(std::max(c.stages * stage, tile));
    case ProductKernel::gemv: {
      const std::int64_t rows = p.norm ? c.kw * kGemvNormFloats * std::int64_t{4} : 0;
      return static_cast<std::size_t>(std::int64_t{c.stages} * c.kw * kGemvWarpBytes + rows);
    }
    case ProductKernel::simt:
      break;
  }
  return 0;
}

std::size_t product_workspace(const Product& p, const ProductChoice& c) {
  if (c.kernel != ProductKernel::mma || c.split == 1) return 0;
  return static_cast<std::size_t>(c.split * batches(p) * p.m * ceil_div(p.n, 8) * 8 * 4);
}

void plan_product(const Target& target, const Product& p, const ProductChoice& c, DevicePtr workspace,
                  std::vector<Launch>& launches) {
  if (batches(p) > kMostBatches) {
    const int part = p.batch[1] > 1 ? 1 : 0;
    const std::int64_t half = p.batch[part] / 2;
    plan_product(target, batch_range(p, part, 0, half), c, workspace, launches);
    plan_product(target, batch_range(p, part, half, p.batch[part] - half), c, workspace, launches);
    return;
  }
  if (c.kernel == ProductKernel::block) {
    launches.push_back(plan_block(target, p, c));
    return;
  }
  if (c.kernel == ProductKernel::gemv) {
    launches.push_back(plan_gemv(target, p, c));
    return;
  }
  GemmMmaParams q = mma_params(p, c);
  if (c.kernel == ProductKernel::simt) {
    launches.push_back(launch_of("gemm_simt", grid_of(p, c), 256, 0, q));
    return;
  }
  if (c.split > 1) q.partial = workspace;
  const std::string family = p.conv.taps ? "conv_mma_" : "gemm_mma_";
  const std::uint32_t threads = c.bm * c.bn >= 128 * 64 ? 256 : 128;
  launches.push_back(
      launch_of(family + kind_name(p) + "_" + tile_name(c), grid_of(p, c), threads, product_shared(p, c), q));
  if (c.split > 1) launches.push_back(plan_reduce(p, c, workspace));
}

}  // namespace infernode::cuda
