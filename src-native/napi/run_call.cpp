#include "napi/run_call.h"

#include <algorithm>
#include <cstring>

#include "napi/errors.h"
#include "napi/tensor_wrap.h"
#include "runtime/run/end_apart.h"
#include "session/feed_check.h"
#include "tensor/byte_ranges.h"

namespace infernode::napi {

using tensor::Buffer;
using tensor::DType;
using tensor::Tensor;
using tensor::Value;

namespace {

/// Outputs below this many bytes are copied when the run is over rather than prepared for.
constexpr std::size_t kPrepareFrom = 4096;
/// Results from this many bytes on are copied off the JavaScript thread where they could not be prepared for.
constexpr std::size_t kMoveFrom = std::size_t{256} << 10;
/// Staging memory beyond this is not kept between runs.
constexpr std::size_t kStagingKept = std::size_t{64} << 20;
constexpr std::size_t kMostOutputs = 1 << 20;

/// By index; empty where not fed.
std::vector<Value> read_feeds(WireReader& reader, std::size_t count) {
  std::vector<Value> feeds(count);
  const auto most = static_cast<std::int64_t>(count);
  for (std::int64_t left = reader.integer(0, most); left > 0; --left) {
    const auto index = static_cast<std::size_t>(reader.integer(0, most - 1));
    feeds[index] = reader.value();
  }
  return feeds;
}

std::size_t bytes_of(std::span<const Value> values) {
  std::size_t bytes = 0;
  for (const Value& value : values) bytes += value.bytes();
  return bytes;
}

}  // namespace

Buffer StagingMemory::take(std::size_t bytes, session::Session& session) {
  if (block_.size() / 4 <= bytes && bytes <= kStagingKept && block_.held_alone()) {
    if (block_.size() < bytes) {
      block_ = {};
      block_ =
          session.allocate_staging(bytes + bytes / 8);  // shapes that grow from run to run then seldom ask for more
    }
    return block_;
  }
  Buffer fresh = session.allocate_staging(bytes);
  if (bytes <= kStagingKept) block_ = fresh;
  return fresh;
}

RunCall::RunCall(napi_env env, std::shared_ptr<session::Session> session, WireReader reader,
                 session::RunOptions options)
    : env_(env),
      session_(std::move(session)),
      run_(session_->prepare(read_feeds(reader, session_->feeds().size()), std::move(options))) {
  for (std::int64_t left = reader.integer(0, kMostOutputs); left > 0; --left) read_output(reader);
}

RunCall::~RunCall() {
  ThreadPool& pool = session_->engine().pool();
  std::vector<Value>& feeds = run_.feeds();
  // Of a run that gave results, pages go back to the system before the next one asks for some.
  const bool pages = results_.empty() && bytes_of(feeds) >= runtime::kSlowBytes;
  if (pages || runtime::are_freed_slowly(feeds, false)) runtime::end_apart(pool, std::move(feeds));
  if (runtime::are_freed_slowly(results_, false)) runtime::end_apart(pool, std::move(results_));
}

void RunCall::read_output(WireReader& reader) {
  const auto count = static_cast<std::int64_t>(session_->outputs().size());
  Output output;
  output.index = static_cast<std::size_t>(reader.integer(0, count - 1));
  tensor::Device device;
  output.placement = static_cast<Placement>(reader.integer(0, static_cast<int>(Placement::Target)));
  if (output.placement == Placement::Device) {
    device = session_->device(Napi::String(env_, reader.item()).Utf8Value());
  } else if (output.placement == Placement::Target) {
    napi_value array = nullptr;
    output.target = reader.target(array);
    session::check_target(session_->outputs()[output.index], output.target);
    output.in_javascript = array != nullptr;
    if (output.in_javascript) output.kept = keep(array);
    device = output.target.device();
  }
  run_.want(output.index, device);
  if (output.placement == Placement::Target) run_.write_into(outputs_.size(), output.target);
  outputs_.push_back(std::move(output));
}

Napi::Array RunCall::kept() const {
  return Napi::Array(env_, detached_ ? static_cast<napi_value>(kept_reference_.Value()) : kept_);
}

int RunCall::keep(napi_value value) {
  if (kept_count_ == 0) {
    check(env_, napi_create_array(env_, &kept_));
    if (detached_) kept_reference_ = Napi::Persistent(Napi::Object(env_, kept_));
  }
  kept().Set(static_cast<std::uint32_t>(kept_count_), value);
  return kept_count_++;
}

std::size_t RunCall::copied_bytes() const { return borrowed_bytes(run_.feeds()); }

void RunCall::forecast() {
  const auto is_made = [](const Output& output) { return output.placement == Placement::JavaScript; };
  if (std::ranges::any_of(outputs_, is_made)) forecasts_ = run_.result_shapes();
}

void RunCall::allocate_outputs() {
  if (session_->options().memory_limit != SIZE_MAX) return;  // results count: their nodes ask the engine for memory
  for (std::size_t i = 0; i < forecasts_.size(); ++i) {
    const auto& [dtype, shape] = forecasts_[i];
    if (outputs_[i].placement != Placement::JavaScript || dtype == DType::Undefined || dtype == DType::String) continue;
    try {
      if (tensor::byte_size(dtype, shape.numel()) < kPrepareFrom) continue;
      run_.write_into(i, allocate(outputs_[i], dtype, shape));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::OutOfMemory) throw;  // neither will its node get any, and that is named
    }
  }
}

