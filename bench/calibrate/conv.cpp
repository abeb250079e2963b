#include <algorithm>
#include <numbers>
#include <ostream>
#include <random>

#include "base/error.h"
#include "calibrate/draw.h"
#include "calibrate/families.h"
#include "calibrate/measurements.h"
#include "calibrate/node_host.h"
#include "microkernels/pool/pool.h"
#include "microkernels/transpose/transpose.h"
#include "ops/conv/methods/method.h"

namespace infernode::bench {

namespace {

using microkernels::kChannelBlock;
using ops::ConvLayout;
using ops::ConvSite;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kConversion = "convert";

struct Shape2d {
  std::int64_t in, out, groups, kernel, stride, dilation, height, width;
  bool line, transform;
  double multiply_adds() const {
    const double points = static_cast<double>(line ? kernel : kernel * kernel);
    return static_cast<double>(in / groups * out) * points * static_cast<double>(height * width) /
           static_cast<double>(line ? stride : stride * stride);
  }
};

/// Ordinary sizes of networks over images and signals, and odd ones.
class Shapes {
 public:
  explicit Shapes(unsigned seed) : draw_(seed) {}

  Shape2d next() {
    for (;;) {
      const Shape2d s = any();
      constexpr double kMost = 1e9, kLeast = 2e4;
      const std::int64_t window = (s.kernel - 1) * s.dilation, pads = s.transform ? 0 : window / 2 * 2;
      const bool fits = s.width + pads > window && (s.line || s.height + pads > window);
      if (fits && s.multiply_adds() <= kMost && s.multiply_adds() >= kLeast &&
          s.height * s.width * std::max(s.in, s.out) < 8'000'000)
        return s;
    }
  }

 private:
  std::int64_t pick(std::initializer_list<std::int64_t> values) { return draw_.pick(values); }
  Shape2d any() {
    Shape2d s{};
    const std::int64_t kind = pick({0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5});
    s.in = pick({3, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 320, 512, 960});
    s.out = pick({3, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512});
    s.kernel = pick({1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 7});
    s.height = s.width = pick({1, 2, 4, 5, 7, 8, 10, 13, 14, 16, 20, 28, 32, 40, 56, 64, 80, 112, 160, 224, 320});
    if (pick({0, 1, 2}) == 0) s.width = pick({4, 7, 10, 14, 20, 28, 40, 56, 80, 112});
    s.stride = pick({1, 1, 1, 1, 1, 2, 2, 3, 4});
    s.dilation = s.kernel > 1 && (s.stride == 1 || pick({0, 1, 2}) == 0) ? pick({1, 1, 1, 1, 2, 4, 6, 12, 18}) : 1;
    s.groups = 1;
    if (kind == 1) {  // depthwise
      s.in = s.out = s.groups = pick({16, 32, 72, 96, 144, 240, 384, 576});
      s.kernel = pick({2, 3, 3, 3, 3, 4, 5, 5, 7, 9, 11});
      s.dilation = pick({1, 1, 1, 1, 2, 6});
      s.stride = pick({1, 1, 1, 2, 2, 3, 4});  // each has loops of its own
    } else if (kind == 2) {                    // groups
      s.groups = pick({2, 4, 8, 16, 32});
      s.in = s.groups * pick({1, 3, 4, 8, 12, 16, 24, 32});
      s.out = pick({0, 1}) == 0 ? s.in : s.groups * pick({1, 2, 4, 8, 12, 16, 24, 36});
      s.kernel = pick({1, 3, 3, 3, 5});
      s.dilation = pick({1, 1, 1, 2});
    } else if (kind == 3) {  // lines
      s.line = true;
      s.in = pick({1, 16, 64, 80, 128, 256, 512});
      s.kernel = pick({1, 3, 3, 5, 7, 10});
      s.height = 1;
      s.width = pick({25, 100, 400, 1500, 4000});
      s.stride = pick({1, 1, 2, 5});
      s.dilation = s.stride == 1 ? pick({1, 1, 2}) : 1;
    } else if (kind == 5) {  // more weights than a core's cache holds, for few positions
      s.in = pick({192, 256, 352, 512, 960});
      s.out = pick({192, 256, 384, 512});
      s.kernel = pick({3, 3, 5, 7});
      s.height = s.width = pick({4, 7, 8, 10, 13, 14});
    } else if (kind == 4 && pick({0, 1, 2, 3}) == 0) {  // spectrograms
      s.line = s.transform = true;
      s.in = s.dilation = s.groups = 1;
      s.kernel = pick({256, 400, 512, 1024});
      s.stride = s.kernel / 4;
      s.out = s.kernel / 2 + 1;
      s.height = 1;
      s.width = pick({8000, 16000, 32000});
    }
    return s;
  }

