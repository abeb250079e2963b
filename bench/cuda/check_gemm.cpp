#include "bench/cuda/check.h"
#include "providers/cuda/kernels/gemm.h"

namespace infernode::cuda::bench {

namespace {

std::string describe(const GemmProblem& g, const GemmChoice& c) {
  static const char* const kernels[] = {"block", "gemv", "mma", "simt"};
  char text[256];
  std::snprintf(
      text, sizeof(text),
      "m %lld n %lld k %lld batch %lldx%lld type %d out %d precision %d act %d a_k %lld b_k %lld packed %d: %s "
      "%dx%dx%d stages %d split %d",
      static_cast<long long>(g.m), static_cast<long long>(g.n), static_cast<long long>(g.k),
      static_cast<long long>(g.batch[0]), static_cast<long long>(g.batch[1]), static_cast<int>(g.a.type),
      static_cast<int>(g.epilogue.out_type), static_cast<int>(g.precision), static_cast<int>(g.epilogue.activation),
      static_cast<long long>(g.a.k_stride), static_cast<long long>(g.b.k_stride), g.b_packed != nullptr,
      kernels[static_cast<int>(c.kernel)], c.bm, c.bn, c.kw, c.stages, c.split);
  return text;
}

std::string group_of(const GemmProblem& g, const GemmChoice& c) {
  static const char* const kernels[] = {"block", "gemv", "mma", "simt"};
  static const char* const types[] = {"f16", "bf16", "f32"};
  static const char* const precisions[] = {"", "-high", "-medium"};
  const bool is_float = g.a.type == Element::f32;
  return std::string(kernels[static_cast<int>(c.kernel)]) + (g.norm ? "-norm/" : "/") +
         types[static_cast<int>(g.a.type)] + (is_float ? precisions[static_cast<int>(g.precision)] : "") + ">" +
         types[static_cast<int>(g.epilogue.out_type)];
}

/// A matrix of rows by k in one of the ways it may lie in memory.
Matrix random_matrix(Random& r, Arena& arena, Element type, std::int64_t rows, const GemmProblem& g, int transposed) {
  Matrix m;
  m.type = type;
  const std::int64_t extra = r.chance(70) ? (8 - (r.chance(50) ? g.k : rows) % 8) % 8 : r.in(0, 9);
  std::int64_t count = 0;
  if (r.chance(transposed)) {
    m.row_stride = 1;
    m.k_stride = rows + extra;
    count = g.k * m.k_stride;
  } else {
    m.row_stride = g.k + extra;
    count = rows * m.row_stride;
  }
  count = (count + 7) / 8 * 8;
  if (!r.chance(20)) m.batch_stride[0] = count;
  if (!r.chance(20)) m.batch_stride[1] = count * g.batch[0];
  m.address = arena.random(r, type, count * g.batch[0] * g.batch[1], 1, 0, r.chance(8));
  return m;
}

/// Rows of A are normalized where a kernel can do that.
void random_norm(Random& r, Device& device, Arena& arena, GemmProblem& g, ReferenceGemm& ref) {
  g.norm = {arena.random(r, g.a.type, g.k, 1, 1), r.chance(70) ? arena.random(r, g.a.type, g.k) : 0, 1e-5f,
            r.chance(30), 2};
  if (!can_normalize_rows(device.target(), g)) return void(g.norm = {});
  ref.norm_scale = g.norm.scale, ref.norm_bias = g.norm.bias;
  ref.norm_epsilon = g.norm.epsilon, ref.norm_no_mean = g.norm.no_mean;
}

std::int64_t random_size(Random& r, std::int64_t most) {
  const std::int64_t n = r.in(1, r.chance(30) ? most : most / 4);
  return r.chance(50) ? (n + 7) / 8 * 8 : n;
}

}  // namespace

bool check_gemm(Device& device, Arena& arena, int problems, std::uint32_t seed) {
  Random r(seed);
  Tally tally("gemm");
  for (int i = 0; i < problems; i++) {
    arena.reset();
    GemmProblem g;
    g.m = r.chance(20) ? r.in(1, 8) : random_size(r, 600);
    g.n = random_size(r, 800);
    g.k = random_size(r, 1400);
    if (r.chance(30)) g.batch[0] = r.in(1, 4), g.batch[1] = r.in(1, 3);
    const Element type = r.of({Element::f16, Element::f16, Element::bf16, Element::f32, Element::f32});
    g.precision = static_cast<Precision>(r.in(0, 2));
    g.a = random_matrix(r, arena, type, g.m, g, 12);
    g.b = random_matrix(r, arena, type, g.n, g, 40);
    WeightLayout layout;
    if (r.chance(50)) {
      g.b.batch_stride[0] = g.b.batch_stride[1] = 0;
      layout = weight_layout(device.target(), type, g.precision, g.n, 1, g.k);
      g.b_packed = &layout;
      g.b_address = arena.take(layout.bytes);
      device.fill(g.b_address, 0xff, layout.bytes);
      device.launch(plan_pack_weight(layout, {g.b.address, type, g.b.row_stride, 0, g.b.k_stride}, g.b_address));
    }
    const Element out = r.chance(70) ? type : r.of({Element::f16, Element::bf16, Element::f32});
    const Output o =
        make_output(arena, out, g.m, g.n, r.of<std::int64_t>({0, 0, 0, 8, 5}), g.batch[0], g.batch[1], r.chance(8));
    ReferenceGemm ref{g.a.address,
                      g.b.address,
                      o.compare.ref,
                      type,
                      type,
                      g.a.row_stride,
                      g.a.k_stride,
                      {},
                      g.b.row_stride,
                      g.b.k_stride,
                      {},
                      g.m,
                      g.n,
                      g.k,
                      {},
                      {}};
    for (int j = 0; j < 2; j++) {
      ref.a_batch[j] = g.a.batch_stride[j];
      ref.b_batch[j] = g.b.batch_stride[j];
      ref.batch[j] = g.batch[j];
    }
    random_epilogue(r, arena, o, 0, g.epilogue, ref.e);
    if (type != Element::f32 && g.m <= 8 && r.chance(60)) random_norm(r, device, arena, g, ref);
    device.launch(elementwise("reference_gemm", ref, g.m * g.n * g.batch[0] * g.batch[1]));
    const std::vector<GemmChoice> choices = gemm_choices(device.target(), g);
    for (int j = 0; j < 4; j++) {
      const GemmChoice c = j == 0 ? choices.front() : any_choice(r, choices);
      const std::size_t bytes = gemm_workspace(device.target(), g, c);
      if (bytes) {
        g.workspace = arena.take(bytes);
        device.fill(g.workspace, 0xff, bytes);
      }
      poison(device, o);
      device.launch(plan_gemm(device.target(), g, c));
      // The reference rounds normalized elements, the kernel scaled ones.
      const double turned = !g.norm ? 0 : type == Element::f16 ? 4e-4 : 3e-3;
      tally.add(compare(device, o), turned + allowed(type, out, static_cast<int>(g.precision)), group_of(g, c),
                describe(g, c));
    }
  }
  return tally.report();
}

}  // namespace infernode::cuda::bench
