#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "providers/cuda/kernels/params/gemv.h"
#include "providers/cuda/kernels/products/product.h"

// Which kernels can compute a product, and how long each should take.
namespace infernode::cuda {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool aligned(const Operand& o) {
  const std::int64_t size = element_size(o.type);
  return o.address % 16 == 0 && o.row * size % 16 == 0 && o.batch[0] * size % 16 == 0 && o.batch[1] * size % 16 == 0;
}

/// Copies of 16 bytes reach every row of both operands.
bool vectors_reach(const Product& p) {
  if (!aligned(p.b)) return false;
  if (!p.conv.taps) return aligned(p.a);
  const std::int64_t size = element_size(p.a.type);
  return p.a.address % 16 == 0 && p.conv.pixel * size % 16 == 0 && (p.groups == 1 || p.conv.channels * size % 16 == 0);
}

bool tensor_cores(const Target& target, const Product& p) {
  if (p.a.type == Element::f32 && p.b.pieces == 1 && p.precision != Precision::medium) return false;
  return target.sm >= 80 || (target.sm >= 75 && p.a.type == Element::f16);
}

/// Hopper's copies can walk the image.
bool pixels_reach(const Product& p) {
  const ConvParams& c = p.conv;
  const std::int64_t step = product_step(p);
  const auto corner = [](std::int64_t low, std::int64_t outputs, std::int64_t stride, std::int64_t inputs) {
    const std::int64_t high = low + (outputs - 1) * stride - (inputs - 1);
    return low >= -128 && high >= -128 && high <= 127;
  };
  if (c.transposed || c.in_d != 1 || c.out_d != 1 || c.stride_h > 8 || c.stride_w > 8) return false;
  if (c.taps > c.kernel_h * c.kernel_w) return false;
  if ((c.taps > 1 && c.channels_padded % step) || (p.groups > 1 && c.channels % step)) return false;
  const int taps_h = (c.kernel_h - 1) * c.dilation_h, taps_w = (c.kernel_w - 1) * c.dilation_w;
  return taps_h < 256 && taps_w < 256 && corner(-c.pad_h, c.out_h, c.stride_h, c.in_h) &&
         corner(-c.pad_w, c.out_w, c.stride_w, c.in_w);
}

struct Tile {
  int bm, bn, kw;
};

void add_blocks(const Target& target, const Product& p, std::vector<ProductChoice>& choices) {
  static constexpr Tile kHalf[] = {{64, 32, 2},   {64, 48, 2},  {64, 64, 1},   {64, 64, 2},   {64, 96, 2},
                                   {128, 64, 1},  {128, 96, 1}, {128, 128, 1}, {128, 160, 1}, {128, 192, 1},
                                   {128, 256, 1}, {192, 96, 1}, {192, 128, 1}};
  static constexpr Tile kFloat[] = {{64, 32, 2}, {64, 64, 2}, {128, 64, 1}};
  const bool is_float = p.a.type == Element::f32;
  const std::int64_t steps = product_steps(p);
  if (p.batch[0] * p.batch[1] * 8 > 65535 || ceil_div(p.m, 128) > 65535) return;  // grids are no larger
  for (const Tile* t = is_float ? std::begin(kFloat) : std::begin(kHalf);
       t != (is_float ? std::end(kFloat) : std::end(kHalf)); ++t) {
    if (t->bm > 64 && p.b.pieces > 1) continue;  // no registers for A's pieces
    // In a net the kernel behind them has no room to start ahead: few rows lose more by it than they gain.
    if (t->bm == 128 && t->bn == 96 && p.m <= 256) continue;
    if (ceil_div(p.m, t->bm) > 65535 || (t->bm > 64 && p.m <= t->bm - 64)) continue;
    for (int split : {1, 2, 4, 8}) {
      if (split > steps || (split > 1 && (t->bn > 128 || t->bm > 128))) break;
      int before = 0;
      for (int most : {3, 4, 6, 9, 12, 16}) {
        ProductChoice c{ProductKernel::block, t->bm, t->bn, t->kw, 1, split, 0};
        c.stages = static_cast<int>(std::min<std::int64_t>(ceil_div(steps, split), most));
        const std::size_t columns = ends_in_registers(c.bm, c.bn) ? 2048 : 0;
        if (c.stages == before || product_shared(p, c) + columns + 1024 > target.shared_per_block) break;
        before = c.stages;
        choices.push_back(c);
      }
    }
  }
}

/// Few rows: warps enough to have all of K in flight.
void add_gemv(const Target& target, const Product& p, std::vector<ProductChoice>& choices) {
  // Every block finds out about the rows: a kernel of its own does it once.
  if (p.norm && ceil_div(p.n, 16) * p.batch[0] * p.batch[1] > 4 * target.sm_count) return;
  if (p.norm && p.m > kGemvMostNormalizedRows) return;
  if (p.m > 8 || p.conv.taps || p.a.type == Element::f32 || p.a.type != p.b.type || p.k % 8) return;
  for (int warps : {4, 8, 16}) {
    const std::int64_t rounds = ceil_div(p.k, std::int64_t{warps} * kGemvWarpK);
    if (p.norm && (rounds > 1 || warps > 8)) continue;
    for (int stages = rounds > 1 ? 2 : 1; stages > 0; stages--) {
      const ProductChoice c{ProductKernel::gemv, 8, 16, warps, stages, 1, 0};
      if (product_shared(p, c) + 1024 > target.shared_per_block) continue;
      choices.push_back(c);
      break;
    }
    if (rounds == 1) break;
  }
}

void add_mma(const Target& target, const Product& p, std::vector<ProductChoice>& choices) {
  const bool is_float = p.a.type == Element::f32;
  const std::int64_t steps = ceil_div(p.k, product_step(p));
  const int stages = p.b.pieces == 1 ? 4 : p.b.pieces == 2 ? 3 : 2;
  for (int split : {1, 2, 4, 8}) {
    if (split > steps) break;
    ProductChoice c{ProductKernel::mma, 64, 64, 1, stages, split, 0};
    if (product_shared(p, c) <= target.shared_per_block) choices.push_back(c);
    if (is_float) continue;
    c.bm = 128;
    c.bn = p.conv.taps ? 64 : 128;
    c.stages = 3;
    if (product_shared(p, c) <= target.shared_per_block) choices.push_back(c);
  }
}

}  // namespace

