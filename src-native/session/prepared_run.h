#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernel/run_context.h"
#include "session/session.h"

namespace infernode::runtime {
struct Demand;
struct ShapePlan;
}  // namespace infernode::runtime

namespace infernode::session {

/// One run of a session: its feeds, which have been checked, the outputs that it shall give, and what is known of it
/// beforehand. Made by Session::prepare; one thread at a time uses it. It may be executed again, and another
/// thread may do so.
class PreparedRun {
 public:
  PreparedRun(PreparedRun&&) noexcept;
  ~PreparedRun();
  using Microseconds = std::chrono::microseconds;

  /// By index into Session::feeds(). Their memory may be exchanged, their types and shapes may not.
  std::vector<tensor::Value>& feeds() { return feeds_; }
  const std::vector<tensor::Value>& feeds() const { return feeds_; }

  /// Asks for one more output, an index into Session::outputs(), and where it shall stay. Throws InvalidArgument where
  /// there is no such output.
  void want(std::size_t output, tensor::Device device = {});
  /// Memory for the i-th output asked for, which is written where dtype and shape turn out to match: the result then is
  /// this tensor. Otherwise it has memory of its own. An empty tensor takes that back.
  void write_into(std::size_t i, tensor::Tensor target) { wanted_.at(i).target = std::move(target); }

  /// Duration in microseconds that earlier runs with these feeds' shapes and for these outputs let expect; nullopt
  /// where there was none yet, or so long ago that its plan was dropped; infinity where they tell nothing
  /// (runtime::expected_us).
  std::optional<double> expected_us();
  /// What is known of an output beforehand: dtype Undefined where it does not follow from the feeds' shapes.
  struct ResultShape {
    tensor::DType dtype = tensor::DType::Undefined;
    tensor::Shape shape;
  };
  /// Of the outputs asked for. Takes long where shapes like these are new. Never throws for shapes that execute() will
  /// complain of.
  std::vector<ResultShape> result_shapes();

  /// Begins a run whose work is a device's, if that takes the calling thread no time; execute() then waits for it. The
  /// feeds, which stay as they are, live on; a token to cancel it comes too late.
  void begin();
  /// Runs; results in the order of want(). Throws Error; Disposed after the session's release.
  std::vector<tensor::Value> execute(const kernel::CancelToken* cancel = nullptr);
  /// The same for a thread that must not be held up for much longer than `most` (runtime/brief/brief_run.h): nullopt
  /// where the run turns out to take longer, or may. Nothing was written then, nor put into a trace.
  std::optional<std::vector<tensor::Value>> execute_briefly(Microseconds most);

 private:
  friend class Session;
  struct Wanted {
    std::size_t output;
    tensor::Device device;
    tensor::Tensor target;
  };
  PreparedRun(std::shared_ptr<Session> session, std::vector<tensor::Value> feeds, RunOptions options);
  /// What a run holds while it is under way.
  class UnderWay;
  std::optional<std::vector<tensor::Value>> run(const kernel::CancelToken* cancel, std::optional<Microseconds> most);
  std::vector<tensor::Value> deliver(std::vector<tensor::Value> made) const;
  const runtime::Demand* demand();
  void place_outputs(std::vector<tensor::Tensor>& targets, std::vector<tensor::Device>& devices) const;
  tensor::Value deliver(tensor::Value made, const Wanted& to) const;

  std::shared_ptr<Session> session_;
  RunOptions options_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;  ///< its timeout counts from when it was called for
  std::vector<tensor::Value> feeds_;
  std::vector<Wanted> wanted_;
  std::shared_ptr<const runtime::ShapePlan> shapes_;  ///< null where shapes like these were not seen yet
  std::shared_ptr<const runtime::Demand> demand_;     ///< null also where all outputs are wanted
  bool demand_known_ = false;
  bool on_devices_ = false;              ///< whether some steps of the plan are devices'
  std::unique_ptr<UnderWay> under_way_;  ///< from begin() on
};

}  // namespace infernode::session
