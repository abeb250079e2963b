// Every method that can make attention makes it, with blocks of any size.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"
#include "ops/op_test.h"

namespace infernode::ops {
namespace {

using tensor::Shape;
using tensor::Tensor;
using test::noise;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class NoOutputs final : public kernel::OutputSink {
 public:
  Tensor allocate_output(std::size_t, tensor::DType, const Shape&) override { return {}; }
};

struct Case {
  std::size_t batch, q_heads, kv_heads, q_len, kv_len, head, v_head;
  bool rows_first = false, mask = false, causal = false, lengths = false;
};

/// A call with its operands.
class Operands {
 public:
  explicit Operands(const Case& c)
      : q_(made(c.batch, c.q_heads, c.q_len, c.head, 1)),
        k_(made(c.batch, c.kv_heads, c.kv_len, c.head, 2)),
        v_(made(c.batch, c.kv_heads, c.kv_len, c.v_head, 3)),
        y_(made(c.batch, c.q_heads, c.q_len, c.v_head, 4)),
        mask_(made(c.batch, 1, c.q_len, c.kv_len, 5)) {
    call.batch = c.batch;
    call.q_heads = c.q_heads;
    call.kv_heads = c.kv_heads;
    call.q_len = c.q_len;
    call.kv_len = call.mask_columns = c.kv_len;
    call.head = c.head;
    call.v_head = c.v_head;
    const auto heads = [&](const Tensor& t, std::size_t count, std::size_t rows, std::size_t columns) {
      float* const data = t.mutable_data<float>();
      const Heads<float> h = c.rows_first ? Heads<float>::bsnh(data, count, rows, columns)
                                          : Heads<float>::bnsh(data, count, rows, columns);
      return Heads<const float>{h.data, h.batch, h.head, h.row};
    };
    call.q = heads(q_, c.q_heads, c.q_len, c.head);
    call.k = heads(k_, c.kv_heads, c.kv_len, c.head);
    call.v = heads(v_, c.kv_heads, c.kv_len, c.v_head);
    const Heads<const float> y = heads(y_, c.q_heads, c.q_len, c.v_head);
    call.y = {y_.mutable_data<float>(), y.batch, y.head, y.row};
    call.scale = 0.4;
    if (c.mask) call.mask = {mask_.data<float>(), c.q_len * c.kv_len, 0, c.kv_len};
    call.causal = c.causal;
    for (std::size_t b = 0; c.lengths && b < c.batch; ++b)
      call.lengths.push_back(static_cast<std::int64_t>(b * 7 % (c.kv_len + 1)));
  }

  /// Some rows of the mask, keys and values get numbers that are none, or shut all keys out.
  void spoil() {
    float* const mask = mask_.mutable_data<float>();
    std::fill_n(mask + 3 * call.kv_len, call.kv_len, -kInfinity);
    mask[17 * call.kv_len + 1] = std::nanf("");
    mask[1] = -kInfinity;
    v_.mutable_data<float>()[call.v_head + 2] = 3e38f;
    v_.mutable_data<float>()[2] = 3e38f;
  }

  Tensor run(const AttentionChoice& choice) {
    return run([&](kernel::KernelContext& ctx) { choice.method->run(ctx, *choice.kernels, call, choice.rows); });
  }
  Tensor run(std::string_view name, CpuRung rung) {
    return run([&](kernel::KernelContext& ctx) { run_attention(ctx, microkernels::kernel_set(rung), call, name); });
  }

  AttentionCall<float> call{};

