// Every method that can run a convolution computes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/conv/methods/method.h"
#include "ops/op_test.h"

namespace infernode::ops {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using test::noise;

/// A convolution of constant weights, outside of any graph.
class Node final : public kernel::KernelInfo {
 public:
  Node(graph::Node node, const Shape& x, Tensor weight, CpuRung rung)
      : node_(std::move(node)),
        x_(graph::ValueType::tensor(DType::Float32, graph::to_sym(x))),
        w_(graph::ValueType::tensor(DType::Float32, graph::to_sym(weight.shape()))),
        weight_(std::move(weight)),
        kernels_(microkernels::kernel_set(rung)) {}

  const graph::Node& node() const override { return node_; }
  std::int64_t since_version() const override { return 1; }
  const graph::ValueType& input_type(std::size_t i) const override { return i == 0 ? x_ : i == 1 ? w_ : none_; }
  const graph::ValueType& output_type(std::size_t) const override { return none_; }
  const Tensor* constant(std::size_t i) const override { return i == 1 ? &weight_ : nullptr; }
  void release_constant(std::size_t) override {}
  kernel::WeightPacker& packer() override { return packer_; }
  const microkernels::KernelSet& kernels() const override { return kernels_; }
  std::string_view method() const override { return chosen; }
  std::unique_ptr<kernel::SubgraphRunner> subgraph(std::string_view) override { return nullptr; }

  std::string chosen{};  ///< the method by its name

 private:
  struct Packer final : kernel::WeightPacker {
    explicit Packer(const Node& node) : node(node) {}
    tensor::Buffer pack(const graph::Node&, std::size_t, std::string_view,
                        FunctionRef<tensor::Buffer(const Tensor&)> make) override {
      return make(node.weight_);
    }
    const Node& node;
  };

  graph::Node node_;
  graph::ValueType x_, w_, none_;
  Tensor weight_;
  const microkernels::KernelSet& kernels_;
  Packer packer_{*this};
};

class NoOutputs final : public kernel::OutputSink {
 public:
  Tensor allocate_output(std::size_t, DType, const Shape&) override { return {}; }
};

struct Case {
  std::int64_t in, out, groups;
  std::vector<std::int64_t> size, kernel, strides, dilations, pads;
  bool residual = false;
};

std::vector<double> definition(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
                               const Tensor* residual) {
  const microkernels::ConvShape& s = p.shape;
  const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
  const auto place = [](std::size_t at, std::size_t stride, std::size_t k, std::size_t dilation, std::ptrdiff_t pad) {
    return static_cast<std::ptrdiff_t>(at * stride + k * dilation) - pad;
  };
  std::vector<double> y;
  for (std::size_t m = 0; m < static_cast<std::size_t>(p.out_channels); ++m) {
    for (std::size_t at = 0; at < s.positions(); ++at) {
      double sum = bias.data<float>()[m];
      for (std::size_t k = 0; k < s.depth(); ++k) {
        const std::size_t point = k % s.kernel_points(),
                          channel = m / s.out_channels * s.in_channels + k / s.kernel_points();
        const std::ptrdiff_t w0 = place(at % s.out_w, s.stride_w, point % s.kernel_w, s.dilation_w, s.pad_left),
                             h0 = place(at / s.out_w % s.out_h, s.stride_h, point / s.kernel_w % s.kernel_h,
                                        s.dilation_h, s.pad_top),
                             d0 = place(at / s.out_w / s.out_h, s.stride_d, point / s.kernel_w / s.kernel_h,
                                        s.dilation_d, s.pad_front);
        if (!inside(w0, s.in_w) || !inside(h0, s.in_h) || !inside(d0, s.in_d)) continue;
        const std::size_t from =
            ((channel * s.in_d + static_cast<std::size_t>(d0)) * s.in_h + static_cast<std::size_t>(h0)) * s.in_w +
            static_cast<std::size_t>(w0);
        sum += static_cast<double>(w.data<float>()[m * s.depth() + k]) * x.data<float>()[from];
      }
      y.push_back(sum + (residual != nullptr ? residual->data<float>()[m * s.positions() + at] : 0.0f));
    }
  }
  return y;
}

/// What a case convolves, and what comes of it.
struct Convolution {
  Convolution(const Case& c, CpuRung rung);

  /// Compares what the method `name` made.
  void check(const float* y) const {
    double most = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      most = std::max(most, std::abs(expected[i] - static_cast<double>(y[i])));
    CHECK(most < 2e-6 * std::sqrt(static_cast<double>(problem.shape.depth())) * 30);
  }

