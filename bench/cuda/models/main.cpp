// A model on the GPU: how far it is from the same model on the CPU, and how long a run with inputs and outputs on the
// device takes.
//
// usage: bench_cuda_models <model.onnx> <reference.onnx> [runs] [name=size ...] [option:name=value ...]
//   The reference runs on the CPU with the same feeds; "-" leaves it out. Sizes are those of open dims, by symbol or by
//   "input:axis". Options are those of the provider; option:kernel_times=1 lists the launches of a run with their
//   times.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "bench/cuda/models/feeds.h"
#include "session/prepared_run.h"

using namespace infernode;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Arguments {
  std::string model, reference = "-";
  int runs = 1000;
  std::map<std::string, std::int64_t> sizes;
  provider::ProviderOptions options;
};

Arguments read(int argc, char** argv) {
  Arguments a;
  int place = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      if (place == 0) a.model = text;
      if (place == 1) a.reference = text;
      if (place == 2) a.runs = std::stoi(text);
      ++place;
    } else if (text.starts_with("option:")) {
      a.options[text.substr(7, equals - 7)] = text.substr(equals + 1);
    } else {
      a.sizes[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
    }
  }
  return a;
}

std::vector<tensor::Value> run_all(session::Session& session, const std::vector<tensor::Value>& feeds) {
  session::PreparedRun run = session.prepare(feeds);
  for (std::size_t o = 0; o < session.outputs().size(); ++o) run.want(o);
  return run.execute();
}

void report_placements(const session::Session& session) {
  std::map<std::string, int> on_cpu;
  std::size_t here = 0;
  for (const provider::Placement& placement : session.placements()) {
    if (placement.provider == "cuda")
      ++here;
    else
      ++on_cpu[placement.op_type];
  }
  std::printf("  %zu nodes on the GPU, on the CPU:", here);
  for (const auto& [op, count] : on_cpu) std::printf(" %s x%d", op.c_str(), count);
  std::printf("\n");
}

void check(session::Session& session, const std::shared_ptr<session::Engine>& engine, const Arguments& a,
           const std::vector<tensor::Value>& feeds) {
  if (a.reference == "-") return;
  const auto reference = session::Session::create(engine, {.path = a.reference}, {});
  std::vector<tensor::Value> same;
  for (std::size_t i = 0; i < feeds.size(); ++i)
    same.emplace_back(bench::convert(feeds[i].tensor(), reference->feeds()[i].type.elem));
  const auto expected = run_all(*reference, same);
  for (int pass = 0; pass < 3; ++pass) {  // as it comes, then captured, then replayed
    const auto results = run_all(session, feeds);
    for (std::size_t o = 0; o < results.size() && o < 3; ++o) {
      const auto [worst, norm] = bench::compare(results[o].tensor(), expected[o].tensor());
      std::printf("  run %d, %s %s: relative error %.2e, worst %.2e\n", pass, session.outputs()[o].name.c_str(),
                  results[o].tensor().to_string().c_str(), norm, worst);
    }
  }
}

/// Milliseconds of each call, least first, after some that warm up.
template <class F>
std::vector<double> times_of(int count, const F& call) {
  std::vector<double> times;
  for (int i = 0; i < 20 + count; ++i) {
    const auto begin = Clock::now();
    call();
    if (i >= 20) times.push_back(ms_since(begin));
  }
  std::sort(times.begin(), times.end());
  return times;
}

void report(const char* what, const std::vector<double>& times) {
  if (times.empty()) return;
  std::printf("  %s: p50 %.3f ms, p99 %.3f ms, least %.3f ms over %zu runs\n", what, times[times.size() / 2],
              times[times.size() * 99 / 100], times[0], times.size());
}

void time_bound(const std::shared_ptr<session::Session>& session, const Arguments& a,
                const std::vector<tensor::Value>& feeds) {
  const tensor::Device device = session->device("cuda");
  std::vector<tensor::Value> on_device;
  for (const tensor::Value& feed : feeds) {
    const tensor::Tensor& host = feed.tensor();
    const tensor::Tensor there = session->allocate(host.dtype(), host.shape(), device);
    session->copy(host, there);
    on_device.emplace_back(there);
  }
  session::PreparedRun bound = session->prepare(on_device);
  for (std::size_t o = 0; o < session->outputs().size(); ++o) bound.want(o, device);
  report("bound run", times_of(a.runs, [&] { bound.execute(); }));
  const auto outputs = bound.execute();
  const auto anew = [&] {
    session::PreparedRun run = session->prepare(on_device);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      run.want(o, device);
      run.write_into(o, outputs[o].tensor());
    }
    run.execute();
  };
  report("prepared anew, into the same outputs", times_of(a.runs, anew));
}

void time_host(session::Session& session, const Arguments& a, const std::vector<tensor::Value>& feeds) {
  std::vector<double> times;
  for (int i = 0; i < 5 + a.runs / 5; ++i) {
    const auto begin = Clock::now();
    run_all(session, feeds);
    if (i >= 5) times.push_back(ms_since(begin));
  }
  std::sort(times.begin(), times.end());
  if (!times.empty()) std::printf("  host to host: p50 %.3f ms\n", times[times.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = read(argc, argv);
  if (a.model.empty()) return 2;
  try {
    const auto engine = session::Engine::create(0);
    std::printf("%s\n", a.model.c_str());
    session::SessionOptions options;
    options.providers = {{"cuda", a.options}};
    if (a.options.contains("kernel_times")) options.log_severity = LogSeverity::Info;
    auto begin = Clock::now();
    const auto session = session::Session::create(engine, {.path = a.model}, options);
    std::printf("  loaded in %.0f ms\n", ms_since(begin));
    report_placements(*session);
    std::vector<tensor::Value> feeds;
    for (std::size_t i = 0; i < session->input_count(); ++i)
      feeds.emplace_back(bench::make_feed(session->feeds()[i], a.sizes, static_cast<std::uint32_t>(i + 1)));
    begin = Clock::now();
    run_all(*session, feeds);
    std::printf("  first run in %.0f ms\n", ms_since(begin));
    check(*session, engine, a, feeds);
    time_bound(session, a, feeds);
    time_host(*session, a, feeds);
  } catch (const Error& error) {
    std::printf("  FAILED: %s: %s\n", to_string(error.code()), error.message().c_str());
    return 1;
  }
  return 0;
}
