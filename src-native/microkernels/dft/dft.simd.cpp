#include "microkernels/dft/dft.h"

#include "microkernels/common/simd_file.h"

// Stockham's algorithm over length / 2 complex elements, of which the real parts are the even elements of a frame and
// the imaginary ones the odd; then the spectra of both are parted.
namespace infernode::microkernels {
namespace {

struct Complex {
  VecF re, im;
};
INFERNODE_SIMD Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
INFERNODE_SIMD Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
INFERNODE_SIMD Complex times(Complex a, const float* factor) {
  const VecF c = set(factor[0]), s = set(factor[1]);
  return {fnma(a.im, s, a.re * c), fma(a.re, s, a.im * c)};
}
// Element k of `size` complex vectors: real and imaginary part beside each other.
INFERNODE_SIMD Complex get(const float* at, std::size_t k) {
  return {load(at + 2 * k * kLanes), load(at + (2 * k + 1) * kLanes)};
}
INFERNODE_SIMD void put(float* at, std::size_t k, Complex a) {
  store(at + 2 * k * kLanes, a.re);
  store(at + (2 * k + 1) * kLanes, a.im);
}

// out[n][lane] = element n of frame first + lane; zeros where there is no such frame.
void gather(const DftArgs& args, std::size_t first, std::size_t count, float* out) noexcept {
  if (count < kLanes) {
    for (std::size_t n = 0; n < args.length; ++n) store(out + n * kLanes, zero());
  }
  std::size_t lane = 0;
  for (; lane + 4 <= count; lane += 4) {
    const float* from = args.signal + (first + lane) * args.step;
    for (std::size_t n = 0; n < args.length; n += 4) transpose4(from + n, args.step, out + n * kLanes + lane, kLanes);
  }
  for (; lane < count; ++lane) {
    const float* from = args.signal + (first + lane) * args.step;
    for (std::size_t n = 0; n < args.length; ++n) out[n * kLanes + lane] = from[n];
  }
}

// Multiplies by the window. Whether in each frame enough elements matter, counted by (sum |x|)^2 / sum x^2, or none.
bool weigh(std::size_t length, const float* window, float* data) noexcept {
  VecF sums[2] = {zero(), zero()}, squares[2] = {zero(), zero()};
  for (std::size_t n = 0; n < length; n += 2, data += 2 * kLanes) {
    INFERNODE_UNROLL for (std::size_t i = 0; i < 2; ++i) {
      const VecF x = load(data + i * kLanes) * set(window[n + i]);
      store(data + i * kLanes, x);
      sums[i] = sums[i] + abs(x);
      squares[i] = fma(x, x, squares[i]);
    }
  }
  const VecF sum = sums[0] + sums[1], square = squares[0] + squares[1];
  const VecF least = set(16.0f), tiny = set(1e-30f), huge = set(1e15f);
  const Mask many = (sum * sum >= least * square) & (square > tiny) & (sum < huge);
  return all(many | (sum == zero()));
}

void pass4(std::size_t groups, std::size_t stride, const float* factors, const float* in, float* out) noexcept {
  for (std::size_t p = 0; p < groups; ++p, factors += 6) {
    for (std::size_t q = 0; q < stride; ++q) {
      const std::size_t from = p * stride + q, to = 4 * p * stride + q, far = groups * stride;
      const Complex a = get(in, from), b = get(in, from + far), c = get(in, from + 2 * far),
                    d = get(in, from + 3 * far);
      const Complex s = a + c, t = b + d, u = a - c, v = b - d;
      put(out, to, s + t);
      put(out, to + stride, times({u.re + v.im, u.im - v.re}, factors));
      put(out, to + 2 * stride, times(s - t, factors + 2));
      put(out, to + 3 * stride, times({u.re - v.im, u.im + v.re}, factors + 4));
    }
  }
}

void pass2(std::size_t groups, std::size_t stride, const float* factors, const float* in, float* out) noexcept {
  for (std::size_t p = 0; p < groups; ++p, factors += 2) {
    for (std::size_t q = 0; q < stride; ++q) {
      const Complex a = get(in, p * stride + q), b = get(in, (p + groups) * stride + q);
      put(out, 2 * p * stride + q, a + b);
      put(out, (2 * p + 1) * stride + q, times(a - b, factors));
    }
  }
}

// Bins k and length / 2 - k from elements k and length / 2 - k, which hold halves.
void part(const DftArgs& args, const float* factors, const float* in, std::size_t first, std::size_t count) noexcept {
  const std::size_t half = args.length / 2;
  const VecF sign = set(args.imag_sign);
  const auto write = [&](std::size_t bin, Complex x) {
    if (bin >= args.bins) return;
    if (args.real) store_partial(args.real + bin * args.frames + first, x.re, count);
    if (args.imag) store_partial(args.imag + bin * args.frames + first, x.im * sign, count);
  };
  for (std::size_t k = 0; k <= half / 2; ++k, factors += 2) {
    const Complex a = get(in, k), b = get(in, k == 0 ? 0 : half - k);
    const Complex even = {a.re + b.re, a.im - b.im};
    const Complex odd = times({a.im + b.im, b.re - a.re}, factors);
    write(k, even + odd);
    if (2 * k != half) write(half - k, {even.re - odd.re, odd.im - even.im});
  }
}

bool transform(const DftArgs& args, std::size_t first, float* scratch) noexcept {
  const std::size_t count = smaller(kLanes, args.frames - first);
  float *in = scratch, *out = scratch + args.length * kLanes;
  gather(args, first, count, in);
  if (!weigh(args.length, args.table, in)) return false;
  const float* factors = args.table + args.length;
  std::size_t stride = 1;
  for (std::size_t size = args.length / 2; size > 1;) {
    const std::size_t radix = size % 4 == 0 ? 4 : 2, groups = size / radix;
    (radix == 4 ? pass4 : pass2)(groups, stride, factors, in, out);
    factors += groups * (radix - 1) * 2;
    float* const swapped = in;
    in = out;
    out = swapped;
    stride *= radix;
    size = groups;
  }
  part(args, factors, in, first, count);
  return true;
}

}  // namespace

INFERNODE_TABLE(DftTable, dft) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET), kLanes, transform};

}  // namespace infernode::microkernels
