#include "providers/cuda/kernels/device/unary.cuh"
#include "providers/cuda/kernels/device/warp_rows.cuh"
#include "providers/cuda/kernels/params/recurrent.h"

// Steps of recurrent layers.
namespace infernode::cuda {

/// One number of the state of one sequence.
template <class T>
struct Unit {
  const RecurrentParams& p;
  std::int64_t batch, unit, position;

  __device__ __forceinline__ const float* floats(std::uint64_t base) const {
    return reinterpret_cast<const float*>(base);
  }
  /// The product of a gate's weights and a vector of the sequence, in every lane.
  __device__ __forceinline__ float dot(int gate, std::uint64_t vectors) const {
    const T* const row = reinterpret_cast<const T*>(p.weights) + (gate * std::int64_t{p.hidden} + unit) * p.hidden;
    const float* const vector = floats(vectors) + batch * p.hidden;
    float sum = 0;
    for (int i = threadIdx.x % 32; i < p.hidden; i += 32) sum += to_float(row[i]) * vector[i];
    return warp_sum(sum);
  }
  __device__ __forceinline__ float bias(int gate, int gates, bool of_state) const {
    return p.bias == 0 ? 0.0f : floats(p.bias)[((of_state ? gates : 0) + gate) * std::int64_t{p.hidden} + unit];
  }
  /// What the input gives to a gate, with its bias.
  __device__ __forceinline__ float input(int gate, int gates) const {
    const std::int64_t row = p.batch_first ? batch * p.positions + position : position * p.batch + batch;
    return floats(p.inputs)[(row * gates + gate) * p.hidden + unit] + bias(gate, gates, false);
  }
  __device__ __forceinline__ float activate(int which, float x) const {
    const CellActivation& f = p.activation[which];
    if (p.clip > 0) x = fminf(fmaxf(x, -p.clip), p.clip);
    return unary<float>(f.op, x, f.a, f.b);
  }
  __device__ __forceinline__ float peephole(int which, float cell) const {
    return p.peepholes == 0 ? 0.0f : floats(p.peepholes)[which * std::int64_t{p.hidden} + unit] * cell;
  }
  __device__ __forceinline__ std::int64_t at() const { return batch * p.hidden + unit; }
  __device__ __forceinline__ float gate(int which, int gates) const {
    return input(which, gates) + dot(which, p.state) + bias(which, gates, true);
  }

  __device__ __forceinline__ float lstm() const {
    float* const cell = reinterpret_cast<float*>(p.cell) + at();
    const float old = *cell;
    const float i = activate(0, gate(0, 4) + peephole(0, old));
    const float f = p.couples ? 1.0f - i : activate(0, gate(2, 4) + peephole(2, old));
    const float now = f * old + i * activate(1, gate(3, 4));
    const float o = activate(0, gate(1, 4) + peephole(1, now));
    if (threadIdx.x % 32 == 0) *cell = now;
    return o * activate(2, now);
  }
  __device__ __forceinline__ float gru() const {
    const float old = floats(p.state)[at()];
    float z, candidate;
    if (p.reset_after) {
      z = activate(0, gate(0, 3));
      const float r = activate(0, gate(1, 3));
      candidate = input(2, 3) + r * (dot(2, p.state) + bias(2, 3, true));
    } else {
      z = floats(p.update)[at()];
      candidate = input(2, 3) + dot(2, p.reset) + bias(2, 3, true);
    }
    return (1.0f - z) * activate(1, candidate) + z * old;
  }
  /// The first phase: z, and the state as the candidate's product takes it.
  __device__ __forceinline__ void gru_gates() const {
    const float z = activate(0, gate(0, 3)), r = activate(0, gate(1, 3));
    if (threadIdx.x % 32 != 0) return;
    reinterpret_cast<float*>(p.update)[at()] = z;
    reinterpret_cast<float*>(p.reset)[at()] = r * floats(p.state)[at()];
  }
};

template <class T>
__device__ __forceinline__ void recurrent(const RecurrentParams& p) {
  const std::int64_t number = row_of_warp();
  bring_near(p);
  wait_and_let_next_start();
  if (number >= std::int64_t{p.batch} * p.hidden) return;
  const std::int64_t batch = number / p.hidden, unit = number % p.hidden;
  const int given = p.lengths == 0 ? p.positions : reinterpret_cast<const int*>(p.lengths)[batch];
  const int length = given < 0 ? 0 : given > p.positions ? p.positions : given;
  const bool runs = p.step < length;
  const std::int64_t position = p.reverse && runs ? length - 1 - p.step : p.step;
  const Unit<T> u{p, batch, unit, position};
  const bool two_phases = p.kind == Cell::gru && !p.reset_after;
  if (two_phases && p.phase == 0) {
    if (runs) u.gru_gates();
    return;
  }
  float now = reinterpret_cast<const float*>(p.state)[u.at()];
  if (runs) now = p.kind == Cell::lstm ? u.lstm() : p.kind == Cell::gru ? u.gru() : u.activate(0, u.gate(0, 1));
  if (threadIdx.x % 32 != 0) return;
  reinterpret_cast<float*>(p.next)[u.at()] = now;
  if (p.y != 0) {
    T* const y = reinterpret_cast<T*>(p.y) + position * p.y_position + batch * p.y_batch + unit;
    *y = from_float<T>(runs ? now : 0.0f);
  }
}

ROW_KERNEL(recurrent_f32, recurrent, float, RecurrentParams)
ROW_KERNEL(recurrent_f16, recurrent, __half, RecurrentParams)
ROW_KERNEL(recurrent_bf16, recurrent, __nv_bfloat16, RecurrentParams)

}  // namespace infernode::cuda
