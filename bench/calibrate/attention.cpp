#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>

#include "calibrate/draw.h"
#include "calibrate/families.h"
#include "calibrate/measurements.h"
#include "calibrate/network_clock.h"
#include "calibrate/node_host.h"
#include "microkernels/gemm/gemm.h"
#include "ops/attention/methods/method.h"

namespace infernode::bench {

namespace {

using ops::AttentionCall;
using ops::AttentionChoice;
using ops::Heads;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

struct Call {
  std::size_t batch = 1, heads = 1, q_len = 1, kv_len = 1, head = 1;
  bool mask = false, causal = false, rows_first = false;
  double multiply_adds() const {
    return 2.0 * static_cast<double>(batch * heads * q_len) * static_cast<double>(kv_len * head);
  }
};
std::ostream& operator<<(std::ostream& out, const Call& c) {
  return out << c.batch << ' ' << c.heads << ' ' << c.q_len << ' ' << c.kv_len << ' ' << c.head << ' ' << c.mask << ' '
             << c.causal << ' ' << c.rows_first;
}
std::istream& operator>>(std::istream& in, Call& c) {
  return in >> c.batch >> c.heads >> c.q_len >> c.kv_len >> c.head >> c.mask >> c.causal >> c.rows_first;
}

/// Ordinary sizes of encoders, decoders and images, and odd ones.
class Calls {
 public:
  explicit Calls(unsigned seed) : draw_(seed) {}

  Call next() {
    for (;;) {
      const Call c = any();
      constexpr double kMost = 2e8, kLeast = 4e3;
      if (c.multiply_adds() <= kMost && c.multiply_adds() >= kLeast) return c;
    }
  }

 private:
  std::size_t pick(std::initializer_list<std::size_t> values) { return draw_.pick(values); }
  std::size_t length(double least, double most) {
    if (draw_.chance(0.4)) return pick({16, 32, 49, 50, 64, 77, 100, 128, 197, 256, 384, 512, 577, 1024});
    return draw_.between(least, most);
  }
  Call any() {
    Call c;
    c.batch = pick({1, 1, 1, 2, 4});
    c.heads = pick({1, 2, 3, 4, 6, 8, 12, 16});
    c.head = pick({16, 20, 24, 32, 32, 40, 48, 64, 64, 64, 72, 80, 96, 128});
    c.q_len = draw_.chance(0.2) ? pick({1, 2, 3, 4, 6, 8, 12}) : length(12, 1024);
    c.kv_len = draw_.chance(0.5) ? c.q_len : length(12, 2048);
    c.mask = draw_.chance(0.3);
    c.causal = !c.mask && draw_.chance(0.2) && c.kv_len >= c.q_len;
    c.rows_first = draw_.chance(0.4);
    return c;
  }

  Draw draw_;
};

/// A call with its operands.
class Operands {
 public:
  Operands(const Call& c, CpuRung rung, microkernels::Float32Precision precision)
      : host_({}, {}, rung, precision),
        q_(filled(c, c.q_len, c.head)),
        k_(filled(c, c.kv_len, c.head)),
        v_(filled(c, c.kv_len, c.head)),
        y_(filled(c, c.q_len, c.head)),
        mask_(filled(c, c.q_len, c.kv_len)) {
    const auto heads = [&](const Tensor& t, std::size_t rows) {
      const float* const data = t.data<float>();
      return c.rows_first ? Heads<const float>::bsnh(data, c.heads, rows, c.head)
                          : Heads<const float>::bnsh(data, c.heads, rows, c.head);
    };
    call_.batch = c.batch;
    call_.q_heads = call_.kv_heads = c.heads;
    call_.q_len = c.q_len;
    call_.kv_len = call_.mask_columns = c.kv_len;
    call_.head = call_.v_head = c.head;
    call_.q = heads(q_, c.q_len);
    call_.k = heads(k_, c.kv_len);
    call_.v = heads(v_, c.kv_len);
    float* const y = y_.mutable_data<float>();
    call_.y = c.rows_first ? Heads<float>::bsnh(y, c.heads, c.q_len, c.head)
                           : Heads<float>::bnsh(y, c.heads, c.q_len, c.head);
    call_.scale = 1 / std::sqrt(static_cast<double>(c.head));
    if (c.mask) call_.mask = {mask_.data<float>(), 0, 0, c.kv_len};
    call_.causal = c.causal;
    if (c.causal) call_.offsets.assign(c.batch, static_cast<std::int64_t>(c.kv_len - c.q_len));
  }

