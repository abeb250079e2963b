#include "microkernels/rnn/rnn.h"
#include "bench.h"

namespace infernode::bench {

void bench_rnn(const Bench& bench) {
  constexpr std::size_t kHidden = 256;
  constexpr int kTimes = 64;  // what is short is repeated: the clock takes a part of a microsecond
  constexpr double kMade = static_cast<double>(kHidden) * kTimes;
  Buffer gates(4 * kHidden), cell(kHidden), hidden(kHidden);
  const microkernels::RnnTable& rnn = bench.kernels.rnn;
  bench.run("lstm_cell 256", kMade, "Gelem/s", [&] {
    const microkernels::LstmCellArgs args{
        .gates = gates.data(), .cell_in = cell.data(), .cell_out = cell.data(), .hidden_out = hidden.data()};
    for (int i = 0; i < kTimes; ++i) rnn.lstm_cell(args, kHidden);
  });
  bench.run("gru_gates 256", kMade, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i) rnn.gru_gates(gates.data(), kHidden, 0);
  });
  bench.run("gru_output 256", kMade, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i)
      rnn.gru_output(gates.data(), gates.data() + kHidden, hidden.data(), hidden.data(), kHidden, 0);
  });
}

}  // namespace infernode::bench
