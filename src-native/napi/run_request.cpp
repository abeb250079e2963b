#include "napi/run_request.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "napi/errors.h"
#include "napi/tensor_wrap.h"
#include "runtime/brief_run.h"
#include "session/feed_check.h"

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

bool overlaps(const Tensor& a, const Tensor& b) {
  return a.buffer().data() < b.buffer().data() + b.bytes() && b.buffer().data() < a.buffer().data() + a.bytes();
}

}  // namespace

Buffer StagingMemory::take(std::size_t bytes) {
  if (block_.size() / 4 <= bytes && bytes <= kStagingKept && block_.use_count() == 1) {
    std::atomic_thread_fence(std::memory_order_acquire);  // with the last release of another holder
    tensor::grow_host_buffer(block_, bytes);
    return block_;
  }
  Buffer fresh = tensor::host_allocator().allocate(bytes);
  if (bytes <= kStagingKept) block_ = fresh;
  return fresh;
}

RunRequest::RunRequest(napi_env env, std::shared_ptr<session::Session> session, napi_value numbers, napi_value items,
                       session::RunOptions options)
    : env_(env), session_(std::move(session)), options_(std::move(options)), feeds_(session_->feeds().size()) {
  WireReader reader(env, numbers, items);
  const auto inputs = static_cast<std::int64_t>(feeds_.size());
  for (std::int64_t left = reader.integer(0, inputs); left > 0; --left) {
    const auto index = static_cast<std::size_t>(reader.integer(0, inputs - 1));
    feeds_[index] = reader.value();
  }
  session_->check(feeds_);
  for (std::int64_t left = reader.integer(0, kMostOutputs); left > 0; --left) read_output(reader);
}

void RunRequest::read_output(WireReader& reader) {
  const auto count = static_cast<std::int64_t>(session_->outputs().size());
  wanted_.push_back(static_cast<std::size_t>(reader.integer(0, count - 1)));
  Output output;
  tensor::Device device;
  output.placement = static_cast<Placement>(reader.integer(0, static_cast<int>(Placement::Target)));
  if (output.placement == Placement::Device) {
    device = session_->device(Napi::String(env_, reader.item()).Utf8Value());
  } else if (output.placement == Placement::Target) {
    napi_value array = nullptr;
    output.target = reader.target(array);
    session::check_target(session_->outputs()[wanted_.back()], output.target);
    output.in_javascript = array != nullptr;
    if (output.in_javascript) output.kept = keep(array);
    device = output.target.device();
  }
  preallocated_.emplace_back(output.placement == Placement::Target ? Value(output.target) : Value());
  devices_.push_back(device);
  outputs_.push_back(std::move(output));
}

Napi::Array RunRequest::kept() const {
  return Napi::Array(env_, detached_ ? static_cast<napi_value>(kept_reference_.Value()) : kept_);
}

int RunRequest::keep(napi_value value) {
  if (kept_count_ == 0) {
    check(env_, napi_create_array(env_, &kept_));
    if (detached_) kept_reference_ = Napi::Persistent(Napi::Object(env_, kept_));
  }
  kept().Set(static_cast<std::uint32_t>(kept_count_), value);
  return kept_count_++;
}

std::size_t RunRequest::copied_bytes() const { return borrowed_bytes(feeds_); }

void RunRequest::forecast() { forecasts_ = session_->forecast(feeds_, wanted_); }

void RunRequest::allocate_outputs() {
  for (std::size_t i = 0; i < forecasts_.size(); ++i) {
    const auto& [dtype, shape] = forecasts_[i];
    if (outputs_[i].placement != Placement::JavaScript || dtype == DType::Undefined || dtype == DType::String) continue;
    if (tensor::byte_size(dtype, shape.numel()) < kPrepareFrom) continue;
    preallocated_[i] = allocate(outputs_[i], dtype, shape);
  }
}

Tensor RunRequest::allocate(Output& output, DType dtype, const tensor::Shape& shape) {
  const std::size_t bytes = tensor::byte_size(dtype, shape.numel());
  void* data = nullptr;
  output.kept = keep(make_array_buffer(env_, bytes, data));
  return {dtype, shape, Buffer(data, bytes, borrowed_owner())};
}

void RunRequest::detach(StagingMemory& staging) {
  if (const std::size_t bytes = copied_bytes(); bytes > 0) {
    ThreadPool& pool = session_->engine().pool();
    own(feeds_, staging.take(bytes), pool, session::threads_of(session_->options(), pool.size()));
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].in_javascript) preallocated_[i] = {};  // JavaScript can reach it: written when the run is over
  }
  if (kept_count_ > 0) kept_reference_ = Napi::Persistent(Napi::Object(env_, kept_));
  detached_ = true;
}

void RunRequest::part_overlaps() {
  for (Value& feed : feeds_) {
    if (!feed.is_tensor() || feed.tensor().bytes() == 0) continue;
    for (const Output& output : outputs_) {
      if (!output.target || !overlaps(feed.tensor(), output.target)) continue;
      if (feed.tensor().device().is_host()) feed = feed.tensor().clone();
      break;
    }
  }
}

void RunRequest::execute(const kernel::CancelToken* cancel) {
  results_ = session_->run({.feeds = feeds_,
                            .wanted = wanted_,
                            .preallocated = preallocated_,
                            .devices = devices_,
                            .cancel = cancel,
                            .options = options_});
}

bool RunRequest::execute_briefly(std::chrono::microseconds most) {
  try {
    results_ = session_->run({.feeds = feeds_,
                              .wanted = wanted_,
                              .preallocated = preallocated_,
                              .devices = devices_,
                              .brief = most,
                              .options = options_});
    return true;
  } catch (const runtime::NotBrief&) {
    return false;
  }
}

bool RunRequest::allocate_results() {
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

void RunRequest::move_results() {
  for (std::size_t i = 0; i < moved_.size(); ++i) {
    if (!moved_[i]) continue;
    std::memcpy(moved_[i].mutable_raw(), results_[i].tensor().raw(), moved_[i].bytes());
    results_[i] = std::move(moved_[i]);
  }
}

std::size_t RunRequest::result_bytes() const {
  std::size_t bytes = 0;
  for (const Value& value : results_) bytes += value.bytes();
  return bytes;
}

napi_value RunRequest::result(napi_value place) {
  WireWriter writer(env_);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    put_result(writer, outputs_[i], results_[i], session_->outputs()[wanted_[i]].name);
  }
  return writer.finish(place);
}

void RunRequest::put_result(WireWriter& writer, const Output& output, const Value& value, std::string_view name) const {
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

Tensor RunRequest::target_of(const Output& output) const {
  if (!output.in_javascript || !detached_) return output.target;
  // JavaScript ran meanwhile: its array may have been detached or shrunk.
  const napi_value array = kept().Get(static_cast<std::uint32_t>(output.kept));
  return view_data(env_, output.target.dtype(), output.target.shape(), array, true);
}

void RunRequest::write_target(const Output& output, const Value& value, std::string_view name) const {
  const std::string expected = output.target.to_string();
  const std::string actual = value.to_string();
  if (!value.is_tensor() || value.tensor().dtype() != output.target.dtype() ||
      !(value.tensor().shape() == output.target.shape())) {
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
