#include "session/prepared_run.h"

#include <algorithm>
#include <functional>

#include "runtime/brief/brief_run.h"
#include "session/feed_check.h"
#include "session/run_under_way.h"
#include "tensor/byte_ranges.h"

namespace infernode::session {

namespace {

using runtime::Profiler;
using tensor::Tensor;
using tensor::Value;

void check_feeds(const LoadedModel& model, std::span<const Value> feeds) {
  for (std::size_t i = 0; i < model.feeds.size(); ++i) {
    const bool given = i < feeds.size() && !feeds[i].empty();
    if (given) {
      check_feed(model.feeds[i], feeds[i]);
    } else if (i < model.input_count && model.feeds[i].type.kind != graph::ValueType::Kind::Optional) {
      fail(ErrorCode::InvalidArgument, cat("input '", model.feeds[i].name, "' is missing in 'feeds'."),
           {.input = model.feeds[i].name});
    }
  }
}

tensor::ByteRanges ranges_of(std::span<const Value> feeds) {
  std::vector<tensor::ByteRange> ranges;
  ranges.reserve(feeds.size());
  for (const Value& feed : feeds) {
    if (feed.is_tensor()) ranges.push_back(tensor::byte_range(feed.tensor()));
  }
  return tensor::ByteRanges(std::move(ranges));
}

/// Which of these have a target that shares bytes with another one's.
template <class Wanted>
std::vector<bool> that_overlap(const std::vector<Wanted>& wanted) {
  std::vector<bool> found(wanted.size(), false);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].target && wanted[i].target.bytes() > 0) order.push_back(i);
  }
  const auto begin_of = [&](std::size_t i) { return wanted[i].target.buffer().data(); };
  const auto end_of = [&](std::size_t i) { return begin_of(i) + wanted[i].target.bytes(); };
  std::ranges::sort(order, std::less(), begin_of);
  for (std::size_t at = 1, farthest = 0; at < order.size(); ++at) {  // the one of those before that ends last
    const std::size_t i = order[at], before = order[farthest];
    if (end_of(before) > begin_of(i)) found[i] = found[before] = true;
    if (end_of(i) > end_of(before)) farthest = at;
  }
  return found;
}

/// Runs `body`, whose errors say what was fed where that may be what they come of.
template <class Body>
auto naming_feeds(const Session& session, const std::vector<Value>& feeds, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    name_feeds(error, session.feeds(), feeds);
    throw;
  }
}

bool fits(const Tensor& made, const Tensor& target) {
  return made.dtype() == target.dtype() && made.shape() == target.shape();
}

}  // namespace

PreparedRun::PreparedRun(std::shared_ptr<Session> session, std::vector<Value> feeds, RunOptions options)
    : session_(std::move(session)), options_(std::move(options)), feeds_(std::move(feeds)) {
  if (options_.timeout_ms) deadline_ = Profiler::Clock::now() + std::chrono::milliseconds(*options_.timeout_ms);
  Session::State& state = *session_->state_;
  const Session::State::Running running(state);
  check_feeds(state.model, feeds_);
  if (!state.warned_symbols) {
    const std::string warning = state.symbols.disagreement(state.model.feeds, feeds_);
    if (!warning.empty() && !state.warned_symbols.exchange(true))
      state.logger.write(LogSeverity::Warning, "run", warning);
  }
  shapes_ = state.model.plan->find_specialised(order_feeds(state.model, feeds_));
  on_devices_ = !state.model.plan->device_providers().empty();
}

void PreparedRun::want(std::size_t output, tensor::Device device) {
  const std::size_t count = session_->outputs().size();
  if (output >= count) fail(ErrorCode::InvalidArgument, cat("no output ", output, ": the model has ", count));
  wanted_.push_back({.output = output, .device = device, .target = {}});
  demand_known_ = false;
}

/// What the run has to do; null where all outputs are wanted. While the run is counted in.
const runtime::Demand* PreparedRun::demand() {
  if (!std::exchange(demand_known_, true)) {
    std::vector<bool> asked(session_->outputs().size());
    for (const Wanted& wanted : wanted_) asked[wanted.output] = true;
    demand_ = session_->state_->model.plan->demand(asked);
  }
  return demand_.get();
}

std::optional<double> PreparedRun::expected_us() {
  if (!shapes_) return std::nullopt;
  try {
    const Session::State::Running running(*session_->state_);
    return runtime::expected_us(*shapes_, demand());
  } catch (const Error&) {
    return std::nullopt;  // released: execute() will say so
  }
}

