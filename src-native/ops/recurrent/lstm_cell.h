#pragma once
// One step of an LSTM for one batch row, once its gates are summed.

#include <type_traits>

#include "microkernels/rnn/rnn.h"
#include "ops/recurrent/recurrent.h"

namespace infernode::ops {

struct LstmCell {
  const microkernels::RnnTable& table;
  const RecurrentAttributes& attributes;
  bool input_forget;

  /// `gates` [4, n]: input, output, forget, cell; `peep` [3, n] or null. Updates the states c and h.
  template <class T>
  void operator()(const T* gates, const T* peep, T* c, T* h, std::size_t n, const CellFunction* f) const {
    if constexpr (std::is_same_v<T, float>) {
      if (attributes.standard) {
        return table.lstm_cell({.gates = gates,
                                .peephole = peep,
                                .cell_in = c,
                                .cell_out = c,
                                .hidden_out = h,
                                .clip = attributes.clip,
                                .input_forget = input_forget},
                               n);
      }
    }
    const auto gate = [&](std::size_t g, std::size_t i, T state, std::size_t p) {
      return f[0](attributes.clipped(gates[g * n + i] + (peep == nullptr ? 0 : peep[p * n + i] * state)));
    };
    for (std::size_t i = 0; i < n; ++i) {
      const T input = gate(0, i, c[i], 0);
      const T forget = input_forget ? 1 - input : gate(2, i, c[i], 2);
      c[i] = forget * c[i] + input * f[1](attributes.clipped(gates[3 * n + i]));
      h[i] = gate(1, i, c[i], 1) * f[2](c[i]);
    }
  }
};

}  // namespace infernode::ops
