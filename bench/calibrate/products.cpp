#include <algorithm>
#include <optional>
#include <ostream>

#include "calibrate/draw.h"
#include "calibrate/families.h"
#include "calibrate/measurements.h"
#include "calibrate/network_clock.h"
#include "microkernels/kernel_set.h"
#include "microkernels/timing.h"
#include "ops/matmul/methods/method.h"

namespace infernode::bench {

namespace {

using microkernels::FloatType;
using microkernels::GemmArgs;
using ops::ProductChoice;
using ops::ProductLoops;
using ops::ProductSite;

struct Product {
  std::size_t m = 1, n = 1, k = 1;
  bool constant = true, trans_a = false, trans_b = false;

  ProductSite site() const {
    return {.m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b, .constant = constant};
  }
};
std::ostream& operator<<(std::ostream& out, const Product& p) {
  return out << p.m << ' ' << p.n << ' ' << p.k << ' ' << p.constant << ' ' << p.trans_a << ' ' << p.trans_b;
}
std::istream& operator>>(std::istream& in, Product& p) {
  return in >> p.m >> p.n >> p.k >> p.constant >> p.trans_a >> p.trans_b;
}

/// Ordinary sizes of layers and of attention, and odd ones.
class Products {
 public:
  explicit Products(unsigned seed) : draw_(seed) {}

  Product next() {
    for (;;) {
      const Product p = any();
      const double multiply_adds = static_cast<double>(p.m * p.n) * static_cast<double>(p.k);
      constexpr double kMost = 2e8, kLeast = 4e3;
      if (multiply_adds <= kMost && multiply_adds >= kLeast && p.n * p.k < 6'000'000) return p;
    }
  }

 private:
  std::size_t size(double least, double most) {
    if (draw_.chance(0.4)) {
      const auto usual =
          draw_.pick<std::size_t>({10, 16, 32, 49, 50, 64, 77, 80, 96, 100, 128, 192, 197, 256, 384, 512, 768, 1000});
      if (static_cast<double>(usual) >= least && static_cast<double>(usual) <= most) return usual;
    }
    return draw_.between(least, most);
  }
  Product any() {
    Product p;
    p.m = draw_.chance(0.2) ? size(1, 8) : size(1, 512);
    p.constant = draw_.chance(0.6);
    p.n = draw_.chance(0.1) ? size(1, 4) : p.constant ? size(1, 4096) : size(4, 768);
    p.k = size(8, p.constant ? 4096 : 768);
    p.trans_a = draw_.chance(0.1);
    p.trans_b = !p.constant && draw_.chance(0.5);
    return p;
  }

  Draw draw_;
};

/// A product with its operands, of which so many lie behind each other that they do not all stay in a core's cache.
class Operands {
 public:
  explicit Operands(const Product& p)
      : p_(p),
        copies_(std::clamp<std::size_t>(kBytes / sizeof(float) / (p.m * p.k + p.m * p.n), 1, 16)),
        a_(p.m * p.k * copies_),
        b_(p.n * p.k),
        c_(p.m * p.n * copies_) {}

  double time(const ProductChoice& choice, NetworkClock& clock) {
    const microkernels::GemmPacking& packing = choice.table->weights;
    Buffer scratch(choice.table->scratch_floats), packed(p_.constant ? packing.bytes(p_.n, p_.k) / sizeof(float) : 1);
    GemmArgs args{.way = choice.method->way, .m = p_.m, .n = p_.n, .k = p_.k, .epilogue = {}};
    args.lda = p_.trans_a ? p_.m : p_.k;
    args.trans_a = p_.trans_a;
    args.ldc = p_.n;
    if (p_.constant) {
      packing.pack(p_.n, p_.k, b_.data(), FloatType::kF32, p_.n, false, packed.data(), 0, p_.n);
      args.packed_b = packing.packed(p_.n, p_.k, packed.data());
    } else {
      args.b = b_.data();
      args.ldb = p_.trans_b ? p_.k : p_.n;
      args.trans_b = p_.trans_b;
    }
    return clock.nanoseconds([&, i = std::size_t{0}]() mutable {
      args.a = a_.data() + i * p_.m * p_.k;
      args.c = c_.data() + i * p_.m * p_.n;
      choice.table->gemm(args, {0, p_.m, 0, p_.n}, scratch.data());
      i = (i + 1) % copies_;
    });
  }

 private:
  static constexpr std::size_t kBytes = 1 << 20;
  Product p_;
  std::size_t copies_;
  Buffer a_, b_, c_;
};

cost::Terms terms_of(const ProductChoice& choice, ProductSite site) {
  if (site.constant) site.packed = choice.table->weights.form(site.k);
  return choice.method->terms(site, *choice.table);
}

void measure_products(CpuRung rung, microkernels::Float32Precision precision, const Asked& asked, std::ostream& out) {
  Products random(asked.seed);
  NetworkClock clock(rung);
  const ProductLoops loops(microkernels::kernel_set(rung, precision));
  for (std::size_t measured = 0; measured < asked.shapes;) {
    const Product product = random.next();
    std::optional<Operands> operands;
    for (const ProductChoice& choice : loops.choices(product.site())) {
      if (!asked.takes(choice.name)) continue;
      if (!operands) operands.emplace(product);
      out << product << ' ' << choice.name << ' ' << operands->time(choice, clock) << '\n';
    }
    if (operands) ++measured;
  }
}

Samples read_products(CpuRung rung, microkernels::Float32Precision precision, std::istream& in) {
  Samples samples;
  const ProductLoops loops(microkernels::kernel_set(rung, precision));
  for (const auto& m : read_measured<Product>(in)) {
    const ProductSite site = m.shape.site();
    for (const ProductChoice& choice : loops.choices(site)) {
      const auto at = m.times.find(choice.name);
      if (at != m.times.end()) samples[at->first].push_back({terms_of(choice, site), at->second});
    }
  }
  return samples;
}

Regret judge_products(CpuRung rung, microkernels::Float32Precision precision, std::istream& in,
                      const std::map<std::string, cost::Terms>& rates, const Margins& margins) {
  Regrets regrets;
  const ProductLoops loops(microkernels::kernel_set(rung, precision));
  for (const auto& m : read_measured<Product>(in)) {
    const ProductSite site = m.shape.site();
    Choice chosen(margins.unit);
    for (const ProductChoice& choice : loops.choices(site)) {
      const auto at = m.times.find(choice.name);
      const auto row = rates.find(choice.name);
      if (at == m.times.end() || row == rates.end()) continue;
      chosen.consider(at->first, cost::nanoseconds(terms_of(choice, site), row->second), at->second,
                      choice.method->unit);
    }
    regrets.add(m.shape, chosen);
  }
  return regrets.result();
}

}  // namespace

const Family kProducts{"products", measure_products, read_products, judge_products, cost::kUnitProductMargin};

}  // namespace infernode::bench
