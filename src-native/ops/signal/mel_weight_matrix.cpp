#include <cmath>
#include <vector>

#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/strided_copy.h"
#include "ops/signal/scalars.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::TypeTag;

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// Triangles of height 1, one per column, whose corners are equally spaced on the mel scale.
class MelWeightMatrix final : public Kernel {
 public:
  explicit MelWeightMatrix(KernelInfo& info) : dtype_(signal::output_datatype(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const std::int64_t bands = signal::scalar(ctx, 0, "num_mel_bins"), length = signal::scalar(ctx, 1, "dft_length"),
                       rate = signal::scalar(ctx, 2, "sample_rate");
    const auto edge = [&](std::size_t i, const char* what) {
      INFERNODE_CHECK(ctx.input(i).numel() == 1, ErrorCode::ShapeMismatch, what, " must be one number, got ",
                      ctx.input(i).shape().dims());
      return static_cast<double>(tensor::to_float_scalar(ctx.input(i)));
    };
    const double lower = edge(3, "lower_edge_hertz"), upper = edge(4, "upper_edge_hertz");
    INFERNODE_CHECK(bands >= 0 && length >= 0 && rate > 0, ErrorCode::InvalidArgument, "num_mel_bins ", bands,
                    ", dft_length ", length, " and sample_rate ", rate, " must be positive");
    INFERNODE_CHECK(lower >= 0 && upper >= lower && std::isfinite(upper), ErrorCode::InvalidArgument,
                    "the edges must be finite, not negative and in order, got ", lower, " and ", upper);
    const std::int64_t bins = length / 2 + 1;
    const tensor::Tensor out = ctx.output(0, dtype_, Shape{bins, bands});

    // Corner i of the triangles as a bin: triangle b rises from corner b to b + 1 and falls to b + 2.
    const double low_mel = to_mel(lower), step = (to_mel(upper) - low_mel) / static_cast<double>(bands + 2);
    const auto corner = [&](std::int64_t i) {
      const double hertz = to_hertz(static_cast<double>(i) * step + low_mel);
      const double bin = std::floor((static_cast<double>(length) + 1) * hertz / static_cast<double>(rate));
      INFERNODE_CHECK(bin <= static_cast<double>(bins), ErrorCode::InvalidArgument, "upper_edge_hertz ", upper,
                      " lies above what a sample rate of ", rate, " can hold");
      return static_cast<std::int64_t>(bin);
    };
    tensor::dispatch_numeric(dtype_, "MelWeightMatrix", [&]<class T>(TypeTag<T>) {
      T* y = out.mutable_data<T>();
      fill_bytes(ctx.run(), out);
      kernel::Watch watch(ctx.run());
      for (std::int64_t band = 0; band < bands; ++band) {
        const std::int64_t left = corner(band), peak = corner(band + 1), right = corner(band + 2);
        watch.did(100 + 5 * static_cast<double>(right - left));
        const auto set = [&](std::int64_t bin, double value) {
          if (bin < bins) y[bin * bands + band] = signal::convert<T>(value);
        };
        if (left == peak) set(peak, 1);
        for (std::int64_t bin = left; left < peak && bin <= peak; ++bin) {
          set(bin, static_cast<double>(bin - left) / static_cast<double>(peak - left));
        }
        for (std::int64_t bin = peak; bin < right; ++bin) {
          set(bin, static_cast<double>(right - bin) / static_cast<double>(right - peak));
        }
      }
    });
  }

 private:
  tensor::DType dtype_;
};

void infer_mel_weight_matrix(InferContext& ctx) {
  ctx.set_output_dtype(0, signal::output_datatype(ctx.attributes()));
  const auto size = [&](std::size_t i) {
    const auto contents = ctx.input_contents(i);
    const bool sound =
        contents && contents->size() == 1 && !(contents->front().known() && contents->front().value() < 0);
    return sound ? contents->front() : Dim::unknown();
  };
  ctx.set_output_shape(0, graph::SymShape{floor_div(size(1), 2) + 1, size(0)});
}

}  // namespace

void register_mel_weight_matrix(kernel::OpRegistrar& r) {
  r.op("MelWeightMatrix")
      .version(17,
               "num_mel_bins:T1, dft_length:T1, sample_rate:T1, lower_edge_hertz:T2, upper_edge_hertz:T2 -> output:T3; "
               "T1 = int32|int64, T2 = floats_bf16, T3 = numeric_bf16")
      .infer(infer_mel_weight_matrix)
      .kernel<MelWeightMatrix>();
}

}  // namespace infernode::ops
