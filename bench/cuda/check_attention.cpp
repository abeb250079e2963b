#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/cuda/check.h"
#include "providers/cuda/kernels/attention.h"

namespace infernode::cuda::bench {

namespace {

const char* kernel_name(AttentionKernel kernel) {
  static const char* const names[] = {"few", "mma", "wgmma", "simt"};
  return names[static_cast<int>(kernel)];
}

std::string describe(const AttentionProblem& a, const AttentionChoice& c) {
  char text[256];
  std::snprintf(
      text, sizeof(text),
      "batch %d heads %d/%d queries %d keys %d d %d dv %d type %d bias %d lengths %d causal %d offset %d window %d: "
      "%s %d %dx%d group %d splits %d",
      int(a.batch), int(a.heads), int(a.kv_heads), int(a.queries), int(a.keys), int(a.d), int(a.dv), int(a.type),
      a.bias.address != 0, a.lengths != 0, a.causal, int(a.causal_offset), int(a.window), kernel_name(c.kernel), c.head,
      c.rows, c.keys, c.group, c.splits);
  return text;
}

/// [batch][row][head][element], or with rows and heads the other way round.
Heads random_heads(Random& r, Arena& arena, Element type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                   std::int64_t d, float scale) {
  const std::int64_t pitch = r.chance(85) ? (d + 7) / 8 * 8 : d + r.in(0, 3);
  Heads h;
  h.at = r.chance(60) ? HeadStrides{heads * pitch, pitch, rows * heads * pitch}
                      : HeadStrides{pitch, rows * pitch, rows * heads * pitch};
  h.address = arena.random(r, type, batch * rows * heads * pitch, scale);
  return h;
}

void random_sizes(Random& r, AttentionProblem& a) {
  a.batch = r.in(1, 3);
  a.kv_heads = r.in(1, 4);
  a.heads = a.kv_heads * (r.chance(60) ? 1 : r.in(2, 5));
  a.queries = r.chance(30) ? r.in(1, 4) : r.in(1, 300);
  a.keys = r.chance(50) ? a.queries : r.in(1, r.chance(20) ? 2500 : 400);
  a.d = r.chance(50) ? 64 : r.chance(60) ? r.of<std::int64_t>({32, 40, 80, 96, 128, 256}) : r.in(1, 256);
  a.dv = r.chance(80) ? a.d : r.in(1, 256);
  a.type = r.of({Element::f16, Element::f16, Element::bf16, Element::f32});
  a.scale = 1.f / std::sqrt(static_cast<float>(a.d));
  a.causal = r.chance(40);
  a.causal_offset = r.chance(70) ? std::max<std::int64_t>(0, a.keys - a.queries) : r.in(0, 20);
  a.window = a.causal && r.chance(30) ? r.in(1, 150) : 0;
}

/// The last of the keys and values become new ones, which lie where they are, and all are to be written elsewhere.
void random_join(Random& r, Device& device, Arena& arena, AttentionProblem& a) {
  AttentionJoin join;
  join.past = r.in(0, a.keys - 1);
  join.past_given = r.chance(50);
  const auto behind = [&](const Heads& h) {
    return Heads{h.address + static_cast<DevicePtr>(join.past * h.at.row * element_size(a.type)), h.at};
  };
  join.k = behind(a.k), join.v = behind(a.v);
  const HeadStrides at{a.d, a.keys * a.d, a.kv_heads * a.keys * a.d};
  const auto bytes = static_cast<std::size_t>(a.batch * at.batch * element_size(a.type));
  for (Heads* to : {&join.all_k, &join.all_v}) {
    *to = {arena.take(bytes), at};
    device.fill(to->address, 0xff, bytes);
  }
  a.join = join;
  if (attention_choices(device.target(), a).empty()) a.join.reset();
}

/// Whether the heads that a kernel joined are those that it read.
bool is_joined(Device& device, const AttentionProblem& a, const Heads& from, const Heads& all) {
  const std::size_t words = element_size(a.type) / 2;
  const auto read = [&](const Heads& h) {
    std::vector<std::uint16_t> v(static_cast<std::size_t>(a.batch * h.at.batch) * words);
    device.download(v.data(), h.address, v.size() * 2);
    return v;
  };
  const std::vector<std::uint16_t> x = read(from), y = read(all);
  for (std::int64_t b = 0; b < a.batch; b++) {
    for (std::int64_t h = 0; h < a.kv_heads; h++) {
      for (std::int64_t i = 0; i < a.keys * a.d; i++) {
        const auto at = [&](const HeadStrides& s) {
          return static_cast<std::size_t>(b * s.batch + h * s.head + i / a.d * s.row + i % a.d);
        };
        for (std::size_t w = 0; w < words; w++) {
          if (x[at(from.at) * words + w] != y[at(all.at) * words + w]) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

bool check_attention(Device& device, Arena& arena, int problems, std::uint32_t seed) {
  Random r(seed);
  Tally tally("attention");
  for (int i = 0; i < problems; i++) {
    arena.reset();
    AttentionProblem a;
    random_sizes(r, a);
    a.q = random_heads(r, arena, a.type, a.batch, a.heads, a.queries, a.d, 2);
    a.k = random_heads(r, arena, a.type, a.batch, a.kv_heads, a.keys, a.d, 2);
    a.v = random_heads(r, arena, a.type, a.batch, a.kv_heads, a.keys, a.dv, 1);
    if (r.chance(40)) {
      a.bias_type = r.chance(60) ? a.type : Element::f32;
      const std::int64_t keys = r.chance(50) ? a.keys : (a.keys + 7) / 8 * 8;
      const std::int64_t row = r.chance(30) ? 0 : keys;
      a.bias.at = {row, r.chance(40) ? 0 : a.queries * keys, r.chance(40) ? 0 : a.heads * a.queries * keys};
      a.bias.address = arena.random(r, a.bias_type, a.batch * a.heads * a.queries * keys, 3);
    }
    if (r.chance(30)) {
      std::int32_t lengths[3];
      for (std::int32_t& n : lengths) n = static_cast<std::int32_t>(r.in(1, a.keys));
      a.lengths = arena.take(sizeof(lengths));
      device.upload(a.lengths, lengths, sizeof(lengths));
    }
    // The output is [batch][query][head][dv]; rows for the comparison are the queries of one batch.
    const std::int64_t extra = r.of<std::int64_t>({0, 0, 8, 3});
    Output o = make_output(arena, a.type, a.batch * a.queries * a.heads, a.dv, extra, 1, 1, 0);
    const std::int64_t pitch = o.compare.out_row;
    a.out = {o.compare.out, {a.heads * pitch, pitch, a.queries * a.heads * pitch}};
    CompareParams& c = o.compare;
    c.rows = a.queries, c.out_row = a.heads * pitch, c.batch[0] = a.heads, c.batch[1] = a.batch;
    c.out_batch[0] = pitch, c.out_batch[1] = a.queries * a.heads * pitch;
    c.ref_row = a.dv, c.ref_batch[0] = a.queries * a.dv, c.ref_batch[1] = a.heads * a.queries * a.dv;
    c.gaps = 0;
    ReferenceAttention ref{};
    AttentionParams& p = ref.p;
    p.q = a.q.address, p.k = a.k.address, p.v = a.v.address, p.bias = a.bias.address, p.lengths = a.lengths;
    p.q_at = a.q.at, p.k_at = a.k.at, p.v_at = a.v.at, p.bias_at = a.bias.at;
    p.queries = int(a.queries), p.keys = int(a.keys), p.heads = int(a.heads), p.d = int(a.d), p.dv = int(a.dv);
    p.heads_per_key = int(a.heads / a.kv_heads), p.batch = int(a.batch), p.causal = a.causal;
    p.causal_offset = int(a.causal_offset), p.window = int(a.window), p.type = a.type, p.bias_type = a.bias_type;
    ref.ref = c.ref;
    ref.scale = a.scale;
    device.launch(elementwise("reference_attention", ref, a.batch * a.heads * a.queries));
    if (a.d == a.dv && r.chance(70)) random_join(r, device, arena, a);
    const std::vector<AttentionChoice> choices = attention_choices(device.target(), a);
    for (int j = 0; j < 4; j++) {
      const AttentionChoice k = j == 0 ? choices.front() : any_choice(r, choices);
      const std::size_t bytes = attention_workspace(device.target(), a, k);
      if (bytes) {
        a.workspace = arena.take(bytes);
        device.fill(a.workspace, 0xff, bytes);
      }
      poison(device, o);
      device.launch(plan_attention(device.target(), a, k));
      Difference d = compare(device, o);
      if (a.join && !(is_joined(device, a, a.k, a.join->all_k) && is_joined(device, a, a.v, a.join->all_v)))
        d.missing = 1;
      const std::string group = std::string(a.join ? "join" : kernel_name(k.kernel)) + std::to_string(k.head) + "/" +
                                std::to_string(k.rows) + "/" + std::to_string(int(a.type));
      const double limit = a.type == Element::f16 ? 1.5e-3 : a.type == Element::bf16 ? 1e-2 : 3e-6;
      tally.add(d, limit, group, describe(a, k));
    }
  }
  return tally.report();
}

void time_attention(Device& device, Arena& arena) {
  struct Shape {
    const char* name;
    const char* before;
    std::int64_t batch, heads, kv_heads, queries, keys, d;
    bool causal, masked = false;
  };
  static constexpr Shape kShapes[] = {{"1x12x128x64", "2.3", 1, 12, 12, 128, 128, 64, false},
                                      {"1x12x128x64 masked", "-", 1, 12, 12, 128, 128, 64, false, true},
                                      {"8x12x128x64", "6.15t", 8, 12, 12, 128, 128, 64, false},
                                      {"8x12x128x64 masked", "-", 8, 12, 12, 128, 128, 64, false, true},
                                      {"1x12x512x64 masked", "-", 1, 12, 12, 512, 512, 64, false, true},
                                      {"1x12x197x64", "3.4", 1, 12, 12, 197, 197, 64, false},
                                      {"1x12x256x64 causal", "4.1", 1, 12, 12, 256, 256, 64, true},
                                      {"8x12x197x64", "-", 8, 12, 12, 197, 197, 64, false},
                                      {"1x12x1500x64", "36.8c", 1, 12, 12, 1500, 1500, 64, false},
                                      {"1x32x4096x128 causal", "-", 1, 32, 8, 4096, 4096, 128, true},
                                      {"decode 12x256", "1.9", 1, 12, 12, 1, 256, 64, false},
                                      {"decode 32/8x4096x128", "-", 1, 32, 8, 1, 4096, 128, false}};
  std::printf("attention, us each in a chain of 12\n");
  for (const Shape& s : kShapes) {
    arena.reset();
    Random r(3);
    AttentionProblem a;
    a.batch = s.batch, a.heads = s.heads, a.kv_heads = s.kv_heads, a.queries = s.queries, a.keys = s.keys;
    a.d = a.dv = s.d;
    a.scale = 1.f / std::sqrt(static_cast<float>(s.d));
    a.causal = s.causal;
    a.causal_offset = s.keys - s.queries;
    const std::int64_t row = (s.heads + 2 * s.kv_heads) * s.d, most = std::max(s.queries, s.keys);
    const DevicePtr qkv = arena.random(r, a.type, s.batch * most * row);
    const HeadStrides at{row, s.d, most * row};
    a.q = {qkv, at}, a.k = {qkv + static_cast<DevicePtr>(s.heads * s.d * 2), at};
    a.v = {qkv + static_cast<DevicePtr>((s.heads + s.kv_heads) * s.d * 2), at};
    a.out = {arena.take(static_cast<std::size_t>(s.batch * s.queries * s.heads * s.d * 2)),
             {s.heads * s.d, s.d, s.queries * s.heads * s.d}};
    if (s.masked) {
      a.bias = {arena.random(r, a.type, s.batch * s.queries * s.keys), {s.keys, 0, s.queries * s.keys}};
    }
    a.workspace = arena.take(std::size_t{64} << 20);
    std::printf("  %-22s before %-6s", s.name, s.before);
    for (const AttentionChoice& c : attention_choices(device.target(), a)) {
      if (c.kernel == AttentionKernel::simt) continue;
      std::vector<Launch> chain;
      for (int i = 0; i < 12; i++) {
        for (Launch& l : plan_attention(device.target(), a, c)) chain.push_back(std::move(l));
      }
      std::printf("; %.2f %s %dx%d splits %d (model %.1f)", device.time(chain, 15) / 12, kernel_name(c.kernel), c.rows,
                  c.keys, c.splits, c.microseconds);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace infernode::cuda::bench
