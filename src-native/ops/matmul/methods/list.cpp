#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/immortal.h"
#include "microkernels/kernel_set.h"
#include "ops/matmul/methods/method.h"

namespace infernode::ops {

void register_all(ProductMethods& methods);  // generated

using microkernels::GemmTable;
using microkernels::KernelSet;

const std::vector<ProductMethod>& ProductMethods::all() {
  static const Immortal<std::vector<ProductMethod>> all([] {
    ProductMethods methods;
    register_all(methods);
    std::stable_sort(methods.all_.begin(), methods.all_.end(),
                     [](const ProductMethod& a, const ProductMethod& b) { return a.place < b.place; });
    return methods.all_;
  }());
  return *all;
}

ProductSite product_site(const microkernels::GemmArgs& args) {
  return {.m = args.m,
          .n = args.n,
          .k = args.k,
          .trans_a = args.trans_a,
          .trans_b = args.trans_b,
          .codes = args.b_quantized != nullptr,
          .a_type = args.a_type,
          .b_type = args.b_type,
          .packed = args.packed_b.form};
}

std::optional<ProductSite> product_site(const kernel::KernelInfo& info) {
  const auto shape = [&](std::size_t input) {
    const graph::ValueType& type = info.input_type(input);
    return type.shape && type.elem == tensor::DType::Float32 ? graph::to_known(*type.shape) : std::nullopt;
  };
  const std::optional<tensor::Shape> a = shape(0), b = shape(1);
  if (!a || !b || a->rank() < 2 || b->rank() < 2 || a->numel() == 0 || b->numel() == 0) return std::nullopt;
  const auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  const std::size_t rows = size((*a)[a->rank() - 2]), last = size(a->back());
  ProductSite site;
  site.trans_a = info.attributes().get_int("transA", 0) != 0;
  site.trans_b = info.attributes().get_int("transB", 0) != 0;
  site.k = site.trans_a ? rows : last;
  site.m = site.trans_a ? last : rows;
  site.n = size((*b)[b->rank() - (site.trans_b ? 2 : 1)]);
  site.constant = info.constant(1) != nullptr && b->rank() == 2;
  if (b->rank() == 2 && !site.trans_a) site.m = size(a->numel()) / site.k;
  return site;
}

ProductLoops::ProductLoops(const KernelSet& kernels, bool float32)
    : packing_(float32 ? &kernels.gemm : &kernels.gemm_float32) {
  const std::span<const cost::Row> rates = cost::table(kernels.rung, kernels.precision);
  const KernelSet& vectors = microkernels::kernel_set(CpuRung::Avx512);
  for (const ProductMethod& method : ProductMethods::all()) {
    const bool lower = packing_->matrix_unit && !method.unit;
    if (method.unit && !packing_->matrix_unit) continue;
    const std::string name = lower ? cat(method.name, "@", to_string(vectors.rung)) : std::string(method.name);
    all_.push_back({&method, lower ? &vectors.gemm : packing_, cost::find(rates, name), name});
  }
}

ProductLoops::ProductLoops(const kernel::KernelInfo& info)
    : ProductLoops(info.kernels(), info.input_type(0).elem == tensor::DType::Float32) {
  if (!info.method().empty()) {
    std::erase_if(all_, [&](const ProductChoice& choice) { return choice.name != info.method(); });
    if (all_.empty()) fail(ErrorCode::Internal, cat("no method '", info.method(), "' for this product"));
    packing_ = all_.front().table;
    return;
  }
  std::optional<ProductSite> site = product_site(info);
  if (!site || !site->constant) return;
  const ProductWay best = quickest(*site);
  // Few rows wait for weights to come from memory, which rates of warm caches do not tell: fewer bytes stay fewer.
  constexpr std::size_t kFewRows = 8;
  const auto bytes = [&](const GemmTable* table) { return table->weights.bytes(site->n, site->k); };
  if (site->m <= kFewRows && bytes(packing_) < bytes(best.table)) return;
  site->constant = false;
  site->packed = packing_->weights.form(site->k);
  if (quickest(*site).table != best.table) packing_ = best.table;
}

template <class Each>
void ProductLoops::for_each(const ProductSite& site, Each each) const {
  for (const ProductChoice& choice : all_) {
    ProductSite own = site;
    if (site.constant) own.packed = choice.table->weights.form(site.k);
    if (!choice.method->can_run(own, *choice.table)) continue;
    each(choice, choice.row == nullptr
                     ? std::numeric_limits<double>::infinity()
                     : cost::nanoseconds(choice.method->terms(own, *choice.table), choice.row->rates) *
                           choice.method->margin());
  }
}

ProductWay ProductLoops::quickest(const ProductSite& site) const {
  ProductWay best{packing_, microkernels::GemmWay::kAny};
  double least = std::numeric_limits<double>::infinity();
  for_each(site, [&](const ProductChoice& choice, double time) {
    if (time >= least) return;
    best = {choice.table, choice.method->way};
    least = time;
  });
  return best;
}

std::vector<ProductChoice> ProductLoops::choices(const ProductSite& site) const {
  std::vector<std::pair<double, ProductChoice>> list;
  for_each(site, [&](const ProductChoice& choice, double time) { list.emplace_back(time, choice); });
  std::ranges::stable_sort(list, {}, [](const auto& timed) { return timed.first; });
  std::vector<ProductChoice> choices;
  for (auto& [time, choice] : list) choices.push_back(std::move(choice));
  return choices;
}

}  // namespace infernode::ops