  Draw draw_;
};

Tensor filled(const Shape& shape, DType type = DType::Float32) {
  Tensor t = Tensor::make(type, shape, tensor::host_allocator());
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  if (type == DType::Float32) {
    for (std::int64_t i = 0; i < t.numel(); ++i) t.mutable_data<float>()[i] = normal(random);
  } else {
    std::fill_n(static_cast<std::byte*>(t.mutable_raw()), t.bytes(), std::byte{0x3c});
  }
  return t;
}

Tensor cosines(const Shape& shape) {
  Tensor t = Tensor::make(DType::Float32, shape, tensor::host_allocator());
  const std::int64_t length = shape[2];
  for (std::int64_t k = 0; k < shape[0]; ++k) {
    for (std::int64_t n = 0; n < length; ++n)
      t.mutable_data<float>()[k * length + n] = static_cast<float>(
          std::cos(2 * std::numbers::pi * static_cast<double>(k * n % length) / static_cast<double>(length)));
  }
  return t;
}

/// One node of a shape, and what its methods read and write.
class Conv {
 public:
  Conv(const Shape2d& s, CpuRung rung, microkernels::Float32Precision precision) {
    const std::int64_t axes = s.line ? 1 : 2, pad = s.transform ? 0 : (s.kernel - 1) * s.dilation / 2;
    graph::Node node;
    node.op_type = "Conv";
    node.inputs = {0, 1, 2};
    node.outputs = {3};
    if (s.transform) node.inputs.pop_back();
    node.attributes.set("strides", std::vector<std::int64_t>(size(axes), s.stride));
    node.attributes.set("dilations", std::vector<std::int64_t>(size(axes), s.dilation));
    node.attributes.set("pads", std::vector<std::int64_t>(size(2 * axes), pad));
    node.attributes.set("group", s.groups);
    Shape x{1, s.in}, w{s.out, s.in / s.groups};
    if (!s.line) x.push_back(s.height);
    x.push_back(s.width);
    for (std::int64_t i = 0; i < axes; ++i) w.push_back(s.kernel);
    weight_ = std::make_shared<const Tensor>(s.transform ? cosines(w) : filled(w));
    host_ = std::make_unique<NodeHost>(
        std::move(node),
        std::vector<NodeHost::Input>{{graph::ValueType::tensor(DType::Float32, graph::to_sym(x)), nullptr},
                                     {graph::ValueType::tensor(DType::Float32, graph::to_sym(w)), weight_}},
        rung, precision);
    problem_ = ops::plan_conv(ops::Window(host_->attributes()), s.groups, x, w);
    x_ = filled(x);
    y_ = filled(problem_.out);
    bias_ = filled(Shape{(s.out + 15) / 16 * 16});
  }

  std::optional<ConvSite> site() const { return ops::conv_site(*host_); }

