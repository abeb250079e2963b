#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "graph/graph.h"
#include "kernel/run_context.h"
#include "provider/partitioner.h"
#include "session/engine.h"
#include "session/session_options.h"
#include "tensor/value.h"

namespace infernode::runtime {
class ExecutionPlan;
}

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

/// A file's end as summarised for the caller of end_profiling.
struct ProfileSummary {
  std::string path;  ///< of the trace file; "" where it could not be written or profiling was off
  std::string json;  ///< the trace itself (a JSON array)
};

class PreparedRun;

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

  /// The first step of every run: checks the feeds (feed_check.h) and finds what earlier runs of these shapes tell. By
  /// index into feeds(), an empty Value where not fed. Cheap. Throws Error that names the input; Disposed after
  /// release().
  PreparedRun prepare(std::vector<tensor::Value> feeds, RunOptions options = {});

  /// Whether the model has a Loop: the only operator that may go on for ever.
  bool may_never_end() const;

  /// Memory on a device of this session's providers, for bound inputs and outputs.
  tensor::Tensor allocate(tensor::DType dtype, const tensor::Shape& shape, tensor::Device device);
  /// Host memory for copies of feeds, from which the session's devices read fast.
  tensor::Buffer allocate_staging(std::size_t bytes);
  /// Copies between host and device memory, same dtype and byte count; returns when done.
  void copy(const tensor::Tensor& from, const tensor::Tensor& to);
  /// A device by name, "cpu" or one of this session's providers ("null", "cuda:1"). Throws InvalidArgument listing
  /// those there are.
  tensor::Device device(std::string_view name) const;

  void start_profiling();
  ProfileSummary end_profiling();
  /// Counts one more user, who is to call release(). False where the session is released already.
  bool add_user();
  /// One user's end of it; at the last one's: refuses later runs, waits for those that have begun, then frees
  /// everything. False where that was done before.
  bool release();
  /// One user's end who does not wait: after the last one's all is freed when the runs that have begun are over.
  void leave() noexcept;
  bool released() const;
  /// Host bytes held: weights and pooled frames.
  std::size_t memory_bytes() const;

  /// What the host memory is for, in bytes.
  struct Memory {
    std::size_t weights = 0;  ///< packed or not, and other constants
    std::size_t kept = 0;     ///< what runs have left for the next
    std::size_t arena = 0;    ///< what the intermediate values of the last shapes need together; 0 before a run
  };
  /// Shows the plan, which release() waits for, and its memory. Throws Disposed after release.
  void inspect(FunctionRef<void(const runtime::ExecutionPlan&, const Memory&)> look);

 private:
  friend class PreparedRun;
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace infernode::session
