#pragma once

#include <napi.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "napi/wire.h"
#include "session/prepared_run.h"

namespace infernode::napi {

/// The memory that inputs of asynchronous runs are copied into, kept between runs while it fits.
class StagingMemory {
 public:
  tensor::Buffer take(std::size_t bytes, session::Session& session);
  void clear() { block_ = {}; }

 private:
  tensor::Buffer block_;
};

/// One run as JavaScript called for it: a prepared run, and where each of its outputs goes. Made, prepared and turned
/// into a result on the JavaScript thread; `execute` may run elsewhere in between.
class RunCall {
 public:
  /// Reads the wire form and checks it against the model (session/feed_check.h). Feeds in JavaScript's memory are
  /// borrowed: valid until JavaScript runs again.
  RunCall(napi_env env, std::shared_ptr<session::Session> session, WireReader reader, session::RunOptions options);
  /// What takes long to free is freed on another thread.
  ~RunCall();
  RunCall(const RunCall&) = delete;
  RunCall& operator=(const RunCall&) = delete;

  /// Microseconds that a run is expected to take; nullopt where shapes like these are new.
  std::optional<double> expected_us() { return run_.expected_us(); }
  /// What `detach` copies.
  std::size_t copied_bytes() const;
  /// Finds the shapes of the outputs, on any thread; takes long where the feeds' shapes are new.
  void forecast();
  /// Gives outputs whose shapes were forecast memory of JavaScript's to be written into, where a copy would cost more.
  void allocate_outputs();
  /// Makes the request independent of what JavaScript does next, for a run on another thread.
  void detach(StagingMemory& staging);
  /// Copies feeds that overlap memory that is written into, for a run on this thread.
  void part_overlaps();

  /// Begins what execute() then waits for, where that is a device's work (PreparedRun::begin). After detach().
  void begin() { run_.begin(); }
  void execute(const kernel::CancelToken* cancel);
  /// Executes for at most about `most`. False where that was not enough; then nothing has happened.
  bool execute_briefly(std::chrono::microseconds most);
  /// Gives large results that the engine still holds memory of JavaScript's; false where there are none, else
  /// move_results() is to follow, on any thread.
  bool allocate_results();
  void move_results();
  /// Bytes of the tensors that execute() made.
  std::size_t result_bytes() const;
  /// The result's wire form, as WireWriter::finish gives it. Throws Error(ShapeMismatch) where a target does not fit.
  napi_value result(napi_value place = nullptr);

 private:
  struct Output {
    std::size_t index = 0;  ///< of the model's outputs
    Placement placement = Placement::JavaScript;
    tensor::Tensor target;       ///< where placement is Target; the caller's memory is good until detach() only
    bool in_javascript = false;  ///< the target is a typed array of the caller
    int kept = -1;               ///< index in kept(): that typed array, or the ArrayBuffer made for the output
  };

  void read_output(WireReader& reader);
  /// The array of JavaScript values that the run holds on to, made by the first keep().
  Napi::Array kept() const;
  int keep(napi_value value);
  /// A tensor in a fresh ArrayBuffer that is kept for the output.
  tensor::Tensor allocate(Output& output, tensor::DType dtype, const tensor::Shape& shape);
  void put_result(WireWriter& writer, const Output& output, const tensor::Value& value, std::string_view name) const;
  void write_target(const Output& output, const tensor::Value& value, std::string_view name) const;
  tensor::Tensor target_of(const Output& output) const;

  napi_env env_;
  std::shared_ptr<session::Session> session_;
  session::PreparedRun run_;
  std::vector<Output> outputs_;  ///< as the run was asked for them
  std::vector<session::PreparedRun::ResultShape> forecasts_;
  std::vector<tensor::Value> results_;
  std::vector<tensor::Tensor> moved_;     ///< by output, where allocate_results() made memory for it
  napi_value kept_ = nullptr;             ///< until detach()
  Napi::ObjectReference kept_reference_;  ///< from then on
  int kept_count_ = 0;
  bool detached_ = false;
};

}  // namespace infernode::napi