  double time(NetworkClock& clock, const ops::ConvChoice& choice, ConvSite site) {
    site.rung = choice.rung;
    const microkernels::ActivationArgs activation;
    if (choice.method->make != nullptr) {
      const std::unique_ptr<ops::ConvRunner> runner = choice.method->make(*host_, site);
      const ops::ConvOperands operands{x_.data<float>(), weight_->data<float>(), bias_.data<float>(), nullptr,
                                       y_.mutable_data<float>()};
      return host_->time(clock, [&](kernel::KernelContext& ctx) { runner->run(ctx, problem_, operands, activation); });
    }
    const std::unique_ptr<ops::BlockedRunner> runner = choice.method->make_blocked(*host_, site);
    const DType type = runner->takes_bf16() ? DType::BFloat16 : DType::Float32;
    const Tensor x = site.planes ? x_ : filled(blocks(x_.shape()), type), y = filled(blocks(y_.shape()), type);
    microkernels::BlockedConvArgs args;
    args.shape = problem_.shape;
    args.planar = site.planes;
    args.bias = bias_.data<float>();
    return host_->time(clock,
                       [&](kernel::KernelContext& ctx) { runner->run(ctx, problem_, args, x, *weight_, nullptr, y); });
  }

 private:
  static std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
  static Shape blocks(const Shape& planar) {
    constexpr auto kBlock = static_cast<std::int64_t>(kChannelBlock);
    return {planar[0], (planar[1] + kBlock - 1) / kBlock, planar[2], planar[3], kBlock};
  }

