#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "base/checked.h"
#include "ops/conv/dft.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/dft_exact_frames.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {

namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// What rows of weights are: cosines, sines (with the sign given), or both.
struct Basis {
  std::size_t length, bins;
  bool real, imag;
  double sign;
};

/// The window with which the rows are those of the basis; empty where there is none.
std::vector<double> find_window(const Basis& basis, const float* weight, const std::vector<double>& cosines) {
  const std::size_t length = basis.length;
  const auto wave = [&](bool sine, std::size_t k, std::size_t n) {
    const std::size_t turn = k * n % length;
    return sine ? basis.sign * cosines[(turn + length - length / 4) % length] : cosines[turn];
  };
  // Of each column, what all rows together say of the window.
  std::vector<double> window(length), weights(length);
  const auto each = [&](auto visit) {
    const float* row = weight;
    for (const bool sine : {false, true}) {
      if (sine ? !basis.imag : !basis.real) continue;
      for (std::size_t k = 0; k < basis.bins; ++k, row += length) {
        for (std::size_t n = 0; n < length; ++n) {
          if (!visit(n, static_cast<double>(row[n]), wave(sine, k, n))) return false;
        }
      }
    }
    return true;
  };
  each([&](std::size_t n, double w, double b) {
    window[n] += w * b;
    weights[n] += b * b;
    return true;
  });
  double most = 0;
  for (std::size_t n = 0; n < length; ++n) {
    window[n] = weights[n] > 1e-3 ? window[n] / weights[n] : 0;
    most = std::max(most, std::abs(window[n]));
  }
  if (!(most > 1e-12 && most < 1e12)) return {};
  const bool same = each([&](std::size_t n, double w, double b) {
    return std::abs(w - window[n] * b) <= 0x1p-22 * (std::abs(window[n]) + 0x1p-12 * most);
  });
  return same ? window : std::vector<double>();
}

struct Found {
  Basis basis;
  std::vector<double> window;
};

std::optional<Found> find(const tensor::Tensor& w) {
  if (w.dtype() != tensor::DType::Float32 || w.rank() < 3 || w.dim(1) != 1) return std::nullopt;
  const std::size_t length = size(w.dim(w.rank() - 1)), rows = size(w.dim(0));
  if (!microkernels::dft_has(length) || w.numel() != w.dim(0) * w.dim(w.rank() - 1) || rows < 8 || rows > length + 2)
    return std::nullopt;
  std::vector<double> cosines(length);
  for (std::size_t n = 0; n < length; ++n) {
    // By symmetry, so that zeros are exact.
    const std::size_t folded = std::min(n, length - n), near = std::min(folded, length / 2 - folded);
    const double value = 4 * near == length
                             ? 0
                             : std::cos(2 * std::numbers::pi * static_cast<double>(near) / static_cast<double>(length));
    cosines[n] = near == folded ? value : -value;
  }
  const std::size_t most = length / 2 + 1;
  for (const Basis& basis : {Basis{length, rows, true, false, 1}, Basis{length, rows, false, true, -1},
                             Basis{length, rows / 2, true, true, -1}, Basis{length, rows / 2, true, true, 1}}) {
    if (basis.bins > most || (basis.real && basis.imag && rows % 2 != 0)) continue;
    std::vector<double> window = find_window(basis, w.data<float>(), cosines);
    if (!window.empty()) return Found{basis, std::move(window)};
  }
  return std::nullopt;
}

}  // namespace

DftRows dft_rows(const tensor::Tensor& weight) {
  const std::optional<Found> found = find(weight);
  if (!found) return DftRows::None;
  return !found->basis.imag ? DftRows::Cosines : !found->basis.real ? DftRows::Sines : DftRows::Both;
}

namespace {

/// Frames that hold infinities, NaN or too few numbers that matter are summed one by one.
class ConvDft final : public ConvRunner {
 public:
  ConvDft(kernel::KernelInfo& info, const Found& found, std::unique_ptr<const DftExactFrames> exact,
          std::unique_ptr<ConvRunner> otherwise)
      : table_(info.kernels().dft),
        length_(found.basis.length),
        bins_(found.basis.bins),
        real_(found.basis.real),
        imag_(found.basis.imag),
        negative_(found.basis.sign > 0),
        numbers_(microkernels::dft_table_floats(length_)),
        exact_(std::move(exact)),
        otherwise_(std::move(otherwise)) {
    microkernels::dft_fill_table(length_, found.window.data(), numbers_.data());
  }

  bool reads_weight() const override { return otherwise_->reads_weight(); }
  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    if (!transform(ctx, p, o.x, o.y)) otherwise_->run(ctx, p, o, activation);
  }

