#include "microkernels/rnn/rnn.h"

#include "microkernels/common/simd_file.h"
#include "simd/math.h"

namespace infernode::microkernels {
namespace {

// Calls step(i, n) for each vector of a row: index and number of its elements.
template <typename Step>
INFERNODE_SIMD void for_vectors(std::size_t count, Step step) {
  for (std::size_t i = 0; i < count; i += kLanes) step(i, smaller(kLanes, count - i));
}

struct Clip {
  explicit Clip(float limit) : bound(limit > 0 ? limit : __builtin_inff()) {}
  VecF operator()(VecF x) const { return clamp(x, set(-bound), set(bound)); }
  float bound;
};

void lstm_cell(const LstmCellArgs& args, std::size_t hidden) noexcept {
  const Clip clip(args.clip);
  for_vectors(hidden, [&](std::size_t i, std::size_t n) {
    const auto gate = [&](std::size_t index) { return load_partial(args.gates + index * hidden + i, n); };
    const auto peep = [&](std::size_t index, VecF cell) {
      return args.peephole ? load_partial(args.peephole + index * hidden + i, n) * cell : zero();
    };
    const VecF before = load_partial(args.cell_in + i, n);
    const VecF input = sigmoid(clip(gate(0) + peep(0, before)));
    const VecF forget = args.input_forget ? set(1.0f) - input : sigmoid(clip(gate(2) + peep(2, before)));
    const VecF cell = fma(forget, before, input * tanh(clip(gate(3))));
    const VecF output = sigmoid(clip(gate(1) + peep(1, cell)));
    store_partial(args.cell_out + i, cell, n);
    store_partial(args.hidden_out + i, output * tanh(cell), n);
  });
}

void gru_gates(float* gates, std::size_t hidden, float limit) noexcept {
  const Clip clip(limit);
  for_vectors(2 * hidden, [&](std::size_t i, std::size_t n) {
    store_partial(gates + i, sigmoid(clip(load_partial(gates + i, n))), n);
  });
}

void gru_output(const float* update, const float* candidate, const float* hidden_in, float* hidden_out,
                std::size_t hidden, float limit) noexcept {
  const Clip clip(limit);
  for_vectors(hidden, [&](std::size_t i, std::size_t n) {
    const VecF z = load_partial(update + i, n), next = tanh(clip(load_partial(candidate + i, n)));
    store_partial(hidden_out + i, fma(z, load_partial(hidden_in + i, n), (set(1.0f) - z) * next), n);
  });
}

}  // namespace

INFERNODE_TABLE(RnnTable, rnn) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET), lstm_cell, gru_gates, gru_output};

}  // namespace infernode::microkernels
