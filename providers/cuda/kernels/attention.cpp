#include "providers/cuda/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "providers/cuda/kernels/products/tensor_map.h"
#include "providers/cuda/kernels/shared_request.h"

namespace infernode::cuda {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool aligned(const Heads& h, Element type) {
  const std::int64_t size = element_size(type);
  return h.address % 16 == 0 && h.at.row * size % 16 == 0 && h.at.head * size % 16 == 0 && h.at.batch * size % 16 == 0;
}

struct Tile {
  int head, rows, keys, stages;
};

/// The kernels of attention_f16.cu.
constexpr Tile kTiles[] = {{64, 16, 128, 3}, {64, 16, 256, 2}, {64, 64, 64, 3},  {64, 128, 64, 2},
                           {128, 16, 64, 2}, {128, 64, 64, 2}, {256, 16, 64, 2}, {256, 64, 32, 2}};

/// The kernels of attention.sm90.cu.
constexpr Tile kWgmmaTiles[] = {{64, 64, 64, 3}, {64, 192, 128, 3}, {128, 128, 128, 2}};

const Tile& tile_of(const AttentionChoice& c) {
  const std::span<const Tile> tiles = c.kernel == AttentionKernel::wgmma ? std::span<const Tile>(kWgmmaTiles) : kTiles;
  return *std::find_if(tiles.begin(), tiles.end(),
                       [&](const Tile& t) { return t.head == c.head && t.rows == c.rows && t.keys == c.keys; });
}

/// Masks that come to shared memory: whole words of 16-bit numbers.
bool has_words(const AttentionProblem& a) {
  return a.bias.address != 0 && a.bias_type != Element::f32 && aligned(a.bias, a.bias_type);
}

/// Stages of keys and values of attention.cuh that there are.
int stages_of(const AttentionProblem& a, const Tile& t) {
  return static_cast<int>(std::clamp<std::int64_t>(ceil_div(a.keys, t.keys), 1, t.stages));
}

std::size_t shared_of(const AttentionProblem& a, const AttentionChoice& c) {
  if (c.kernel == AttentionKernel::few) {
    const auto size = static_cast<int>(element_size(a.type));
    const std::int64_t steps = ceil_div(ceil_div(a.keys, c.splits), c.keys);
    const auto stages = std::clamp<std::int64_t>(steps, 1, few_stages(c.head, size));
    const std::int64_t tile = std::min<std::int64_t>(a.queries * c.group, c.rows);
    const std::int64_t rows = 8 * tile * (c.head + 4) * 4;  // of every warp
    return static_cast<std::size_t>(std::max((c.rows + stages * 2 * c.keys) * few_row_bytes(c.head, size), rows));
  }
  if (c.kernel == AttentionKernel::simt) {
    const std::size_t rows = static_cast<std::size_t>(c.head) * 36 * 4;
    return rows + std::max(rows, std::size_t{32} * (c.head + 4) * 4) + 32 * 36 * 4;
  }
  const Tile& t = tile_of(c);
  if (c.kernel == AttentionKernel::wgmma)
    return static_cast<std::size_t>(wgmma_attention_shared(t.head, t.rows, t.keys, t.stages, a.bias.address != 0));
  const int blocks = stages_of(a, t), warps_k = t.rows == 16 ? 4 : 1;
  const auto masks = static_cast<std::size_t>(has_words(a) ? blocks * t.rows * (t.keys * 2 + 16) : 0);
  const std::size_t tiles = static_cast<std::size_t>(t.rows + blocks * 2 * t.keys) * t.head * 2 + masks;
  const std::size_t merge = static_cast<std::size_t>(t.rows * warps_k) * (t.head + 4) * 4;
  return ceil_div(static_cast<std::int64_t>(std::max(tiles, merge)), 128) * 128;
}

/// Where keys are joined every key head has one tile of queries.
bool is_few(const AttentionProblem& a) {
  constexpr std::int64_t kMostRow = 1 << 30;
  const auto fits = [&](const Heads& h) { return aligned(h, a.type) && h.at.row >= 0 && h.at.row < kMostRow; };
  if (std::max(a.d, a.dv) > 128 || !fits(a.k) || !fits(a.v)) return false;
  if (!a.join) return true;
  const AttentionJoin& j = *a.join;
  return a.queries * (a.heads / a.kv_heads) <= kFewRows && a.d == a.dv && a.d % 8 == 0 && fits(j.k) && fits(j.v) &&
         fits(j.all_k) && fits(j.all_v);
}

/// Hopper's copies reach every head and every mask, and a kernel of so many rows knows all that is asked for: the
/// largest has no room for masks. Fewer queries leave warps idle.
bool is_wgmma(const Target& target, const AttentionProblem& a, int rows) {
  constexpr std::int64_t kLeastQueries = 48;
  const auto fits = [](const Heads& h) { return h.at.row > 0 && h.at.head >= 0 && h.at.batch >= 0; };
  const bool masks =
      !a.bias.address || (rows <= 128 && a.bias_type != Element::f32 && fits(a.bias) && aligned(a.bias, a.bias_type));
  return target.sm == 90 && a.type != Element::f32 && a.queries >= kLeastQueries && a.keys > 0 && !a.join && masks &&
         !a.lengths && fits(a.q) && fits(a.k) && fits(a.v);
}

/// The parts of the keys are a cluster's.
bool in_cluster(const Target& target, const AttentionChoice& c) {
  return c.kernel == AttentionKernel::few && target.sm >= 90 && c.splits > 1 && c.splits <= 8;
}

double model(const Target& target, const AttentionProblem& a, const AttentionChoice& c, std::size_t shared) {
  const double sms = std::max(1, target.sm_count);
  const double blocks =
      static_cast<double>(ceil_div(a.queries * c.group, c.rows) * (a.heads / c.group) * a.batch * c.splits);
  const double per_sm = std::ceil(blocks / sms);
  const double resident = std::min({std::floor(233472.0 / (static_cast<double>(shared) + 1024)), 4.0, per_sm});
  double keys = static_cast<double>(ceil_div(a.keys, c.splits));
  if (a.causal && a.queries > 1) keys *= 0.6;
  const double steps = std::ceil(keys / c.keys);
  if (c.kernel == AttentionKernel::few) {
    const double kilobytes = 2.0 * keys * c.head * element_size(a.type) / 1024, parts = c.splits;
    const double step = (a.type == Element::f32 ? 6.5 : 0.3) * c.head / 64;
    const double add = c.splits == 1 ? 0 : in_cluster(target, c) ? 0.5 + 0.3 * parts : 0.2 + 0.36 * parts;
    return 1.85 + per_sm * std::max(0.0195 * kilobytes, step * steps) + add;
  }
  if (c.kernel == AttentionKernel::wgmma) {
    // Warpgroups share the tensor cores and the exponentials; they read the same keys where they are of one block.
    const double groups = per_sm * c.rows / 64, together = std::min(groups, c.head == 64 ? 3.0 : 2.0);
    const double unit = c.keys / 64.0 * c.head / 64, busy = c.rows == 64 ? 0.29 : 0.28;
    const double wave = 0.5 + 0.95 * (together - 1) + steps * std::max(0.6, busy * together) * unit;
    const double masks = a.bias.address ? 0.5 + 0.1 * groups * steps * c.keys / 64 : 0;
    return 2.3 + std::ceil(groups / together) * wave + masks;
  }
  // us, of a step: its products, and its keys and values on their way; a block alone waits for both to begin.
  const double tiles = c.rows * c.keys * c.head / (64.0 * 64 * 64), kilobytes = 4.0 * c.keys * c.head / 1024;
  const bool tile = c.kernel == AttentionKernel::tile;
  const double step = tile ? std::max(0.58 * tiles, 0.0195 * kilobytes) + 0.05 : 12 * tiles + 0.8;
  const double alone = tile ? std::max(1.1 * tiles, 0.0195 * kilobytes + 0.3) : step;
  const double work = std::max(per_sm * steps * step, std::ceil(per_sm / std::max(1.0, resident)) * steps * alone);
  const double masks = a.bias.address ? 0.25 + 0.5 * per_sm * steps * c.rows * c.keys / 4096 : 0;
  return 1.6 + std::ceil(per_sm / std::max(1.0, resident)) * 0.4 + work + masks +
         (c.splits > 1 ? 1.5 + 0.2 * c.splits : 0);
}

void add(const Target& target, const AttentionProblem& a, AttentionChoice c, std::vector<AttentionChoice>& choices) {
  c.group = a.queries < 64 && c.kernel != AttentionKernel::wgmma ? static_cast<int>(a.heads / a.kv_heads) : 1;
  const std::size_t shared = shared_of(a, c);
  if (shared + 1024 > target.shared_per_block) return;
  const std::int64_t blocks = ceil_div(a.queries * c.group, c.rows) * (a.heads / c.group) * a.batch;
  for (int splits : {1, 2, 4, 8, 16, 32}) {
    if (splits > 1 &&
        (c.kernel == AttentionKernel::wgmma || ceil_div(a.keys, splits) < 128 || blocks * splits > 2 * target.sm_count))
      break;
    c.splits = splits;
    c.microseconds = static_cast<float>(model(target, a, c, shared));
    choices.push_back(c);
  }
}

/// Shared memory to ask for. Few blocks that let the next kernel start at once would pile up on some SMs: two of them
/// share one, and leave the next kernel's room.
std::size_t shared_to_ask(const Target& target, const AttentionProblem& a, const AttentionChoice& c, const Dim3& grid) {
  constexpr std::size_t kTwoOfThem = 90 * 1024;
  const std::size_t used = shared_of(a, c);
  const bool spread = target.sm >= 90 && std::int64_t{grid.x} * grid.y * grid.z <= 2 * target.sm_count;
  return spread && kTwoOfThem <= target.shared_per_block ? std::max(used, kTwoOfThem) : used;
}

AttentionParams params_of(const Target& target, const AttentionProblem& a, const AttentionChoice& c) {
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  AttentionParams p{};
  p.q = a.q.address, p.k = a.k.address, p.v = a.v.address, p.out = a.out.address;
  p.bias = a.bias.address;
  p.lengths = a.lengths;
  p.cluster = in_cluster(target, c);
  p.partial = c.splits > 1 && !p.cluster ? a.workspace : 0;
  p.q_at = a.q.at, p.k_at = a.k.at, p.v_at = a.v.at, p.out_at = a.out.at, p.bias_at = a.bias.at;
  p.queries = narrow(a.queries), p.keys = narrow(a.keys), p.heads = narrow(a.heads);
  p.d = narrow(a.d), p.dv = narrow(a.dv);
  p.heads_per_key = narrow(a.heads / a.kv_heads);
  p.group = c.group;
  p.per_group = 1.0f / static_cast<float>(c.group);
  p.splits = c.splits;
  p.batch = narrow(a.batch);
  p.causal = a.causal;
  p.causal_offset = narrow(a.causal_offset);
  p.window = a.causal ? narrow(a.window) : 0;
  p.scale_log2e = a.scale * 1.44269504f;
  if (c.kernel == AttentionKernel::tile) p.bias_words = has_words(a), p.stages = stages_of(a, tile_of(c));
  p.vectors = a.type == Element::f32 && a.d % 4 == 0 && a.dv % 4 == 0 && aligned(a.q, a.type) && aligned(a.k, a.type) &&
              aligned(a.v, a.type);
  p.out_vector = aligned(a.out, a.type);
  p.type = a.type;
  p.bias_type = a.bias_type;
  if (a.join) {
    const AttentionJoin& j = *a.join;
    p.new_k = j.k.address, p.new_v = j.v.address, p.all_k = j.all_k.address, p.all_v = j.all_v.address;
    p.new_k_at = j.k.at, p.new_v_at = j.v.at, p.all_k_at = j.all_k.at, p.all_v_at = j.all_v.at;
    p.past = narrow(j.past);
    p.past_given = j.past_given;
  }
  return p;
}

/// Operands of TMA: a warpgroup's queries, and the keys and values of a stage.
AttentionTmaParams tma_params(const Target& target, const AttentionProblem& a, const AttentionChoice& c) {
  AttentionTmaParams p{};
  p.a = params_of(target, a, c);
  const auto map = [&](const Heads& h, std::int64_t columns, std::int64_t rows, std::int64_t heads, int box,
                       std::int32_t(&apart)[2]) {
    apart[0] = h.at.head != 0, apart[1] = h.at.batch != 0;
    const TiledView view{h.address, a.type, columns, rows, {heads, a.batch}, h.at.row, {h.at.head, h.at.batch}};
    return tiled_map(target, view, box);
  };
  p.q = map(a.q, a.d, a.queries, a.heads, 64, p.q_batch);
  p.k = map(a.k, a.d, a.keys, a.kv_heads, c.keys, p.k_batch);
  p.v = map(a.v, a.dv, a.keys, a.kv_heads, c.keys, p.v_batch);
  if (a.bias.address) {
    p.mask_batch[0] = a.bias.at.head != 0, p.mask_batch[1] = a.bias.at.batch != 0;
    const TiledView view{a.bias.address,
                         a.bias_type,
                         a.keys,
                         a.queries,
                         {a.heads, a.batch},
                         a.bias.at.row,
                         {a.bias.at.head, a.bias.at.batch}};
    p.mask = tiled_map(target, view, 64);
  }
  return p;
}

std::string kernel_name(const AttentionProblem& a, const AttentionChoice& c) {
  const std::string head = std::to_string(c.head);
  const std::string type = a.type == Element::f32 ? "f32_" : a.type == Element::f16 ? "f16_" : "bf16_";
  if (c.kernel == AttentionKernel::simt) return "attention_simt_" + head;
  if (c.kernel == AttentionKernel::few) return "attention_few_" + type + head;
  const std::string family = c.kernel == AttentionKernel::wgmma ? "attention_wgmma_" : "attention_";
  const char* masked = c.kernel == AttentionKernel::wgmma && a.bias.address ? "_masked" : "";
  return family + type + head + "_" + std::to_string(c.rows) + "x" + std::to_string(c.keys) + masked;
}

AttentionChoice chosen(const Target& target, const AttentionProblem& a, const std::optional<AttentionChoice>& choice) {
  if (choice) return *choice;
  const std::vector<AttentionChoice> all = attention_choices(target, a);
  if (all.empty()) fail(ErrorCode::Internal, cat("no attention kernel for heads of ", std::max(a.d, a.dv)));
  return all.front();
}

}  // namespace

