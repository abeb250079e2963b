#pragma once
// The ways to compute a convolution: methods. Whoever needs to know asks each the same two questions:
// can it run there, and how long would it take. The kernels take the quickest, the layout pass
// compares those of both layouts.

#include <memory>
#include <optional>
#include <vector>

#include "cost/model.h"
#include "kernel/kernel.h"
#include "microkernels/blocked/blocked.h"
#include "ops/conv/window.h"

namespace infernode::ops {

/// What is known of a convolution before it runs: enough to say which methods can run it, and how long they take.
struct ConvSite {
  microkernels::ConvShape shape;  ///< of one group of one image; lengths that are symbols have a usual value
  std::size_t groups = 1;
  std::size_t axes = 2;                    ///< spatial ones of the input, thin ones included
  bool certain = false;                    ///< every length is a number, so that each run is of this shape
  bool line = false;                       ///< for certain, positions lie along one axis
  const tensor::Tensor* weight = nullptr;  ///< of float32, where constant
  bool bias = false, residual = false, activated = false;
  bool planes = false;  ///< of a method over blocks: its input is not in blocks
  bool exact = false;   ///< of a method over blocks: in float32 whatever precision is asked for
  CpuRung cpu{};        ///< whose rates count
  CpuRung rung{};       ///< whose loops the method runs: that of the CPU or a lower one
  microkernels::Float32Precision precision = microkernels::Float32Precision::kHighest;

  bool depthwise() const { return shape.in_channels == 1 && groups > 1; }
  /// The loops that the method runs.
  const microkernels::KernelSet& kernels() const { return microkernels::kernel_set(rung, loop_precision()); }
  microkernels::Float32Precision loop_precision() const {
    return exact ? microkernels::Float32Precision::kHighest : precision;
  }
};

/// A convolution of one node, by one method: weights packed when it is made, stateless when it runs.
class ConvRunner {
 public:
  virtual ~ConvRunner() = default;
  /// Whether it reads ConvOperands::w at run.
  virtual bool reads_weight() const { return false; }
  virtual void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
                   const microkernels::ActivationArgs& activation) const = 0;
};

/// The same between tensors whose channels lie in blocks.
class BlockedRunner {
 public:
  virtual ~BlockedRunner() = default;
  /// Whether blocks may be of bfloat16 numbers; and some of them, others of float32.
  virtual bool takes_bf16() const = 0;
  virtual bool takes_both_types() const { return true; }
  /// `args` holds all but weights and what an image reads and writes; `w` is the node's weight, read where it was not
  /// constant; `residual` may be null.
  virtual void run(kernel::KernelContext& ctx, const ConvProblem& problem, microkernels::BlockedConvArgs args,
                   const tensor::Tensor& x, const tensor::Tensor& w, const tensor::Tensor* residual,
                   const tensor::Tensor& out) const = 0;
};

struct ConvMethod {
  const char* name;  ///< of its rates in cost/tables
  const char* text;  ///< what it does, for docs/kernels.md
  int place;         ///< of two that are expected to take as long the one of the lower place is taken
  bool (*can_run)(const ConvSite& site);
  /// What it does of an image, counted; null: `nanoseconds` says what that takes.
  cost::Terms (*terms)(const ConvSite& site);
  std::unique_ptr<ConvRunner> (*make)(kernel::KernelInfo& info, const ConvSite& site);  ///< null: works on blocks
  std::unique_ptr<BlockedRunner> (*make_blocked)(kernel::KernelInfo& info, const ConvSite& site) = nullptr;
  /// Where it can run, whether the constant weight's numbers are fit for it; reads them. Null: any are.
  bool (*fits_weight)(const ConvSite& site) = nullptr;
  /// The expected time of a method that has other methods do its work.
  double (*nanoseconds)(const ConvSite& site) = nullptr;
  /// Made by the matrix unit where the loops are those of CpuRung::Amx.
  bool unit = false;

  bool uses_unit(CpuRung rung) const noexcept { return unit && rung == CpuRung::Amx; }
  /// What an expected time is multiplied by to compete with others.
  double margin(CpuRung rung) const noexcept { return uses_unit(rung) ? cost::kUnitConvMargin : 1; }
};

/// All methods. Each file adds its own by a function `void register_conv_<file>(ConvMethods& methods)`, which CMake
/// finds. Methods that recognise weights or read fewer of them have lower places than those that follow the definition.
class ConvMethods {
 public:
  void add(const ConvMethod& method) { all_.push_back(method); }
  /// One of the matrix unit, where there is one.
  void add_unit(ConvMethod method) {
    method.unit = true;
    all_.push_back(method);
  }
  /// In the order of their places.
  static const std::vector<ConvMethod>& all();

 private:
  std::vector<ConvMethod> all_;
};

/// A method with the loops of a rung.
struct ConvChoice {
  const ConvMethod* method;
  CpuRung rung;
  double nanoseconds;  ///< expected, times the method's margin
};
enum class ConvLayout : std::uint8_t { Planar, Blocked };
/// Those that can run, the quickest first. A CPU with a matrix unit also has the loops of AVX-512.
std::vector<ConvChoice> conv_choices(const ConvSite& site, ConvLayout layout);

/// The first of them; reads weights only where that decides.
std::optional<ConvChoice> quickest_conv(const ConvSite& site, ConvLayout layout);

/// Of a node's attributes and types; nullopt where they do not say enough or do not fit each other.
std::optional<ConvSite> conv_site(const graph::Node& node, const graph::ValueType& input,
                                  const tensor::Shape& weight_shape, CpuRung rung,
                                  microkernels::Float32Precision precision);
/// A dim's value, of one of `axes` spatial axes, or what it is taken to be where it is a symbol, at least 1.
std::int64_t usual_length(const graph::Dim& dim, std::size_t axes);
/// Of the node that the kernel is built for: nullopt also where the weight's shape is not known.
std::optional<ConvSite> conv_site(const kernel::KernelInfo& info);

/// Of a conversion of an image to or from blocks: calls, elements, those beyond what a cache holds of both.
cost::Terms block_conversion_terms(double blocked_elements);
/// Nanoseconds that it takes.
double block_conversion_time(CpuRung rung, microkernels::Float32Precision precision, double blocked_elements);

/// A MaxPool of an image, whose loops take a plane at a time, or a block of them.
struct PoolSite {
  double channels, positions, window;  ///< positions of the output; elements under a window
};
/// Of it: calls of the loops, elements written, elements that windows see.
cost::Terms pool_terms(const PoolSite& site, ConvLayout layout);
inline constexpr const char* pool_name(ConvLayout layout) {
  return layout == ConvLayout::Planar ? "pool" : "pool.blocked";
}
/// Nanoseconds that it takes.
double pool_time(CpuRung rung, microkernels::Float32Precision precision, const PoolSite& site, ConvLayout layout);

/// By the node's method or, where none is given, the quickest; where little is known of the node, one for any.
std::unique_ptr<ConvRunner> make_conv(kernel::KernelInfo& info);
/// The same over blocks; null where no method can run there.
std::unique_ptr<BlockedRunner> make_blocked_conv(kernel::KernelInfo& info, ConvSite site);
/// The names of conv_choices(), for kernel::KernelDef::methods; none where lengths are symbols, since what is quickest
/// at one length says little of others.
std::vector<std::string> method_names(const ConvSite& site, ConvLayout layout);

}  // namespace infernode::ops