 private:
  Tensor run(FunctionRef<void(kernel::KernelContext&)> attend) {
    std::fill_n(y_.mutable_data<float>(), y_.numel(), std::nanf(""));
    kernel::RunContext run;
    run.allocator = &tensor::host_allocator();
    NoOutputs sink;
    kernel::KernelContext ctx(run, {}, {}, {}, {}, {}, sink);
    attend(ctx);
    const Tensor copy = Tensor::make(y_.dtype(), y_.shape(), tensor::host_allocator());
    std::memcpy(copy.mutable_raw(), y_.raw(), y_.bytes());
    return copy;
  }
  static Tensor made(std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::uint32_t seed) {
    const auto size = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    return noise({size(a), size(b), size(c), size(d)}, 1.0f, seed);
  }
  Tensor q_, k_, v_, y_, mask_;
};

bool alike(const Tensor& a, const Tensor& b, float tolerance) {
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    const bool same = x == y || (std::isnan(x) && std::isnan(y));
    if (!same && !(std::abs(x - y) <= tolerance * (1 + std::abs(y)))) return false;
  }
  return true;
}

/// By every method and size of blocks, beside what products make of one row at a time on the oldest CPU.
void check(Operands& operands) {
  const Tensor expected =
      operands.run(AttentionChoice{&kAttentionProducts, &microkernels::kernel_set(CpuRung::Baseline), 1, 0});
  for (const CpuRung rung : {CpuRung::Baseline, CpuRung::Avx2, CpuRung::Avx512, CpuRung::Amx}) {
    if (rung > cpu_rung()) continue;
    const AttentionSite site = attention_site(operands.call);
    const std::vector<AttentionChoice> choices = attention_choices(site, microkernels::kernel_set(rung));
    REQUIRE(!choices.empty());
    const AttentionChoice best = quickest_attention(site, microkernels::kernel_set(rung));
    CHECK(best.nanoseconds == choices[0].nanoseconds);
    for (const AttentionChoice& choice : choices) {
      CAPTURE(choice.name(rung));
      CAPTURE(choice.rows);
      CHECK(alike(operands.run(choice), expected, 1e-5f));
    }
    for (const std::string& name : attention_method_names(site, microkernels::kernel_set(rung)))
      CHECK(alike(operands.run(name, rung), expected, 1e-5f));
  }
}

TEST_CASE("every method of attention agrees with products of single rows") {
  for (const Case& c :
       {Case{1, 1, 1, 1, 1, 1, 1}, Case{2, 3, 3, 33, 50, 20, 24}, Case{1, 4, 2, 130, 77, 16, 40, true},
        Case{2, 2, 2, 40, 40, 64, 64, true, true}, Case{1, 2, 1, 100, 100, 32, 32, false, false, true},
        Case{3, 2, 2, 13, 40, 24, 16, true, true, false, true}, Case{2, 2, 2, 60, 90, 8, 8, false, true, true, true}}) {
    CAPTURE(c.q_len);
    CAPTURE(c.kv_len);
    Operands operands(c);
    check(operands);
  }
}

TEST_CASE("methods of attention agree on rows without keys, and on what is not finite") {
  for (const bool zero_nan : {false, true}) {
    for (const float shut : {0.0f, std::nanf("")}) {
      Operands operands({2, 2, 1, 40, 30, 16, 20, false, true});
      operands.spoil();
      operands.call.zero_nan = zero_nan;
      operands.call.shut_row = shut;
      check(operands);
    }
  }
}

TEST_CASE("a CPU with a matrix unit has the loops of vectors, too") {
  const microkernels::KernelSet& kernels = microkernels::kernel_set(CpuRung::Amx);
  if (!kernels.gemm.matrix_unit) return;  // of another architecture
  AttentionSite site{.heads = 4, .groups = 4, .q_len = 100, .kv_len = 100, .head = 64, .v_head = 64};
  const auto has = [&](std::string_view name) {
    return std::ranges::count(attention_method_names(site, kernels), name) == 1;
  };
  CHECK(has("attention.products"));
  CHECK(has("attention.products@avx512"));
  CHECK(has("attention.strips@avx512"));
  CHECK(!has("attention.strips"));
  site.q_len = 1;  // too few to rearrange keys for
  CHECK(!has("attention.strips@avx512"));
  CHECK(has("attention.products@avx512"));
}

TEST_CASE("blocks of queries by the matrix unit keep their scores near") {
  const microkernels::KernelSet& kernels = microkernels::kernel_set(CpuRung::Amx);
  AttentionSite site{.q_len = 4096, .kv_len = 1 << 20, .head = 64, .v_head = 64};
  for (const AttentionChoice& choice : attention_choices(site, kernels)) {
    if (choice.kernels->gemm.matrix_unit) CHECK(choice.rows == 16);
  }
  site.kv_len = 512;
  std::size_t most = 0;
  for (const AttentionChoice& choice : attention_choices(site, kernels)) {
    if (choice.kernels->gemm.matrix_unit) most = std::max(most, choice.rows);
  }
  CHECK(most == (kernels.gemm.matrix_unit ? 256u : 0u));
}

TEST_CASE("strips leave to products what is not plain") {
  const auto runs = [](const AttentionCall<float>& call) {
    return kAttentionStrips.can_run(attention_site(call), microkernels::kernel_set(CpuRung::Baseline));
  };
  Operands operands({1, 2, 2, 20, 20, 8, 8});
  CHECK(runs(operands.call));
  AttentionCall<float> call = operands.call;
  call.scale = -1;
  CHECK(!runs(call));
  call = operands.call;
  call.softcap = 3;
  CHECK(!runs(call));
  call = operands.call;
  call.left_window = 4;
  CHECK(!runs(call));
  call = operands.call;
  call.precision = tensor::DType::Float16;
  CHECK(!runs(call));
}

}  // namespace
}  // namespace infernode::ops