std::vector<AttentionChoice> attention_choices(const Target& target, const AttentionProblem& a) {
  std::vector<AttentionChoice> choices;
  const std::int64_t most = std::max(a.d, a.dv);
  if (most > 256) return choices;
  const int head = most <= 64 ? 64 : most <= 128 ? 128 : 256;
  const bool tensor_cores = target.sm >= (a.type == Element::f16 ? 75 : 80);
  if (tensor_cores && a.scale > 0 && aligned(a.q, a.type) && aligned(a.k, a.type) && aligned(a.v, a.type)) {
    const bool few = a.type == Element::f32 || a.queries * (a.heads / a.kv_heads) <= kFewRows;
    if (few && is_few(a)) add(target, a, {AttentionKernel::few, head, kFewRows, kFewKeys, 1, 1, 0}, choices);
    for (const Tile& t : kTiles) {
      if (t.head == head && !a.join && a.type != Element::f32)
        add(target, a, {AttentionKernel::tile, head, t.rows, t.keys, 1, 1, 0}, choices);
    }
    for (const Tile& t : kWgmmaTiles) {
      if (t.head == head && is_wgmma(target, a, t.rows))
        add(target, a, {AttentionKernel::wgmma, head, t.rows, t.keys, 1, 1, 0}, choices);
    }
  }
  if (!a.join) add(target, a, {AttentionKernel::simt, head, 32, 32, 1, 1, 0}, choices);
  std::stable_sort(choices.begin(), choices.end(),
                   [](const AttentionChoice& x, const AttentionChoice& y) { return x.microseconds < y.microseconds; });
  return choices;
}