  std::shared_ptr<const Tensor> weight_;
  std::unique_ptr<NodeHost> host_;
  ops::ConvProblem problem_;
  Tensor x_, y_, bias_;
};

std::ostream& operator<<(std::ostream& out, const Shape2d& s) {
  return out << s.in << ' ' << s.out << ' ' << s.groups << ' ' << s.kernel << ' ' << s.stride << ' ' << s.dilation
             << ' ' << s.height << ' ' << s.width << ' ' << s.line << ' ' << s.transform;
}
std::istream& operator>>(std::istream& in, Shape2d& s) {
  return in >> s.in >> s.out >> s.groups >> s.kernel >> s.stride >> s.dilation >> s.height >> s.width >> s.line >>
         s.transform;
}

/// Conversions to and from blocks alike: lines of so many planes of one place each.
void measure_conversion(CpuRung rung, std::ostream& out) {
  constexpr std::size_t kMostPlaces = 320'000;
  NetworkClock clock(rung);
  clock.pass_over_memory();
  const auto move = microkernels::kernel_set(rung).transpose.bytes4;
  for (const std::size_t blocks : {1u, 2u, 6u, 20u}) {
    for (const std::size_t plane : {49u, 196u, 400u, 784u, 3136u, 12544u, 51200u}) {
      if (blocks * plane > kMostPlaces) continue;
      std::vector<std::uint32_t> x(blocks * kChannelBlock * plane, 1), y(x.size());
      NodeHost host({}, {}, rung, microkernels::Float32Precision::kHighest);
      const double taken = host.time(clock, [&](kernel::KernelContext&) {
        for (std::size_t b = 0; b < blocks; ++b) {
          const std::size_t at = b * kChannelBlock * plane;
          move(x.data() + at, plane, y.data() + at, kChannelBlock, kChannelBlock, plane);
        }
      });
      Shape2d shape{};
      shape.in = static_cast<std::int64_t>(blocks * kChannelBlock);
      shape.width = static_cast<std::int64_t>(plane);
      out << shape << ' ' << kConversion << ' ' << taken << '\n';
    }
  }
}

ops::PoolSite pool_site(const Shape2d& s) {
  const auto places = [&](std::int64_t size) { return static_cast<double>((size - s.kernel) / s.stride + 1); };
  return {static_cast<double>(s.in), places(s.height) * places(s.width), static_cast<double>(s.kernel * s.kernel)};
}

/// MaxPool without padding, plane by plane and block by block.
void measure_pools(CpuRung rung, const Asked& asked, std::ostream& out) {
  NetworkClock clock(rung);
  const microkernels::PoolTable& table = microkernels::kernel_set(rung).pool;
  constexpr struct { std::int64_t kernel, stride; } kWindows[] = {{2, 2}, {3, 2}, {3, 1}, {5, 1}};
  for (const std::int64_t channels : {16, 64, 256}) {
    for (const std::int64_t size : {7, 14, 28, 56, 112}) {
      for (const auto& window : kWindows) {
        Shape2d shape{};
        shape.in = channels, shape.kernel = window.kernel, shape.stride = window.stride;
        shape.height = shape.width = size;
        const auto side = static_cast<std::size_t>(size), kernel = static_cast<std::size_t>(window.kernel),
                   stride = static_cast<std::size_t>(window.stride), made = (side - kernel) / stride + 1;
        const microkernels::PoolShape s{.in_h = side,
                                        .in_w = side,
                                        .out_h = made,
                                        .out_w = made,
                                        .kernel_h = kernel,
                                        .kernel_w = kernel,
                                        .stride_h = stride,
                                        .stride_w = stride};
        const std::size_t planes = static_cast<std::size_t>(channels), in = side * side, to = made * made;
        const Tensor x = filled(Shape{channels, size, size}), y = filled(Shape{channels, size, size});
        const NodeHost host({}, {}, rung, microkernels::Float32Precision::kHighest);
        for (const ConvLayout layout : {ConvLayout::Planar, ConvLayout::Blocked}) {
          if (!asked.takes(ops::pool_name(layout))) continue;
          const std::size_t each = layout == ConvLayout::Planar ? 1 : kChannelBlock;
          const auto run = layout == ConvLayout::Planar ? table.max : table.max_places;
          const double taken = host.time(clock, [&](kernel::KernelContext&) {
            for (std::size_t p = 0; p < planes; p += each)
              run(s, x.data<float>() + p * in, y.mutable_data<float>() + p * to);
          });
          out << shape << ' ' << ops::pool_name(layout) << ' ' << taken << '\n';
        }
      }
    }
  }
}

std::string row_name(const ops::ConvChoice& choice, CpuRung rung) {
  return choice.rung == rung ? std::string(choice.method->name) : cat(choice.method->name, "@", to_string(choice.rung));
}

/// Calls each(layout, choice, site) for all methods that can run a shape, or for those that count terms.
template <class Each>
void for_each_method(const Shape2d& shape, const Conv& conv, bool of_terms, Each each) {
  std::optional<ConvSite> site = conv.site();
  if (!site) return;
  for (const ConvLayout layout : {ConvLayout::Planar, ConvLayout::Blocked}) {
    site->planes = layout == ConvLayout::Blocked && shape.in <= 8 && shape.groups == 1;
    for (const ops::ConvChoice& choice : ops::conv_choices(*site, layout)) {
      if (choice.method->terms == nullptr && of_terms) continue;
      ConvSite with = *site;
      with.rung = choice.rung;
      each(layout, choice, with);
    }
  }
}

void measure_conv(CpuRung rung, microkernels::Float32Precision precision, const Asked& asked, std::ostream& out) {
  Shapes random(asked.seed);
  NetworkClock clock(rung);
  if (asked.takes(kConversion)) measure_conversion(rung, out);
  measure_pools(rung, asked, out);
  for (std::size_t measured = 0; measured < asked.shapes;) {
    const Shape2d shape = random.next();
    Conv conv(shape, rung, precision);
    bool any = false;
    for_each_method(shape, conv, true, [&](ConvLayout, const ops::ConvChoice& choice, const ConvSite& site) {
      const std::string name = row_name(choice, rung);
      if (!asked.takes(name)) return;
      out << shape << ' ' << name << ' ' << conv.time(clock, choice, site) << '\n';
      any = true;
    });
    if (any) ++measured;
  }
}

Samples read_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in) {
  Samples samples;
  for (const auto& m : read_measured<Shape2d>(in)) {
    if (const auto at = m.times.find(kConversion); at != m.times.end()) {
      const auto elements = static_cast<double>(m.shape.in * m.shape.width);
      samples[kConversion].push_back({ops::block_conversion_terms(elements), at->second});
      continue;
    }
    bool pool = false;
    for (const ConvLayout layout : {ConvLayout::Planar, ConvLayout::Blocked}) {
      const auto at = m.times.find(ops::pool_name(layout));
      if (at == m.times.end()) continue;
      samples[at->first].push_back({ops::pool_terms(pool_site(m.shape), layout), at->second});
      pool = true;
    }
    if (pool) continue;
    const Conv conv(m.shape, rung, precision);
    for_each_method(m.shape, conv, true, [&](ConvLayout, const ops::ConvChoice& choice, const ConvSite& site) {
      const auto at = m.times.find(row_name(choice, rung));
      if (at != m.times.end()) samples[at->first].push_back({choice.method->terms(site), at->second});
    });
  }
  return samples;
}

/// Choices between plain order and blocks.
class Orders {
 public:
  void add(const Choice& plain, const Choice& blocked, double margin) {
    if (plain.taken == 0 || blocked.taken == 0) return;
    const bool is_plain = plain.expected * margin <= blocked.expected;
    ++regret_.orders;
    if (is_plain) ++regret_.plain;
    if (is_plain && plain.taken > 1.1 * blocked.taken) ++regret_.plain_slower;
    taken_ += is_plain ? plain.taken : blocked.taken;
    best_ += std::min(plain.taken, blocked.taken);
  }
  Regret added_to(Regret all) const {
    all.orders = regret_.orders, all.plain = regret_.plain, all.plain_slower = regret_.plain_slower;
    if (best_ > 0) all.in_all_orders = taken_ / best_;
    return all;
  }