 private:
  /// False where the signal's shape does not fit.
  bool transform(kernel::KernelContext& ctx, const ConvProblem& p, const float* x, float* y) const {
    const microkernels::ConvShape& s = p.shape;
    if (s.in_d != 1 || s.in_h != 1 || s.pad_front != 0 || s.pad_top != 0 || s.positions() != s.out_w) return false;
    const std::size_t images = size(p.images), frames = s.out_w;
    // Frames that begin or end outside read a copy of the signal with zeros around it.
    const std::size_t span = (frames - 1) * s.stride_w + length_;
    tensor::Buffer hold;
    std::size_t image_step = s.in_w;
    if (s.pad_left != 0 || span > s.in_w) {
      if (s.pad_left < 0) return false;
      hold = ctx.scratch(checked_mul(checked_mul(images, span), sizeof(float)));
      auto* padded = reinterpret_cast<float*>(hold.data());
      const std::size_t before = std::min(size(s.pad_left), span), inside = std::min(s.in_w, span - before);
      for (std::size_t i = 0; i < images; ++i) {
        float* at = padded + i * span;
        std::fill(at, at + before, 0.0f);
        std::memcpy(at + before, x + i * s.in_w, inside * sizeof(float));
        std::fill(at + before + inside, at + span, 0.0f);
      }
      x = padded;
      image_step = span;
    }
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads),
                      groups = ceil_div(frames, table_.lanes);
    const std::size_t stride =
        align_up(checked_mul(microkernels::dft_scratch_floats(table_, length_), sizeof(float)), 64);
    const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
    const std::size_t out_size = p.shape.out_channels * frames;
    constexpr double kNsPerFloat = 0.2;
    ctx.parallel_for(images * groups, kNsPerFloat * static_cast<double>(length_ * table_.lanes),
                     [&](std::size_t begin, std::size_t end, std::size_t slot) {
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t image = i / groups, first = i % groups * table_.lanes;
                         float* at = y + image * out_size;
                         const microkernels::DftArgs args{
                             .length = length_,
                             .bins = bins_,
                             .table = numbers_.data(),
                             .signal = x + image * image_step,
                             .step = s.stride_w,
                             .frames = frames,
                             .imag_sign = negative_ ? -1.0f : 1.0f,
                             .real = real_ ? at : nullptr,
                             .imag = imag_ ? at + (real_ ? bins_ * frames : 0) : nullptr,
                         };
                         if (!table_.transform(args, first, reinterpret_cast<float*>(scratch.data() + slot * stride)))
                           exact_->transform(args, first, std::min(table_.lanes, frames - first), *ctx.run().allocator);
                       }
                     });
    return true;
  }

  const microkernels::DftTable& table_;
  std::size_t length_, bins_;
  bool real_, imag_, negative_;
  std::vector<float> numbers_;
  std::unique_ptr<const DftExactFrames> exact_;
  std::unique_ptr<ConvRunner> otherwise_;
};

/// Where there is nothing to add or activate; of rows that are none but `DftRows`.
bool can_run(const ConvSite& site) {
  return site.weight != nullptr && site.groups == 1 && site.rung == site.cpu && !site.bias && !site.residual &&
         !site.activated && site.shape.dilation_w == 1 && site.shape.dilation_h == 1 && site.shape.in_channels == 1;
}
bool fits_weight(const ConvSite& site) { return find(*site.weight).has_value(); }

/// Calls, steps of the transforms, outputs.
cost::Terms terms(const ConvSite& site) {
  const double frames = number(site.shape.positions()), length = number(site.shape.kernel_points());
  return {1, frames * length * std::log2(length), output_floats(site.shape)};
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  for (const ConvChoice& choice : conv_choices(site, ConvLayout::Planar)) {
    if (choice.method->make == make) continue;
    const std::optional<Found> found = find(*site.weight);
    ConvSite with = site;
    with.rung = choice.rung;
    // Its weight is read first: the other method gives it up.
    const std::span<const float> weight(site.weight->data<float>(), size(site.weight->numel()));
    auto exact = std::make_unique<const DftExactFrames>(found->window, weight);
    return std::make_unique<ConvDft>(info, *found, std::move(exact), choice.method->make(info, with));
  }
  fail(ErrorCode::Internal, "a convolution has no other method than a Fourier transform");
}

}  // namespace

void register_conv_dft(ConvMethods& methods) {
  methods.add({"dft",
               "a fast transform, where weights are the rows of a windowed Fourier transform; frames with infinities, "
               "with NaN or with too few inputs that matter are taken one by one, in double",
               10, can_run, terms, make, nullptr, fits_weight});
}

}  // namespace infernode::ops
