#pragma once

#include <cstddef>

// The elementwise part of recurrent cells for one batch row of `hidden` elements, with the default activations.
// Gates hold X*W + H*R + biases already.
namespace infernode::microkernels {

struct LstmCellArgs {
  const float* gates = nullptr;     // [4][hidden]: input, output, forget, cell (ONNX order)
  const float* peephole = nullptr;  // [3][hidden]: input, output, forget; or null
  const float* cell_in = nullptr;   // [hidden]
  float* cell_out = nullptr;        // [hidden]; may be cell_in
  float* hidden_out = nullptr;      // [hidden]
  float clip = 0.0f;                // > 0: gates are clamped to [-clip, clip] first
  bool input_forget = false;        // forget gate = 1 - input gate
};

struct RnnTable {
  const char* name;
  void (*lstm_cell)(const LstmCellArgs& args, std::size_t hidden) noexcept;
  // update = sigmoid(update_gate), reset = sigmoid(reset_gate); gates [2][hidden] in place: update, reset.
  void (*gru_gates)(float* gates, std::size_t hidden, float clip) noexcept;
  // hidden_out = (1 - update) * tanh(candidate) + update * hidden_in; hidden_out may be hidden_in.
  void (*gru_output)(const float* update, const float* candidate, const float* hidden_in, float* hidden_out,
                     std::size_t hidden, float clip) noexcept;
};

}  // namespace infernode::microkernels
