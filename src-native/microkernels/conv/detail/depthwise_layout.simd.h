#pragma once

#include "microkernels/common/columns.simd.h"
#include "microkernels/common/phase_rows.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// How a plane of a depthwise convolution's input lies in the first-level cache.
namespace infernode::microkernels {
namespace {

// The zero-padded input lies flat, parted by row and column phase, with a pitch that outputs share; all outputs are
// then one run of consecutive floats, and vectors do not end with rows. The few outputs between rows are computed and
// dropped.
constexpr std::size_t kFlatFloats = 8192;  // input
constexpr std::size_t kFlatOutputs = 4096;
constexpr std::size_t kFlatTaps = 128;
constexpr std::size_t kFlatPhases = kFlatFloats / (4 * kLanes);

// The phases of one axis that the kernel's points see: point i sees phase i % count of them, the one of input places
// that leave of(i % count) when divided by the stride.
struct Phases {
  std::size_t stride, dilation, count;

  Phases(std::size_t kernel, std::size_t stride_of, std::size_t dilation_of) noexcept
      : stride(stride_of), dilation(dilation_of), count(1) {
    while (count < kernel && of(count) != 0) ++count;
  }
  std::size_t of(std::size_t i) const noexcept { return i * dilation % stride; }
};

struct FlatLayout {
  Phases phases_h, phases_w;
  std::size_t pitch, rows;   // of one phase
  std::size_t phase_floats;  // with room for what the last vectors read too much
  std::size_t outputs;       // flat outputs of a plane

  explicit FlatLayout(const ConvShape& s)
      : phases_h(s.kernel_h, s.stride_h, s.dilation_h),
        phases_w(s.kernel_w, s.stride_w, s.dilation_w),
        pitch(s.out_w + (s.kernel_w - 1) * s.dilation_w / s.stride_w),
        rows(s.out_h + (s.kernel_h - 1) * s.dilation_h / s.stride_h),
        phase_floats(rows * pitch + 4 * kLanes),
        outputs(s.out_h * pitch) {}
  std::size_t phases() const { return phases_h.count * phases_w.count; }
  // Of point (h, w) of the kernel, and of its outputs there.
  std::size_t phase(std::size_t h, std::size_t w) const {
    return h % phases_h.count * phases_w.count + w % phases_w.count;
  }
  bool fits(const ConvShape& s) const {
    return s.kernel_d == 1 && s.in_d == 1 && s.out_d == 1 && s.kernel_h * s.kernel_w <= kFlatTaps &&
           phase_floats * phases() <= kFlatFloats && outputs + 4 * kLanes <= kFlatOutputs;
  }
};

// Places [first, end) of one axis whose input, place * stride + phase - pad, exists.
struct PhasePlaces {
  std::size_t first, end;

  PhasePlaces(std::size_t places, std::size_t stride, std::size_t phase, std::ptrdiff_t pad,
              std::size_t size) noexcept {
    const auto start = static_cast<std::ptrdiff_t>(phase) - pad, step = static_cast<std::ptrdiff_t>(stride),
               most = static_cast<std::ptrdiff_t>(places), limit = static_cast<std::ptrdiff_t>(size);
    const std::ptrdiff_t from = start >= 0 ? 0 : smaller(most, (-start + step - 1) / step);
    const std::ptrdiff_t to = start >= limit ? from : larger(from, smaller(most, (limit - 1 - start) / step + 1));
    first = static_cast<std::size_t>(from);
    end = static_cast<std::size_t>(to);
  }
};

// The rows of a phase of them that have input, and columns of a phase of those, in floats.
struct PhaseCopy {
  std::size_t row, to;                // the first row; its first place
  std::size_t column, first, length;  // the first column that there is, its place, how many there are
  std::size_t rows;
};

PhaseCopy phase_copy(const ConvShape& s, const FlatLayout& layout, std::size_t point_h, std::size_t point_w) noexcept {
  const std::size_t phase_h = layout.phases_h.of(point_h), phase_w = layout.phases_w.of(point_w);
  const PhasePlaces h(layout.rows, s.stride_h, phase_h, s.pad_top, s.in_h);
  const PhasePlaces w(layout.pitch, s.stride_w, phase_w, s.pad_left, s.in_w);
  const auto input = [](std::size_t place, std::size_t stride, std::size_t phase, std::ptrdiff_t pad) {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(place * stride + phase) - pad);
  };
  const std::size_t rows = h.end - h.first, columns = w.end - w.first;
  return {rows > 0 ? input(h.first, s.stride_h, phase_h, s.pad_top) * s.in_w : 0,
          layout.phase(point_h, point_w) * layout.phase_floats + h.first * layout.pitch,
          columns > 0 ? input(w.first, s.stride_w, phase_w, s.pad_left) : 0,
          w.first,
          columns,
          rows};
}

// How planes of the input are laid out, all of them alike.
class PlaneCopy {
 public:
  PlaneCopy(const ConvShape& s, const FlatLayout& layout) noexcept
      : s_(s),
        layout_(layout),
        parted_(sees_phase_rows(s.kernel_w, s.stride_w, s.dilation_w)),
        count_(parted_ ? layout.phases_h.count : layout.phases()) {
    const std::size_t phases_w = parted_ ? 1 : layout.phases_w.count;
    for (std::size_t i = 0; i < count_; ++i) copies_[i] = phase_copy(s, layout, i / phases_w, i % phases_w);
  }

  // Writes what is no padding; what lies before `end` may be read.
  void run(const float* plane, const float* end, float* data) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (parted_) {
        const PhaseCopy& c = copies_[i];
        part_rows({plane + c.row, s_.in_w, s_.stride_h * s_.in_w, c.rows, s_.pad_left, data + c.to, layout_.pitch,
                   layout_.phase_floats},
                  s_.stride_w);
      } else if (copies_[i].length > 0) {
        copy_phase(copies_[i], plane, end, data);
      }
    }
  }

 private:
  void copy_phase(const PhaseCopy& c, const float* plane, const float* end, float* data) const noexcept {
    copy_part_rows({plane + c.row + c.column,
                    {0, 0, c.length},
                    s_.stride_h * s_.in_w,
                    c.rows,
                    c.length,
                    data + c.to + c.first,
                    layout_.pitch,
                    end},
                   s_.stride_w);
  }

  const ConvShape& s_;
  const FlatLayout& layout_;
  bool parted_;  // all phases of columns at once
  std::size_t count_;
  PhaseCopy copies_[kFlatPhases];
};

}  // namespace
}  // namespace infernode::microkernels
