#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/elementwise.h"

namespace infernode::cuda {

enum class Cell : std::uint32_t { rnn, gru, lstm };

struct CellActivation {
  UnaryOp op;
  float a, b;
};

/// One step of a recurrent layer in one direction. Gates in the order of the standard: LSTM i o f c, GRU z r h. A warp
/// for each number of the state; grid: x blocks of 4 warps.
struct RecurrentParams {
  std::uint64_t inputs;       ///< float32: what inputs give to the gates, [position or batch][batch or position][gates]
  std::uint64_t weights;      ///< [gates][hidden][hidden]
  std::uint64_t bias;         ///< float32: of inputs [gates][hidden], then of the state; 0: none
  std::uint64_t peepholes;    ///< float32: LSTM's i o f, [3][hidden]; 0: none
  std::uint64_t state, next;  ///< float32 [batch][hidden]
  std::uint64_t cell;         ///< LSTM's, float32 [batch][hidden]
  std::uint64_t lengths;      ///< int32 [batch]: positions; 0: all
  std::uint64_t y;            ///< the position's output; 0: nobody wants it
  std::uint64_t update, reset;       ///< GRU in two phases: float32 [batch][hidden], z and r * state
  std::int64_t y_position, y_batch;  ///< elements
  std::int32_t step, positions, batch, hidden;
  std::int32_t batch_first, reverse;
  Cell kind;
  std::int32_t phase;        ///< GRU that resets the state before it is multiplied: 0, then 1
  std::int32_t reset_after;  ///< GRU: the product with the state is reset
  std::int32_t couples;      ///< LSTM: f is 1 - i
  float clip;                ///< of what activations take; 0: none
  CellActivation activation[3];
};

}  // namespace infernode::cuda
