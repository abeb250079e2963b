#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernel/run_context.h"
#include "provider/partitioner.h"
#include "session/engine.h"
#include "session/session_options.h"
#include "tensor/value.h"

namespace infernode::session {

/// Where a model comes from: a path (mapped), or bytes kept alive by their buffer's owner.
struct ModelSource {
  std::string path{};  ///< "" when bytes are given
  tensor::Buffer bytes{};
};

/// One graph input or output as declared (after freeDimensionOverrides).
struct ValueMetadata {
  std::string name;
  graph::ValueType type;
  bool overridable = false;  ///< an initializer that may be fed (not listed in inputNames)
};

/// Everything one run needs from outside. Values stay owned by the caller until run() returns.
struct RunRequest {
  /// By index into Session::feeds(): graph inputs first, then overridable initializers; an empty Value where not fed.
  std::span<const tensor::Value> feeds{};
  /// Indices into Session::outputs() that are wanted, in any order.
  std::span<const std::size_t> wanted{};
  /// Parallel to `wanted`, may be shorter: memory to write into where dtype and shape turn out to match; an empty Value
  /// otherwise. The returned value then is this tensor (same buffer); where they do not match the value has memory of
  /// its own.
  std::span<const tensor::Value> preallocated{};
  /// Parallel to `wanted`, may be empty: where the output shall stay. Host by default.
  std::span<const tensor::Device> devices{};
  const kernel::CancelToken* cancel = nullptr;
  /// For a caller that must not wait, without `cancel`: where the model has control flow, the run throws
  /// runtime::NotBrief when it has taken as long, or is about to enter what may. Nothing was written then, nor put into
  /// a trace.
  std::optional<std::chrono::microseconds> brief{};
  RunOptions options{};
};

/// A file's end as summarised for the caller of end_profiling.
struct ProfileSummary {
  std::string path;  ///< of the trace file; "" where it could not be written or profiling was off
  std::string json;  ///< the trace itself (a JSON array)
};

/// One loaded model: plan and providers. All members are thread-safe; runs are concurrent.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// Loads, optimizes, plans. Long work: call it off the main thread. `cancel` may end it early.
  static std::shared_ptr<Session> create(std::shared_ptr<Engine> engine, ModelSource source, SessionOptions options,
                                         const kernel::CancelToken* cancel = nullptr);
  ~Session();

  const std::vector<ValueMetadata>& feeds() const;  ///< inputs, then overridable initializers
  std::size_t input_count() const;                  ///< of feeds() that are inputs proper
  const std::vector<ValueMetadata>& outputs() const;
  const graph::ModelInfo& info() const;
  const std::vector<provider::Placement>& placements() const;
  const SessionOptions& options() const;
  Engine& engine() const;

  /// Throws where feeds do not fit the metadata (names the input; dtype, rank, dims with the leniencies of the design).
  /// Cheap: less than a microsecond.
  void check(std::span<const tensor::Value> feeds) const;
  /// Checks feeds, then runs. Throws Error. Fails with Disposed after release().
  std::vector<tensor::Value> run(const RunRequest& request);
  /// Types and shapes of the wanted outputs for these feeds, where they follow from the feeds' shapes: dtype Undefined
  /// where not known beforehand. Cheap for a signature of shapes seen before. Does not check feeds; never throws for
  /// shapes that would fail in run().
  struct OutputForecast {
    tensor::DType dtype = tensor::DType::Undefined;
    tensor::Shape shape;
  };
  std::vector<OutputForecast> forecast(std::span<const tensor::Value> feeds, std::span<const std::size_t> wanted);
  /// Expected duration in microseconds of a run with these feeds' shapes and for these outputs, from earlier runs;
  /// nullopt where there was none yet, or so long ago that its plan was dropped, and infinity where earlier runs tell
  /// nothing: the data decides, or runs that were to be brief were not. Always cheap; does not check feeds.
  std::optional<double> expected_run_us(std::span<const tensor::Value> feeds, std::span<const std::size_t> wanted);

  /// Whether the model has a Loop: the only operator that may go on for ever.
  bool may_never_end() const;

  /// Memory on a device of this session's providers, for bound inputs and outputs.
  tensor::Tensor allocate(tensor::DType dtype, const tensor::Shape& shape, tensor::Device device);
  /// Copies between host and device memory, same dtype and byte count; returns when done.
  void copy(const tensor::Tensor& from, const tensor::Tensor& to);
  /// A device by name, "cpu" or one of this session's providers ("null", "cuda:1"). Throws InvalidArgument listing
  /// those there are.
  tensor::Device device(std::string_view name) const;

  void start_profiling();
  ProfileSummary end_profiling();
  /// Refuses later runs, waits for those that have begun, then frees everything. Safe to call twice (false the second
  /// time).
  bool release();
  bool released() const;
  /// Host bytes held: weights and pooled frames.
  std::size_t memory_bytes() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace infernode::session