std::size_t attention_workspace(const Target& target, const AttentionProblem& a,
                                const std::optional<AttentionChoice>& choice) {
  const AttentionChoice c = chosen(target, a, choice);
  return c.splits == 1 || in_cluster(target, c)
             ? 0
             : static_cast<std::size_t>(c.splits * a.batch * a.heads * a.queries * (a.dv + 2) * 4);
}

std::vector<Launch> plan_attention(const Target& target, const AttentionProblem& a,
                                   const std::optional<AttentionChoice>& choice) {
  const AttentionChoice c = chosen(target, a, choice);
  const AttentionParams p = params_of(target, a, c);
  Launch launch;
  launch.kernel = kernel_name(a, c);
  launch.grid = {static_cast<std::uint32_t>(ceil_div(a.queries * c.group, c.rows)),
                 static_cast<std::uint32_t>(a.heads / c.group), static_cast<std::uint32_t>(a.batch * c.splits)};
  if (a.join) launch.grid.x += static_cast<std::uint32_t>(ceil_div(a.keys, std::int64_t{kJoinRows} * c.splits));
  if (p.cluster) launch.cluster.z = static_cast<std::uint32_t>(c.splits);
  launch.block = {c.kernel == AttentionKernel::few ? 256u : 128u, 1, 1};
  launch.shared_bytes = shared_request(shared_to_ask(target, a, c, launch.grid));
  launch.programmatic = true;
  launch.params = param_bytes(p);
  if (c.kernel == AttentionKernel::wgmma) {
    launch.block.x = static_cast<std::uint32_t>(c.rows / 64 * 128 + 128);
    launch.params = param_bytes(tma_params(target, a, c));
  }
  std::vector<Launch> launches{launch};
  if (c.splits > 1 && !p.cluster) {
    launch.kernel = "attention_combine";
    launch.block = {128, 1, 1};
    launch.grid = {static_cast<std::uint32_t>(a.queries), static_cast<std::uint32_t>(a.heads),
                   static_cast<std::uint32_t>(a.batch)};
    launch.shared_bytes = 0;
    launches.push_back(launch);
  }
  return launches;
}

}  // namespace infernode::cuda