std::vector<ProductChoice> product_choices(const Target& target, const Product& p) {
  std::vector<ProductChoice> choices;
  if (tensor_cores(target, p) && vectors_reach(p)) {
    add_gemv(target, p, choices);
    if (p.norm) return choices;
    // Whose warps have a weight's every byte under way at once: tiles of few rows fall behind.
    if (target.sm == 90 && choices.empty() && (!p.conv.taps || pixels_reach(p))) add_blocks(target, p, choices);
    add_mma(target, p, choices);
  }
  if (p.b.pieces == 1 && !p.norm) choices.push_back({ProductKernel::simt, 64, 64, 1, 1, 1, 0});
  for (ProductChoice& c : choices) c.microseconds = product_microseconds(target, p, c);
  std::stable_sort(choices.begin(), choices.end(),
                   [](const ProductChoice& a, const ProductChoice& b) { return a.microseconds < b.microseconds; });
  return choices;
}

namespace {

/// ns, fitted to 3,000 measurements on an H200: products of encoders, of ResNets and of EfficientNets, over tiles,
/// splits and stages.
struct BlockModel {
  double launch = 859;                   ///< from the kernel before to the first wait's end, and the last store
  double wave = 1290;                    ///< of a set of resident blocks: first bytes, drain
  double filled = 0.15;                  ///< of a wave, each KB of its first stages
  double exchange = 194, part = 140;     ///< of a split, and each part
  double sent = 26.2;                    ///< of a split, each KB of a tile
  double finish = 147, direct = 158;     ///< eight columns for every thread, by shared memory and in registers
  double slow = 1.83, less_slow = 1.65;  ///< times those where the activation takes an exponential
  double tensor = 64.7;                  ///< a step of 64 x 64
  double step = 93;                      ///< no step of a block is shorter
  double again = 12.4;                   ///< of a step where stages are used again
  double fetch = 426, kilobyte = 13.5;   ///< from asking for a stage to its arrival
  double narrow = 300;                   ///< more to finish rows that begin at any element, by a block alone on its SM
  double bytes_ns = 10300;               ///< of all SMs together from the cache
  double cold_ns = 4070;                 ///< from memory
};

/// Of eight columns for every thread.
double finish_ns(const BlockModel& m, const Product& p, const ProductChoice& c) {
  const Activation a = p.epilogue.activation;
  const bool slow =
      a != Activation::none && a != Activation::relu && a != Activation::clip && a != Activation::leaky_relu;
  if (finishes_in_registers(p, c)) return m.direct * (slow ? m.less_slow : 1);
  const bool narrow = c.bn > 128 && p.epilogue.out_row * element_size(p.epilogue.out_type) % 16 != 0;
  return m.finish * (slow ? m.slow : 1) + (narrow ? m.narrow : 0);
}

/// Blocks that fit an SM.
double fitting(const Product& p, const ProductChoice& c) {
  const double by_memory = std::floor(233472.0 / (static_cast<double>(product_shared(p, c)) + 1296));
  const double by_registers = c.bm == 64 && c.kw == 1 ? 3 : c.bm == 64 || (c.bm == 128 && c.bn <= 160) ? 2 : 1;
  return std::max(1.0, std::min(by_memory, by_registers));
}

/// What the tiles take beside the model. `paired`: an SM has two blocks, which work at once.
double tile_factor(const ProductChoice& c, bool paired) {
  if (c.bn == 256) return 1.15;
  if (c.bm == 128 && c.bn >= 96 && paired) return 0.88;
  if (c.bm != 64) return 1;
  return c.bn == 96 ? 1.06 : c.bn == 64 && c.kw == 1 ? 0.96 : 1;
}

double block_ns(const Target& target, const Product& p, const ProductChoice& c) {
  static constexpr BlockModel kModel;
  const double sms = std::max(1, target.sm_count), split = c.split;
  const double tiles = static_cast<double>(ceil_div(p.m, c.bm) * ceil_div(p.n, c.bn) * p.batch[0] * p.batch[1]);
  const double per_sm = std::ceil(tiles * split / sms),
               steps = static_cast<double>(ceil_div(product_steps(p), c.split));
  const double products = p.b.pieces == 3 ? 6 : p.b.pieces == 2 ? 3 : 1;
  const double stage = 128.0 * (c.bm * (p.b.pieces > 1 ? 2 : 1) + c.bn * p.b.pieces);
  const double waves = std::ceil(per_sm / std::min(fitting(p, c), per_sm));
  const double tensor = per_sm * steps * products * kModel.tensor * (c.bm / 64.0) * c.bn / 64;
  const double bytes = tiles * split * steps * stage / kModel.bytes_ns * 132 / sms;
  const bool reuse = c.stages < steps;
  const double refill = reuse ? (kModel.fetch + kModel.kilobyte * stage / 1024) / c.stages : 0;
  const double chain = waves * steps * (std::max(kModel.step * products, refill) + (reuse ? kModel.again : 0));
  const double cold = static_cast<double>(p.n * p.k) * p.b.pieces * element_size(p.b.type) / kModel.cold_ns;
  const double work =
      std::max(cold, std::cbrt(tensor * tensor * tensor + bytes * bytes * bytes + chain * chain * chain));
  const double chunks = std::ceil(c.bm * c.bn / 8.0 / split / (c.bm / 64 * c.kw * 128));
  const double exchange =
      c.split > 1 ? kModel.exchange + kModel.part * split + kModel.sent * c.bm * (c.bn + 8) * 4 / 1024 : 0;
  const double finish = finish_ns(kModel, p, c);
  const double filled = kModel.filled * std::min<double>(c.stages, steps) * stage / 1024;
  const double all = kModel.launch + waves * (kModel.wave + exchange + filled) + per_sm * chunks * finish + work;
  return tile_factor(c, per_sm == 2 && fitting(p, c) >= 2) * all;
}

/// mma.sync: rougher, for there are few choices.
double mma_ns(const Target& target, const Product& p, const ProductChoice& c) {
  const double sms = std::max(1, target.sm_count);
  const double blocks =
      static_cast<double>(ceil_div(p.m, c.bm) * ceil_div(p.n, c.bn) * p.batch[0] * p.batch[1] * c.split);
  const double per_sm = std::ceil(blocks / sms);
  const double steps = static_cast<double>(ceil_div(ceil_div(p.k, product_step(p)), c.split));
  const double products = p.b.pieces == 3 ? 6 : p.b.pieces == 2 ? 3 : 1;
  const double units = c.bm / 64.0 * c.bn / 64;
  const double tensor = per_sm * steps * products * (p.conv.taps ? 420 : 180) * units;
  const double chain = p.conv.taps ? steps * 1000 : 0;  // a block that gathers alone
  const double cold = static_cast<double>(p.n * p.k) * p.b.pieces * element_size(p.b.type) / 3000;
  // Of tiles that wait for others to leave the SM.
  const double finish = std::max(0.0, per_sm * units - 4) * 1300;
  return 3500 + std::max({cold, tensor, chain}) + finish + (c.split > 1 ? 2000 + 50 * per_sm : 0);
}

double gemv_ns(const Product& p, const ProductChoice& c) {
  const double rounds = std::ceil(static_cast<double>(p.k) / (c.kw * kGemvWarpK));
  const double bytes = static_cast<double>(p.n * p.k * p.batch[0] * p.batch[1]) * 2;
  return 1200 + 300 * rounds + 30 * c.kw + bytes / 3400;
}

}  // namespace

float product_microseconds(const Target& target, const Product& p, const ProductChoice& c) {
  double ns = 0;
  switch (c.kernel) {
    case ProductKernel::block:
      ns = block_ns(target, p, c);
      break;
    case ProductKernel::gemv:
      ns = gemv_ns(p, c);
      break;
    case ProductKernel::mma:
      ns = mma_ns(target, p, c);
      break;
    case ProductKernel::simt: {
      const double blocks = static_cast<double>(ceil_div(p.m, 64) * ceil_div(p.n, 64) * p.batch[0] * p.batch[1]);
      ns = 5000 + std::ceil(blocks / std::max(1, target.sm_count)) * static_cast<double>(p.k) * 35;
    }
  }
  return static_cast<float>(ns / 1000);
}

}  // namespace infernode::cuda
