// Written by `npm run docs:options` from src/options/schema.json: do not edit.
// clang-format off
#pragma once

#include "session/option_types.h"

namespace infernode::session {

inline constexpr std::pair<std::string_view, passes::Level> kGraphOptimizationLevelNames[] = {
    {"disabled", passes::Level::Disabled},
    {"basic", passes::Level::Basic},
    {"extended", passes::Level::Extended},
    {"layout", passes::Level::Layout},
    {"all", passes::Level::All},
};

inline constexpr std::pair<std::string_view, bool> kExecutionModeNames[] = {
    {"sequential", false},
    {"parallel", true},
};

inline constexpr std::pair<std::string_view, microkernels::Float32Precision> kFloat32MatmulPrecisionNames[] = {
    {"highest", microkernels::Float32Precision::kHighest},
    {"high", microkernels::Float32Precision::kHigh},
    {"medium", microkernels::Float32Precision::kMedium},
};

enum class Tuning { kOff, kMeasure };

inline constexpr std::pair<std::string_view, Tuning> kTuningNames[] = {
    {"off", Tuning::kOff},
    {"measure", Tuning::kMeasure},
};

/// Settings of one session. TypeScript has checked types and ranges.
struct SessionOptions {
  /// executionProviders: The providers in order of preference: names, or objects whose `name` decides what options they
  /// have. What none of them takes runs on the CPU.
  std::vector<ProviderChoice> providers{};
  /// intraOpNumThreads: How many threads of the process's pool take part in one operator's loops. 0: all of them.
  std::size_t intra_op_threads = 0;
  /// interOpNumThreads: How many nodes run at once in parallel mode. 0: as many as there are threads.
  std::size_t inter_op_threads = 0;
  /// freeDimensionOverrides: Sizes of free dimensions, by their names.
  std::map<std::string, std::int64_t, std::less<>> free_dimensions{};
  /// graphOptimizationLevel: How far the graph is rewritten before it runs (docs/optimizer.md).
  passes::Level level = passes::Level::All;
  /// enableCpuMemArena: Whether the memory of intermediate values is kept for the next run.
  bool cpu_arena = true;
  /// enableMemPattern: Whether intermediate values share memory by their lifetimes, where shapes are known. Parallel
  /// mode does without.
  bool memory_pattern = true;
  /// executionMode: Whether nodes that do not need each other run at the same time.
  bool parallel = false;
  /// optimizedModelFilePath: A file that the optimized model is written to.
  std::string optimized_model_path{};
  /// enableProfiling: Whether a profile begins with the session. `startProfiling` begins one at any time.
  bool profiling = false;
  /// profileFilePrefix: How the trace's path begins; the time follows. Read where `enableProfiling` is set.
  std::string profile_prefix{};
  /// logId: What each message of the session is marked with.
  std::string log_id{};
  /// logSeverityLevel: The least severe message that is written: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal. By
  /// default what `env.logLevel` says.
  LogSeverity log_severity = LogSeverity::Warning;
  /// extra: Further entries, which onnxruntime calls config entries: nested objects whose leaves are strings, or their
  /// names joined by dots. Unknown ones are ignored.
  Config config{};
  /// externalData: The files that the model names, as paths or as `{ path, data }`: `path` as the model spells it,
  /// `data` bytes, a Blob (of `create` alone) or a path.
  std::map<std::string, tensor::Buffer, std::less<>> external_data{};
  /// providerFallback: Whether a provider that cannot start makes room for the next of `executionProviders`. Where it
  /// may not, `create` fails with PROVIDER_UNAVAILABLE.
  bool provider_fallback = true;
  /// float32MatmulPrecision: How exact float32 products are where faster hardware formats exist: as float32
  /// ('highest'), about 16 bits ('high', with AMX) or 8 ('medium', with AMX, AVX512_BF16 or bfloat16 of arm64).
  microkernels::Float32Precision float32_precision = microkernels::Float32Precision::kHighest;
  /// memoryLimit: Bytes that one run may hold; a run that needs more fails with OUT_OF_MEMORY before it asks the
  /// system. What long strings hold beside their tensor does not count. 0: no limit.
  std::size_t memory_limit = SIZE_MAX;
  /// maxConcurrentRuns: How many of the session's asynchronous runs execute at a time; others wait for their turn
  /// (docs/reliability.md). 0: as many as the process allows, `env.maxConcurrentRuns`.
  std::size_t concurrent_runs = SIZE_MAX;
  /// modelCacheDir: A folder in which packed weights are kept, made where it is missing: later loads of the model, in
  /// any process, map them instead of packing anew. Only folders that nobody else writes to should be given.
  std::string model_cache_dir{};
  /// tuning: How an operator's method is chosen where it has several: by a model of their costs, or by the time that
  /// each takes at load on the node's shapes ('measure'; nodes whose sizes are not known then follow the model).
  /// `modelCacheDir` keeps what was measured. Methods round differently, so two loads that measure may differ in last
  /// bits.
  Tuning tuning = Tuning::kOff;
  /// onLog: Hears the session's messages from `logSeverityLevel` on, in the place of stderr: `{ severity, category,
  /// message, logId }`, on the thread that made the session, soon after they were said. `env.onLog` by default. It is
  /// kept until the session is released or collected.
  LogSink log_sink{};
  /// onProgress: Hears how far the load is: `phase` is 'read' while bytes of a URL, Blob, Response or stream arrive,
  /// 'prepare' when the engine begins, 'optimize' when it has read the model, 'build' while kernels are made and
  /// weights packed, 'ready' when the session is made; `loaded` and `total` count bytes, and nodes in 'build'. What it
  /// throws ends no load: it is an uncaught exception of the program. Of `create` alone.
  ProgressSink progress{};
};

/// Calls visit(key, member, names of its values | the number that stands for none) for each simple option.
template <class Visit>
void each_option(SessionOptions& to, Visit&& visit) {
  visit("intraOpNumThreads", to.intra_op_threads);
  visit("interOpNumThreads", to.inter_op_threads);
  visit("graphOptimizationLevel", to.level, kGraphOptimizationLevelNames);
  visit("enableCpuMemArena", to.cpu_arena);
  visit("enableMemPattern", to.memory_pattern);
  visit("executionMode", to.parallel, kExecutionModeNames);
  visit("optimizedModelFilePath", to.optimized_model_path);
  visit("enableProfiling", to.profiling);
  visit("profileFilePrefix", to.profile_prefix);
  visit("logId", to.log_id);
  visit("logSeverityLevel", to.log_severity);
  visit("providerFallback", to.provider_fallback);
  visit("float32MatmulPrecision", to.float32_precision, kFloat32MatmulPrecisionNames);
  visit("memoryLimit", to.memory_limit, Absent{0});
  visit("maxConcurrentRuns", to.concurrent_runs, Absent{0});
  visit("modelCacheDir", to.model_cache_dir);
  visit("tuning", to.tuning, kTuningNames);
}

/// Settings of one run. TypeScript has checked types and ranges.
struct RunOptions {
  /// logSeverityLevel: As of the session, which decides by default.
  std::optional<LogSeverity> log_severity{};
  /// terminate: `true` ends the run before it begins, with ABORTED.
  bool terminate = false;
  /// tag: Taken, and used for nothing.
  std::string tag{};
  /// extra: Config entries of the run.
  Config config{};
  /// timeout: Milliseconds after which the run is aborted: it rejects with ABORTED by the name of TimeoutError. Also
  /// works for runSync. 0: no limit.
  std::optional<std::int64_t> timeout_ms{};
};

/// Calls visit(key, member, names of its values | the number that stands for none) for each simple option.
template <class Visit>
void each_option(RunOptions& to, Visit&& visit) {
  visit("logSeverityLevel", to.log_severity, Absent{-1});
  visit("terminate", to.terminate);
  visit("tag", to.tag);
  visit("timeout", to.timeout_ms, Absent{0});
}

}  // namespace infernode::session
