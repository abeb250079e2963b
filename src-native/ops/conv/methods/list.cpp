#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/immortal.h"
#include "ops/conv/methods/dense.h"
#include "ops/conv/methods/depthwise.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {

void register_all(ConvMethods& methods);  // generated

namespace {

/// Of a node of which too little is known: reads and packs the weight at run.
class ConvGeneral final : public ConvRunner {
 public:
  explicit ConvGeneral(kernel::KernelInfo& info)
      : depthwise_(info.kernels().conv), dense_(info.kernels().conv, info.attributes().get_int("group", 1)) {}
  bool reads_weight() const override { return true; }
  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    if (p.depthwise()) {
      depthwise_.run(ctx, p, o, activation);
    } else {
      dense_.run(ctx, p, o, activation);
    }
  }

 private:
  ConvDepthwise depthwise_;
  ConvDense dense_;
};

/// The name of a method's rates: that of the method, with `@` and the rung where that is a lower one than the CPU's.
std::string name_of(const ConvMethod& method, CpuRung cpu, CpuRung rung) {
  return rung == cpu ? std::string(method.name) : cat(method.name, "@", to_string(rung));
}

bool fits_weight(const ConvChoice& choice, ConvSite site) {
  site.rung = choice.rung;
  return choice.method->fits_weight == nullptr || choice.method->fits_weight(site);
}

double nanoseconds(const ConvMethod& method, const ConvSite& site, std::span<const cost::Row> table) {
  if (method.terms == nullptr) return method.nanoseconds(site);
  const cost::Row* const row = cost::find(table, name_of(method, site.cpu, site.rung));
  return row == nullptr ? std::numeric_limits<double>::max() : cost::nanoseconds(method.terms(site), row->rates);
}

/// Whatever the weight's numbers are.
std::vector<ConvChoice> by_shape(const ConvSite& site, ConvLayout layout) {
  const std::span<const cost::Row> table = cost::table(site.cpu, site.loop_precision());
  std::vector<ConvChoice> choices;
  for (const ConvMethod& method : ConvMethods::all()) {
    if ((method.make != nullptr) != (layout == ConvLayout::Planar)) continue;
    for (const CpuRung rung : {site.cpu, CpuRung::Avx512}) {
      if (rung != site.cpu && site.cpu != CpuRung::Amx) continue;
      ConvSite with = site;
      with.rung = rung;
      if (!method.can_run(with)) continue;
      choices.push_back({&method, rung, nanoseconds(method, with, table) * method.margin(rung)});
      if (rung == CpuRung::Avx512) break;  // once where that is the CPU's
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const ConvChoice& a, const ConvChoice& b) { return a.nanoseconds < b.nanoseconds; });
  return choices;
}

/// The node's method where it is given, else the quickest.
std::optional<ConvChoice> chosen(const kernel::KernelInfo& info, const ConvSite& site, ConvLayout layout) {
  if (info.method().empty()) return quickest_conv(site, layout);
  for (const ConvChoice& choice : by_shape(site, layout))
    if (name_of(*choice.method, site.cpu, choice.rung) == info.method() && fits_weight(choice, site)) return choice;
  fail(ErrorCode::Internal, cat("no method '", info.method(), "' for this convolution"));
}

}  // namespace

const std::vector<ConvMethod>& ConvMethods::all() {
  static const Immortal<std::vector<ConvMethod>> all([] {
    ConvMethods methods;
    register_all(methods);
    std::stable_sort(methods.all_.begin(), methods.all_.end(),
                     [](const ConvMethod& a, const ConvMethod& b) { return a.place < b.place; });
    return methods.all_;
  }());
  return *all;
}

std::vector<ConvChoice> conv_choices(const ConvSite& site, ConvLayout layout) {
  std::vector<ConvChoice> choices = by_shape(site, layout);
  std::erase_if(choices, [&](const ConvChoice& choice) { return !fits_weight(choice, site); });
  return choices;
}

std::optional<ConvChoice> quickest_conv(const ConvSite& site, ConvLayout layout) {
  for (const ConvChoice& choice : by_shape(site, layout))
    if (fits_weight(choice, site)) return choice;
  return std::nullopt;
}

std::vector<std::string> method_names(const ConvSite& site, ConvLayout layout) {
  std::vector<std::string> names;
  if (!site.certain) return names;
  for (const ConvChoice& choice : conv_choices(site, layout))
    names.push_back(name_of(*choice.method, site.cpu, choice.rung));
  return names;
}

std::unique_ptr<ConvRunner> make_conv(kernel::KernelInfo& info) {
  if (std::optional<ConvSite> site = conv_site(info)) {
    if (const std::optional<ConvChoice> choice = chosen(info, *site, ConvLayout::Planar)) {
      site->rung = choice->rung;
      return choice->method->make(info, *site);
    }
  }
  return std::make_unique<ConvGeneral>(info);
}

std::unique_ptr<BlockedRunner> make_blocked_conv(kernel::KernelInfo& info, ConvSite site) {
  const std::optional<ConvChoice> choice = chosen(info, site, ConvLayout::Blocked);
  if (!choice) return nullptr;
  site.rung = choice->rung;
  return choice->method->make_blocked(info, site);
}

cost::Terms block_conversion_terms(double blocked_elements) {
  constexpr double kCached = 1 << 20;
  return {1, blocked_elements, std::max(0.0, blocked_elements - kCached)};
}

double block_conversion_time(CpuRung rung, microkernels::Float32Precision precision, double blocked_elements) {
  const cost::Row* const row = cost::find(cost::table(rung, precision), "convert");
  return row == nullptr ? 0 : cost::nanoseconds(block_conversion_terms(blocked_elements), row->rates);
}

cost::Terms pool_terms(const PoolSite& site, ConvLayout layout) {
  constexpr double kBlock = microkernels::kChannelBlock;
  const double calls = layout == ConvLayout::Planar ? site.channels : std::ceil(site.channels / kBlock);
  const double planes = layout == ConvLayout::Planar ? calls : kBlock * calls;
  return {calls, planes * site.positions, planes * site.positions * site.window};
}

double pool_time(CpuRung rung, microkernels::Float32Precision precision, const PoolSite& site, ConvLayout layout) {
  const cost::Row* const row = cost::find(cost::table(rung, precision), pool_name(layout));
  return row == nullptr ? 0 : cost::nanoseconds(pool_terms(site, layout), row->rates);
}

}  // namespace infernode::ops
