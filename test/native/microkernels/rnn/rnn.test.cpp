#include "microkernels/rnn/rnn.h"

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("lstm_cell with and without peepholes, clipping and coupled gates") {
  for_each_target([](CpuRung rung) {
    for (const std::size_t hidden : {1u, 5u, 16u, 37u}) {
      for (int bits = 0; bits < 8; ++bits) {
        Guarded<float> gates(4 * hidden), peephole(3 * hidden), before(hidden), cell(hidden), out(hidden);
        Random random(hidden);
        random.fill(gates, -4, 4);
        random.fill(peephole);
        random.fill(before);
        LstmCellArgs args{gates.data(),   bits & 1 ? peephole.data() : nullptr,
                          before.data(),  cell.data(),
                          out.data(),     bits & 2 ? 1.5f : 0.0f,
                          (bits & 4) != 0};
        kernel_set(rung).rnn.lstm_cell(args, hidden);
        double worst = 0;
        for (std::size_t i = 0; i < hidden; ++i) {
          const auto gate = [&](std::size_t g, double extra) {
            const double x = gates[g * hidden + i] + extra;
            return bits & 2 ? std::clamp(x, -1.5, 1.5) : x;
          };
          const auto peep = [&](std::size_t p, double c) { return bits & 1 ? peephole[p * hidden + i] * c : 0.0; };
          const double in = sigmoid(gate(0, peep(0, before[i])));
          const double forget = bits & 4 ? 1 - in : sigmoid(gate(2, peep(2, before[i])));
          const double c = forget * before[i] + in * std::tanh(gate(3, 0));
          const double h = sigmoid(gate(1, peep(1, c))) * std::tanh(c);
          worst = std::max({worst, std::abs(cell[i] - c), std::abs(out[i] - h)});
        }
        CHECK(worst < 1e-6);
      }
    }
  });
}

TEST_CASE("gru gates and output") {
  for_each_target([](CpuRung rung) {
    for (const std::size_t hidden : {1u, 6u, 16u, 33u}) {
      for (const float clip : {0.0f, 0.7f}) {
        Guarded<float> gates(2 * hidden), candidate(hidden), state(hidden);
        Random random(hidden);
        random.fill(gates, -3, 3);
        random.fill(candidate, -3, 3);
        random.fill(state);
        const std::vector<float> raw(gates.begin(), gates.end()), before(state.begin(), state.end());
        kernel_set(rung).rnn.gru_gates(gates.data(), hidden, clip);
        kernel_set(rung).rnn.gru_output(gates.data(), candidate.data(), state.data(), state.data(), hidden, clip);
        const auto clipped = [&](double x) { return clip > 0 ? std::clamp<double>(x, -clip, clip) : x; };
        double worst = 0;
        for (std::size_t i = 0; i < hidden; ++i) {
          const double z = sigmoid(clipped(raw[i]));
          worst = std::max({worst, std::abs(gates[hidden + i] - sigmoid(clipped(raw[hidden + i]))),
                            std::abs(state[i] - ((1 - z) * std::tanh(clipped(candidate[i])) + z * before[i]))});
        }
        CHECK(worst < 1e-6);
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