std::vector<PreparedRun::ResultShape> PreparedRun::result_shapes() {
  std::vector<ResultShape> results(wanted_.size());
  try {
    Session::State& state = *session_->state_;
    const Session::State::Running running(state);
    if (!shapes_) shapes_ = state.model.plan->specialise(order_feeds(state.model, feeds_), {});
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const graph::ValueType& type = shapes_->outputs.at(wanted_[i].output);
      if (!type.is_tensor() || !type.shape) continue;
      if (const auto known = graph::to_known(*type.shape)) results[i] = {type.elem, *known};
    }
  } catch (const Error&) {
    // execute() will say what is wrong
  }
  return results;
}

std::vector<Value> PreparedRun::execute(const kernel::CancelToken* cancel) {
  return naming_feeds(*session_, feeds_, [&] { return *run(cancel, std::nullopt); });
}

std::optional<std::vector<Value>> PreparedRun::execute_briefly(Microseconds most) {
  return naming_feeds(*session_, feeds_, [&] { return run(nullptr, most); });
}

/// By output of the model: memory to write it into while feeds and other outputs are still read, and where it shall
/// stay.
void PreparedRun::place_outputs(std::vector<Tensor>& targets, std::vector<tensor::Device>& devices) const {
  targets.resize(session_->outputs().size());
  devices.resize(targets.size());
  for (const Wanted& wanted : wanted_) devices[wanted.output] = wanted.device;
  if (std::ranges::none_of(wanted_, [](const Wanted& wanted) { return static_cast<bool>(wanted.target); })) return;
  const std::vector<bool> shared = that_overlap(wanted_);
  const tensor::ByteRanges read = ranges_of(feeds_);
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Wanted& wanted = wanted_[i];
    if (wanted.target && !shared[i] && !read.meet(tensor::byte_range(wanted.target)))
      targets[wanted.output] = wanted.target;
  }
}

PreparedRun::PreparedRun(PreparedRun&&) noexcept = default;
PreparedRun::~PreparedRun() = default;

void PreparedRun::begin() {
  if (!on_devices_ || !shapes_ || options_.terminate) return;
  Session::State& state = *session_->state_;
  if (state.options.parallel) return;
  {
    const Session::State::Running running(state);
    if (state.current_profiler() || !runtime::may_begin_on_caller(*state.model.plan, *shapes_, demand())) return;
  }
  naming_feeds(*session_, feeds_, [&] {
    auto under_way = std::make_unique<UnderWay>(*this, nullptr, nullptr, std::nullopt);
    under_way->run_steps();
    under_way_ = std::move(under_way);
  });
}

std::optional<std::vector<Value>> PreparedRun::run(const kernel::CancelToken* cancel,
                                                   std::optional<Microseconds> most) {
  Session::State& state = *session_->state_;
  const Session::State::Running running(state);
  if (options_.terminate) fail(ErrorCode::Aborted, "the run was asked to terminate");
  const auto called = Profiler::Clock::now();
  const std::shared_ptr<Profiler> profiler = state.current_profiler();
  if (most && (!shapes_ || !runtime::may_be_brief(*shapes_, profiler != nullptr))) return std::nullopt;

  const std::unique_ptr<UnderWay> begun = std::move(under_way_);
  std::optional<UnderWay> here;
  if (!begun) here.emplace(*this, profiler, cancel, most);
  auto made = begun ? begun->results(true) : here->run();
  if (!made) return std::nullopt;
  if (!text_of(options_.config, "memory.enable_memory_arena_shrinkage").empty()) (begun ? *begun : *here).shrink();
  std::vector<Value> results = deliver(std::move(*made));
  if (profiler) profiler->add("Session", "model_run", called, Profiler::Clock::now());
  return results;
}

std::vector<Value> PreparedRun::deliver(std::vector<Value> made) const {
  std::vector<Value> results;
  results.reserve(wanted_.size());
  for (const Wanted& wanted : wanted_) results.push_back(deliver(made[wanted.output], wanted));
  return results;
}

/// A result in the memory that it was asked into, or on the device where it shall stay.
Value PreparedRun::deliver(Value made, const Wanted& to) const {
  if (!made.is_tensor()) return made;
  if (to.target && fits(made.tensor(), to.target) && to.target.bytes() > 0 &&
      made.tensor().buffer().data() != to.target.buffer().data()) {
    session_->copy(made.tensor(), to.target);
    made = to.target;
  }
  if (made.tensor().device() != to.device) {
    const Tensor moved = session_->allocate(made.tensor().dtype(), made.tensor().shape(), to.device);
    session_->copy(made.tensor(), moved);
    made = moved;
  }
  return made;
}

}  // namespace infernode::session