  Shape x_shape, w_shape;
  Tensor x, w, bias, residual;
  std::unique_ptr<Node> info;
  ConvProblem problem;
  std::vector<double> expected;
};

Convolution::Convolution(const Case& c, CpuRung rung) : x_shape{1, c.in}, w_shape{c.out, c.in / c.groups} {
  graph::Node node;
  node.op_type = "Conv";
  node.inputs = {0, 1, 2};
  if (c.residual) node.inputs.push_back(3);
  node.outputs = {4};
  node.attributes.set("group", c.groups);
  node.attributes.set("strides", c.strides);
  node.attributes.set("dilations", c.dilations);
  node.attributes.set("pads", c.pads);
  for (const std::int64_t length : c.size) x_shape.push_back(length);
  for (const std::int64_t length : c.kernel) w_shape.push_back(length);
  x = noise(x_shape);
  w = noise(w_shape, 1.0f, 2);
  bias = noise({c.out}, 1.0f, 3);
  info = std::make_unique<Node>(node, x_shape, w, rung);
  problem = plan_conv(Window(node.attributes), c.groups, x_shape, w_shape);
  if (c.residual) residual = noise(problem.out, 1.0f, 4);
  expected = definition(problem, x, w, bias, c.residual ? &residual : nullptr);
}

/// Calls each(context) with what a kernel runs in.
template <class Run>
void in_context(Run run_it) {
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  NoOutputs sink;
  kernel::KernelContext ctx(run, {}, {}, {}, {}, {}, sink);
  run_it(ctx);
}

using Names = std::set<std::string, std::less<>>;

void check_planar(const Convolution& conv, Names& reached) {
  const std::optional<ConvSite> site = conv_site(*conv.info);
  REQUIRE(site);
  CHECK(site->certain);
  const std::vector<ConvChoice> choices = conv_choices(*site, ConvLayout::Planar);
  REQUIRE(!choices.empty());
  const std::vector<std::string> names = method_names(*site, ConvLayout::Planar);
  REQUIRE(names.size() == choices.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(names[i].starts_with(choices[i].method->name));
    reached.insert(choices[i].method->name);
    conv.info->chosen = names[i];
    const std::unique_ptr<ConvRunner> runner = make_conv(*conv.info);
    Tensor y = Tensor::make(DType::Float32, conv.problem.out, tensor::host_allocator());
    const ConvOperands operands{conv.x.data<float>(), conv.w.data<float>(), conv.bias.data<float>(),
                                conv.residual.numel() > 1 ? conv.residual.data<float>() : nullptr,
                                y.mutable_data<float>()};
    in_context([&](kernel::KernelContext& ctx) { runner->run(ctx, conv.problem, operands, {}); });
    conv.check(y.data<float>());
  }
}

constexpr auto kBlock = static_cast<std::int64_t>(microkernels::kChannelBlock);

/// The same numbers with channels in blocks, those that are missing zero.
Tensor in_blocks(const Tensor& planes) {
  const Shape& s = planes.shape();
  const std::int64_t places = s[2] * s[3], blocks = (s[1] + kBlock - 1) / kBlock;
  Tensor out = Tensor::make(DType::Float32, {s[0], blocks, s[2], s[3], kBlock}, tensor::host_allocator());
  for (std::int64_t c = 0; c < blocks * kBlock; ++c) {
    for (std::int64_t i = 0; i < places; ++i)
      out.mutable_data<float>()[(c / kBlock * places + i) * kBlock + c % kBlock] =
          c < s[1] ? planes.data<float>()[c * places + i] : 0.0f;
  }
  return out;
}

std::vector<float> out_of_blocks(const Tensor& blocks, std::int64_t channels) {
  const std::int64_t places = blocks.shape()[2] * blocks.shape()[3];
  std::vector<float> planes(static_cast<std::size_t>(channels * places));
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < places; ++i)
      planes[static_cast<std::size_t>(c * places + i)] =
          blocks.data<float>()[(c / kBlock * places + i) * kBlock + c % kBlock];
  }
  return planes;
}

void check_blocked(const Convolution& conv, Names& reached) {
  if (conv.x_shape.rank() != 4) return;
  const std::int64_t channels = conv.problem.out[1];
  std::vector<float> bias(conv.bias.data<float>(), conv.bias.data<float>() + channels);
  bias.resize(static_cast<std::size_t>((channels + kBlock - 1) / kBlock * kBlock));
  for (const bool planes : {false, true}) {
    ConvSite site = *conv_site(*conv.info);
    site.planes = planes;
    for (const ConvChoice& choice : conv_choices(site, ConvLayout::Blocked)) {
      CAPTURE(choice.method->name);
      CAPTURE(planes);
      reached.insert(choice.method->name);
      site.rung = choice.rung;
      const std::unique_ptr<BlockedRunner> runner = choice.method->make_blocked(*conv.info, site);
      const Tensor x = planes ? conv.x : in_blocks(conv.x);
      const Tensor residual = conv.residual.numel() > 1 ? in_blocks(conv.residual) : Tensor();
      const Tensor y = in_blocks(noise(conv.problem.out, 1.0f, 9));
      microkernels::BlockedConvArgs args;
      args.shape = conv.problem.shape;
      args.planar = planes;
      args.bias = bias.data();
      in_context([&](kernel::KernelContext& ctx) {
        runner->run(ctx, conv.problem, args, x, conv.w, residual.numel() > 1 ? &residual : nullptr, y);
      });
      conv.check(out_of_blocks(y, channels).data());
    }
  }
}

}  // namespace