  const AttentionCall<float>& call() const { return call_; }
  double time(NetworkClock& clock, const AttentionChoice& choice) const {
    return host_.time(
        clock, [&](kernel::KernelContext& ctx) { choice.method->run(ctx, *choice.kernels, call_, choice.rows); });
  }

 private:
  static Tensor filled(const Call& c, std::size_t rows, std::size_t columns) {
    const auto size = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    Tensor t = Tensor::make(DType::Float32, Shape{size(c.batch), size(c.heads), size(rows), size(columns)},
                            tensor::host_allocator());
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::int64_t i = 0; i < t.numel(); ++i) t.mutable_data<float>()[i] = uniform(random);
    return t;
  }

  NodeHost host_;
  Tensor q_, k_, v_, y_, mask_;
  AttentionCall<float> call_;
};

/// Of a line of times.
std::string name_of(const AttentionChoice& choice, CpuRung rung) { return cat(choice.name(rung), ":", choice.rows); }

void measure_attention(CpuRung rung, microkernels::Float32Precision precision, const Asked& asked, std::ostream& out) {
  Calls random(asked.seed);
  NetworkClock clock(rung);
  for (std::size_t measured = 0; measured < asked.shapes;) {
    const Call call = random.next();
    const Operands operands(call, rung, precision);
    const ops::AttentionSite site = attention_site(operands.call());
    bool any = false;
    for (const AttentionChoice& choice : ops::attention_choices(site, microkernels::kernel_set(rung, precision))) {
      if (!asked.takes(name_of(choice, rung))) continue;
      out << call << ' ' << name_of(choice, rung) << ' ' << operands.time(clock, choice) << '\n';
      any = true;
    }
    if (any) ++measured;
  }
}

/// Calls each(choice, terms, time) for what was measured of each call.
template <class Each, class After>
void for_each_measured(CpuRung rung, microkernels::Float32Precision precision, std::istream& in, Each each,
                       After after) {
  const microkernels::KernelSet& kernels = microkernels::kernel_set(rung, precision);
  for (const auto& m : read_measured<Call>(in)) {
    const ops::AttentionSite site = attention_site(Operands(m.shape, rung, precision).call());
    for (const AttentionChoice& choice : ops::attention_choices(site, kernels)) {
      if (const auto at = m.times.find(name_of(choice, rung)); at != m.times.end())
        each(choice, choice.method->terms(site, choice.rows, *choice.kernels), at->second);
    }
    after(m.shape);
  }
}

Samples read_attention(CpuRung rung, microkernels::Float32Precision precision, std::istream& in) {
  Samples samples;
  for_each_measured(
      rung, precision, in,
      [&](const AttentionChoice& choice, const cost::Terms& terms, double taken) {
        samples[choice.name(rung)].push_back({terms, taken});
      },
      [](const Call&) {});
  return samples;
}

Regret judge_attention(CpuRung rung, microkernels::Float32Precision precision, std::istream& in,
                       const std::map<std::string, cost::Terms>& rates, const Margins& margins) {
  Regrets regrets;
  Choice chosen(margins.unit);
  for_each_measured(
      rung, precision, in,
      [&](const AttentionChoice& choice, const cost::Terms& terms, double taken) {
        const auto row = rates.find(choice.name(rung));
        if (row != rates.end())
          chosen.consider(name_of(choice, rung), cost::nanoseconds(terms, row->second), taken,
                          choice.kernels->gemm.matrix_unit);
      },
      [&](const Call& call) {
        regrets.add(call, chosen);
        chosen = Choice(margins.unit);
      });
  return regrets.result();
}

}  // namespace

const Family kAttention{"attention", measure_attention, read_attention, judge_attention, 1};

}  // namespace infernode::bench