Tensor RunCall::allocate(Output& output, DType dtype, const tensor::Shape& shape) {
  const std::size_t bytes = tensor::byte_size(dtype, shape.numel());
  void* data = nullptr;
  output.kept = keep(make_array_buffer(env_, bytes, data));
  return {dtype, shape, Buffer(data, bytes, borrowed_owner())};
}

void RunCall::detach(StagingMemory& staging) {
  if (const std::size_t bytes = copied_bytes(); bytes > 0) {
    ThreadPool& pool = session_->engine().pool();
    own(run_.feeds(), staging.take(bytes, *session_), pool, session::threads_of(session_->options(), pool.size()));
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].in_javascript) run_.write_into(i, {});  // JavaScript can reach it: written when the run is over
  }
  if (kept_count_ > 0) kept_reference_ = Napi::Persistent(Napi::Object(env_, kept_));
  detached_ = true;
}

void RunCall::part_overlaps() {
  std::vector<tensor::ByteRange> targets;
  for (const Output& output : outputs_) {
    if (output.target) targets.push_back(tensor::byte_range(output.target));
  }
  if (targets.empty()) return;
  const tensor::ByteRanges written(std::move(targets));
  for (Value& feed : run_.feeds()) {
    if (!feed.is_tensor() || !feed.tensor().device().is_host()) continue;
    if (written.meet(tensor::byte_range(feed.tensor()))) feed = feed.tensor().clone();
  }
}

void RunCall::execute(const kernel::CancelToken* cancel) { results_ = run_.execute(cancel); }

bool RunCall::execute_briefly(std::chrono::microseconds most) {
  auto results = run_.execute_briefly(most);
  if (results) results_ = std::move(*results);
  return results.has_value();
}

bool RunCall::allocate_results() {
  moved_.assign(outputs_.size(), {});
  bool any = false;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].placement != Placement::JavaScript || !results_[i].is_tensor()) continue;
    const Tensor& tensor = results_[i].tensor();
    if (is_borrowed(tensor) || tensor.dtype() == DType::String || tensor.bytes() < kMoveFrom) continue;
    moved_[i] = allocate(outputs_[i], tensor.dtype(), tensor.shape());
    any = true;
  }
  return any;
}

void RunCall::move_results() {
  for (std::size_t i = 0; i < moved_.size(); ++i) {
    if (!moved_[i]) continue;
    std::memcpy(moved_[i].mutable_raw(), results_[i].tensor().raw(), moved_[i].bytes());
    results_[i] = std::move(moved_[i]);
  }
}

std::size_t RunCall::result_bytes() const { return bytes_of(results_); }

napi_value RunCall::result(napi_value place) {
  WireWriter writer(env_);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    put_result(writer, outputs_[i], results_[i], session_->outputs()[outputs_[i].index].name);
  }
  return writer.finish(place);
}

void RunCall::put_result(WireWriter& writer, const Output& output, const Value& value, std::string_view name) const {
  switch (output.placement) {
    case Placement::Target:
      write_target(output, value, name);
      return writer.kind(Kind::InPlace);
    case Placement::Device:
      if (!value.is_tensor()) return writer.value(value);
      writer.kind(Kind::Handle);
      return writer.item(
          TensorWrap::make(env_, is_borrowed(value.tensor()) ? value.tensor().clone() : value.tensor(), session_));
    case Placement::JavaScript: {
      if (output.kept < 0 || !value.is_tensor()) return writer.value(value);
      const Tensor& tensor = value.tensor();
      const napi_value array = kept().Get(static_cast<std::uint32_t>(output.kept));
      void* data = nullptr;
      std::size_t bytes = 0;
      check(env_, napi_get_arraybuffer_info(env_, array, &data, &bytes));
      if (tensor.raw() != data || tensor.bytes() != bytes) return writer.value(value);
      return writer.tensor(tensor.dtype(), tensor.shape(), array);
    }
  }
}

Tensor RunCall::target_of(const Output& output) const {
  if (!output.in_javascript || !detached_) return output.target;
  // JavaScript ran meanwhile: its array may have been detached or shrunk.
  const napi_value array = kept().Get(static_cast<std::uint32_t>(output.kept));
  return view_data(env_, output.target.dtype(), output.target.shape(), array, true);
}

void RunCall::write_target(const Output& output, const Value& value, std::string_view name) const {
  if (!value.is_tensor() || value.tensor().dtype() != output.target.dtype() ||
      !(value.tensor().shape() == output.target.shape())) {
    const std::string expected = output.target.to_string();
    const std::string actual = value.to_string();
    fail(ErrorCode::ShapeMismatch,
         cat("output '", name, "' is ", actual, ", which does not fit into the preallocated ", expected),
         {.output = std::string(name), .expected = expected, .actual = actual});
  }
  try {
    const Tensor target = target_of(output);
    if (target.bytes() > 0 && target.raw() != value.tensor().raw()) session_->copy(value.tensor(), target);
  } catch (Error& error) {
    error.context().output = name;
    error.prepend(cat("output '", name, "': "));
    throw;
  }
}

}  // namespace infernode::napi