 private:
  Regret regret_;
  double taken_ = 0, best_ = 0;
};

Regret judge_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in,
                  const std::map<std::string, cost::Terms>& rates, const Margins& margins) {
  Regrets regrets;
  Orders orders;
  for (const auto& m : read_measured<Shape2d>(in)) {
    if (m.times.contains(kConversion) || m.times.contains(ops::pool_name(ConvLayout::Planar)) ||
        m.times.contains(ops::pool_name(ConvLayout::Blocked)))
      continue;
    Choice of[2] = {Choice(margins.unit), Choice(margins.unit)};
    Choice of_either(margins.unit);  // as the layout pass chooses where nothing has to be converted
    const Conv conv(m.shape, rung, precision);
    for_each_method(m.shape, conv, true, [&](ConvLayout layout, const ops::ConvChoice& choice, const ConvSite& site) {
      const auto at = m.times.find(row_name(choice, rung));
      const auto row = rates.find(row_name(choice, rung));
      if (at == m.times.end() || row == rates.end()) return;
      const double expected = cost::nanoseconds(choice.method->terms(site), row->second);
      const bool unit = choice.method->uses_unit(choice.rung);
      of[static_cast<std::size_t>(layout)].consider(at->first, expected, at->second, unit);
      of_either.consider(at->first, expected * (layout == ConvLayout::Planar ? margins.plain : 1), at->second, unit);
    });
    for (const Choice& choice : of) regrets.add(m.shape, choice);
    regrets.add(m.shape, of_either);
    orders.add(of[0], of[1], margins.plain);
  }
  return orders.added_to(regrets.result());
}

}  // namespace

const Family kConv{"conv", measure_conv, read_conv, judge_conv, cost::kUnitConvMargin};

void compare_conv(CpuRung rung, microkernels::Float32Precision precision, std::istream& in, std::ostream& out) {
  NetworkClock clock(rung);
  for (Shape2d shape; in >> shape;) {
    Conv conv(shape, rung, precision);
    out << shape << '\n';
    for_each_method(shape, conv, false, [&](ConvLayout, const ops::ConvChoice& choice, const ConvSite& site) {
      const double taken = conv.time(clock, choice, site);
      out << "  " << row_name(choice, rung) << ' ' << taken / 1e3 << " us, expected " << choice.nanoseconds / 1e3
          << ", multiply-adds a ns " << shape.multiply_adds() / taken << '\n';
    });
  }
}

}  // namespace infernode::bench