TEST_CASE("every method computes the convolution") {
  const std::vector<Case> cases = {
      {40, 24, 1, {20, 20}, {3, 3}, {1, 1}, {24, 24}, {24, 24, 24, 24}},
      {32, 40, 1, {20, 18}, {3, 3}, {1, 1}, {12, 6}, {12, 6, 12, 6}, true},
      {17, 33, 1, {13, 9}, {3, 3}, {1, 1}, {5, 4}, {5, 4, 5, 4}},
      {24, 32, 1, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}},
      {10, 48, 1, {28, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true},
      {64, 64, 1, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {48, 33, 1, {12, 12}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, true},
      {48, 33, 1, {12, 12}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {16, 8, 1, {4, 4}, {4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {40, 8, 1, {8, 20}, {3, 3}, {1, 1}, {12, 6}, {12, 6, 12, 6}, true},  // rows see padding alone
      {16, 16, 4, {8, 7}, {5, 3}, {1, 2}, {6, 9}, {14, 9, 10, 9}},
      {16, 8, 1, {2, 2}, {3, 3}, {1, 1}, {3, 3}, {4, 4, 4, 4}},            // some positions see nothing
      {16, 24, 2, {8, 9}, {2, 3}, {1, 2}, {24, 2}, {12, 2, 12, 2}, true},  // none does
      {32, 48, 8, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {24, 24, 24, {9, 30}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {24, 24, 24, {9, 30}, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
      {24, 24, 24, {15, 33}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
      {18, 18, 18, {20, 19}, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, true},
      {18, 18, 18, {20, 19}, {5, 7}, {2, 2}, {1, 1}, {2, 3, 2, 3}, true},
      {18, 18, 18, {40, 21}, {9, 9}, {2, 2}, {1, 1}, {4, 4, 4, 4}},
      {18, 18, 18, {21, 40}, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}, true},
      {18, 18, 18, {21, 40}, {5, 5}, {1, 1}, {2, 3}, {4, 6, 4, 6}, true},
      {18, 18, 18, {21, 40}, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}},
      {18, 18, 18, {14, 40}, {3, 3}, {1, 1}, {3, 3}, {3, 3, 3, 3}},
      {18, 18, 18, {14, 40}, {3, 3}, {2, 2}, {3, 3}, {3, 3, 3, 3}, true},
      {18, 18, 18, {14, 15}, {3, 11}, {1, 1}, {1, 1}, {1, 5, 1, 5}},
      {18, 18, 18, {14, 15}, {3, 11}, {3, 3}, {1, 1}, {1, 5, 1, 5}},
      {18, 18, 18, {14, 35}, {6, 11}, {1, 1}, {1, 1}, {3, 5, 2, 5}},
      {18, 18, 18, {30, 33}, {3, 3}, {4, 4}, {1, 1}, {1, 1, 1, 1}},  // phases that no kernel point sees
      {18, 18, 18, {34, 29}, {3, 5}, {4, 6}, {2, 4}, {2, 8, 2, 8}, true},
      {18, 18, 18, {31, 64}, {4, 4}, {3, 4}, {1, 12}, {1, 18, 2, 18}},
      {18, 18, 18, {37, 42}, {9, 11}, {4, 3}, {1, 1}, {4, 5, 4, 5}, true},
      {18, 18, 18, {13, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true},  // short rows
      {3, 24, 1, {17, 19}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
      {24, 33, 1, {40, 41}, {3, 3}, {3, 3}, {1, 1}, {0, 0, 0, 0}},
      {40, 80, 2, {30, 41}, {2, 3}, {3, 2}, {1, 1}, {1, 0, 0, 2}, true},   // rows that no kernel sees
      {12, 100, 1, {50, 30}, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}, true},  // bands of output
      {20, 40, 1, {50, 60}, {1, 1}, {3, 4}, {1, 1}, {0, 0, 0, 0}},
      {24, 33, 1, {14, 30}, {5, 5}, {1, 2}, {6, 9}, {14, 9, 10, 9}, true},  // rows see one kernel row or three
      {8, 96, 8, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},             // channels that make twelve
      {96, 8, 4, {14, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true},
      {36, 24, 4, {13, 14}, {5, 5}, {3, 2}, {1, 1}, {2, 2, 2, 2}},
      {16, 24, 1, {13, 14}, {3, 3}, {2, 4}, {2, 2}, {2, 2, 2, 2}},
      {16, 24, 1, {23, 14}, {1, 1}, {3, 2}, {1, 1}, {0, 0, 0, 0}},
      {72, 10, 2, {9, 15}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {40, 3, 1, {11, 12}, {5, 3}, {1, 1}, {1, 1}, {2, 1, 2, 1}, true},
      {40, 3, 1, {11, 12}, {3, 3}, {1, 1}, {4, 2}, {1, 5, 2, 0}},
      {64, 64, 1, {50}, {5}, {1}, {1}, {2, 2}},
      {64, 36, 1, {51}, {3}, {2}, {3}, {3, 3}},
      {32, 40, 1, {6, 7, 8}, {3, 3, 3}, {1, 1, 1}, {1, 2, 4}, {1, 2, 4, 1, 2, 4}},
      {32, 40, 1, {5, 6, 7}, {2, 2, 2}, {2, 1, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}},
  };
  const CpuRung detected = cpu_rung();
  Names reached;
  for (const CpuRung rung : {CpuRung::Baseline, CpuRung::Avx2, CpuRung::Avx512, CpuRung::Amx}) {
    if (rung > detected) continue;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      CAPTURE(i);
      CAPTURE(to_string(rung));
      const Convolution conv(cases[i], rung);
      check_planar(conv, reached);
      check_blocked(conv, reached);
    }
  }
  const std::map<std::string_view, CpuRung> lowest = {{"depthwise.short", CpuRung::Avx512},
                                                      {"unit", CpuRung::Amx}};  // methods that lower rungs lack
  for (const ConvMethod& method : ConvMethods::all()) {
    const std::string_view name = method.name;
    if (name == "dft") continue;  // conv.test.cpp has the weights that it takes
    if (const auto from = lowest.find(name); from != lowest.end() && from->second > detected) continue;
    CHECK_MESSAGE(reached.contains(name), "no case has a shape for ", name);
  }
}

TEST_CASE("windows that would have their input laid out again for each row are left to others") {
  graph::Node node;
  node.op_type = "Conv";
  node.inputs = {0, 1};
  const auto has = [&](std::int64_t dilation) {
    node.attributes.set("dilations", std::vector<std::int64_t>{dilation, dilation});
    node.attributes.set("pads", std::vector<std::int64_t>{3 * dilation, dilation, 3 * dilation, dilation});
    const Node info(node, Shape{1, 288, 76, 56}, noise({16, 288, 7, 3}), CpuRung::Avx2);
    const std::vector<std::string> names = method_names(*conv_site(info), ConvLayout::Blocked);
    return std::find(names.begin(), names.end(), "blocked") != names.end();
  };
  CHECK(has(1));
  CHECK(!has(8));
}

TEST_CASE("a method that the convolution lacks is refused") {
  graph::Node node;
  node.op_type = "Conv";
  node.inputs = {0, 1};
  Node info(node, Shape{1, 16, 8, 8}, noise({16, 16, 3, 3}), CpuRung::Baseline);
  info.chosen = "blocked";  // of another layout
  CHECK_THROWS_WITH_AS(make_conv(info), "no method 'blocked' for this convolution", Error);
}

TEST_CASE("sizes that are symbols are no reason to choose nothing") {
  graph::Node node;
  node.op_type = "Conv";
  node.inputs = {0, 1};
  const auto symbols = graph::ValueType::tensor(
      DType::Float32, graph::SymShape{graph::Dim(1), graph::Dim(32), graph::Dim::unknown(), graph::Dim::unknown()});
  const std::optional<ConvSite> site =
      conv_site(node, symbols, Shape{16, 32, 3, 3}, CpuRung::Avx2, microkernels::Float32Precision::kHighest);
  REQUIRE(site);
  CHECK(!site->certain);
  CHECK(!conv_choices(*site, ConvLayout::Planar).empty());
  CHECK(!conv_choices(*site, ConvLayout::Blocked).empty());
  CHECK(method_names(*site, ConvLayout::Planar).empty());  // there is nothing to be measured
  // A window that is longer than a symbol's usual value fits nevertheless.
  CHECK(conv_site(node, symbols, Shape{16, 32, 500, 1}, CpuRung::Avx2, microkernels::Float32Precision::kHighest));
}

}  // namespace infernode::ops
