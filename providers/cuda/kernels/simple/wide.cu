#include "providers/cuda/kernels/device/elementwise.cuh"
#include "providers/cuda/kernels/device/wide.cuh"

// Operators on elements of types that are rare in models: one kernel for all of them.
namespace infernode::cuda {

extern "C" __global__ void __launch_bounds__(256) wide_unary(const __grid_constant__ WideParams p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x;
  const Place<1> place(p.at, thread);
  bring_near(p);
  wait_and_let_next_start();
  if (thread >= p.at.threads) return;
  const Any x = load_any(p.at.in[0], p.from[0], place.in[0]);
  store_any(p.at.out, p.to, place.out, wide_unary_of(static_cast<UnaryOp>(p.at.op), x, p.at.a, p.at.b));
}

extern "C" __global__ void __launch_bounds__(256) wide_binary(const __grid_constant__ WideParams p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x;
  const Place<2> place(p.at, thread);
  bring_near(p);
  wait_and_let_next_start();
  if (thread >= p.at.threads) return;
  const auto op = static_cast<BinaryOp>(p.at.op);
  const Any x = load_any(p.at.in[0], p.from[0], place.in[0]), y = load_any(p.at.in[1], p.from[1], place.in[1]);
  const bool compares = op >= BinaryOp::equal && op <= BinaryOp::greater_equal;
  const Any z = compares ? of(static_cast<long long>(wide_compares(op, x, y))) : wide_binary_of(op, x, y);
  store_any(p.at.out, p.to, place.out, z);
}

}  // namespace infernode::cuda
