#pragma once

#include <random>
#include <string>

#include "bench/cuda/device.h"
#include "bench/cuda/reference.h"
#include "providers/cuda/kernels/epilogue.h"

namespace infernode::cuda::bench {

/// Random problems from one seed.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  /// In [low, high].
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[in(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  std::uint32_t seed() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

/// One of the choices, each kernel as likely as any other.
template <class C>
const C& any_choice(Random& r, const std::vector<C>& choices) {
  std::map<decltype(C::kernel), std::vector<const C*>> kernels;
  for (const C& c : choices) kernels[c.kernel].push_back(&c);
  const std::vector<const C*>& some = std::next(kernels.begin(), r.in(0, std::ssize(kernels) - 1))->second;
  return *some[static_cast<std::size_t>(r.in(0, std::ssize(some) - 1))];
}

/// Memory that is taken anew for every problem.
class Arena {
 public:
  Arena(Device& device, std::size_t bytes) : device_(device), base_(device.allocate(bytes)), size_(bytes) {}
  void reset() { used_ = 0; }
  DevicePtr take(std::size_t bytes);
  /// Random elements in [-scale, scale] + shift; `offset` elements past a multiple of 256 bytes.
  DevicePtr random(Random& random, Element type, std::int64_t count, float scale = 1, float shift = 0, int offset = 0);

 private:
  Device& device_;
  DevicePtr base_ = 0;
  std::size_t size_ = 0, used_ = 0;
};

/// An output under test: poisoned, with gaps between its rows.
struct Output {
  CompareParams compare{};
  std::size_t bytes = 0;
};

struct Difference {
  double error = 0;     ///< |out - ref| / |ref|
  double missing = 0;   ///< elements that are not finite
  double trampled = 0;  ///< elements between rows that were written
};

/// What of `rows` by `columns` elements in batches is written: rows `extra` elements apart.
Output make_output(Arena& arena, Element type, std::int64_t rows, std::int64_t columns, std::int64_t extra,
                   std::int64_t batch0, std::int64_t batch1, int offset);
void poison(Device& device, const Output& output);
Difference compare(Device& device, const Output& output);

/// A random epilogue over the output and the same for the reference.
void random_epilogue(Random& random, Arena& arena, const Output& output, std::int64_t column_batch, Epilogue& epilogue,
                     ReferenceEpilogue& reference);

/// The error that an output type and the arithmetic allow.
double allowed(Element operand, Element output, int precision);

/// Counts and reports checks of a family.
class Tally {
 public:
  explicit Tally(std::string family) : family_(std::move(family)) {}
  void add(const Difference& d, double limit, const std::string& group, const std::string& what);
  /// Prints the worst error of each group; whether all were right.
  bool report() const;

 private:
  std::string family_;
  int checks_ = 0, failures_ = 0;
  std::map<std::string, std::pair<int, double>> groups_;
};

bool check_gemm(Device& device, Arena& arena, int problems, std::uint32_t seed);
bool check_conv(Device& device, Arena& arena, int problems, std::uint32_t seed);
bool check_attention(Device& device, Arena& arena, int problems, std::uint32_t seed);
bool check_depthwise(Device& device, Arena& arena, int problems, std::uint32_t seed);
void time_depthwise(Device& device, Arena& arena);
void time_attention(Device& device, Arena& arena);
void time_products(Device& device, Arena& arena);

}  // namespace infernode::cuda::bench
