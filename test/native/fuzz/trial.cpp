#include "fuzz/trial.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <vector>

#include "fuzz/memory_watch.h"
#include "session/prepared_run.h"

namespace infernode::fuzz {
namespace {

using graph::ValueType;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

constexpr std::int64_t kMaxElements = 20000;
constexpr std::size_t kMemoryLimit = std::size_t{64} << 20;
constexpr std::int64_t kTimeoutMs = 2000;
/// A load and a run of a small model take milliseconds of processor time, under sanitizers too. (Time by the clock says
/// how busy the machine is.)
constexpr double kSlowSeconds = 10;
/// What loading and running may hold at a time: the limit that the session is given, and what counts for little beside
/// it. More is what a number asked for that nothing had checked.
constexpr std::int64_t kMostBytes = kMemoryLimit + (std::size_t{32} << 20);

/// Processor time of all of the process's threads.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Tensor small_tensor(DType type, const graph::SymShape* declared, Mutator& random) {
  Shape shape;
  const std::size_t rank = declared ? declared->size() : random.below(random.once_in(6) ? 9 : 4);
  for (std::size_t i = 0; i < rank; ++i) {
    const bool known = declared && (*declared)[i].known();
    shape.push_back(known ? (*declared)[i].value()
                          : static_cast<std::int64_t>(random.below(random.once_in(3) ? 9 : 4)));
  }
  std::int64_t count = 1;
  for (const std::int64_t dim : shape)
    count = dim > kMaxElements || count > kMaxElements ? kMaxElements + 1 : count * dim;
  if (count > kMaxElements) shape = Shape{2};
  if (type == DType::Undefined) type = DType::Float32;
  const Tensor out = Tensor::make(type, shape);
  if (type == DType::String) {
    for (std::string& text : out.mutable_span<std::string>()) text = std::string(random.below(4), 'a');
    return out;
  }
  auto* bytes = static_cast<unsigned char*>(out.mutable_raw());
  const std::size_t size = std::max<std::size_t>(1, tensor::bit_size(type) / 8);
  for (std::size_t i = 0; i + size <= out.bytes(); i += size) {
    const std::int64_t value = random.once_in(40) ? random.integer() : static_cast<std::int64_t>(random.below(5)) - 1;
    if (type == DType::Float32) {
      const std::uint32_t bits = random.float_bits();
      std::memcpy(bytes + i, &bits, size);
    } else if (type == DType::Float64) {
      const auto real = static_cast<double>(value) / 2;
      std::memcpy(bytes + i, &real, size);
    } else if (type == DType::Bool) {
      bytes[i] = value & 1;
    } else {
      std::memcpy(bytes + i, &value, std::min(size, sizeof value));
      if (size > sizeof value) std::memset(bytes + i + sizeof value, 0, size - sizeof value);
    }
  }
  return out;
}

Value small_value(const ValueType& type, Mutator& random) {
  switch (type.kind) {
    case ValueType::Kind::Sequence: {
      tensor::Sequence out;
      if (!type.inner || type.inner->kind != ValueType::Kind::Tensor) return Value(std::move(out));
      out.elem = type.inner->elem;
      for (std::size_t count = random.below(4); count > 0; --count)
        out.items.emplace_back(
            small_tensor(type.inner->elem, type.inner->shape ? &*type.inner->shape : nullptr, random));
      return Value(std::move(out));
    }
    case ValueType::Kind::Optional: {
      if (!type.inner || random.once_in(2)) return {};
      return small_value(*type.inner, random);
    }
    case ValueType::Kind::Map: {
      if (!type.inner || type.inner->kind != ValueType::Kind::Tensor) return {};
      const graph::SymShape list{graph::Dim(static_cast<std::int64_t>(random.below(4)))};
      tensor::Map out{small_tensor(type.elem, &list, random), {}};
      const graph::SymShape scalar;
      for (std::int64_t left = out.keys.numel(); left > 0; --left)
        out.values.emplace_back(small_tensor(type.inner->elem, &scalar, random));
      return Value(std::move(out));
    }
    default:
      return small_tensor(type.elem, type.shape ? &*type.shape : nullptr, random);
  }
}

}  // namespace

Verdict try_model(const std::shared_ptr<session::Engine>& engine, std::string_view model, Mutator& random,
                  const std::string& folder) {
  session::SessionOptions options;
  options.log_severity = LogSeverity::Fatal;
  options.level = random.once_in(3) ? passes::Level::Disabled : passes::Level::All;
  options.parallel = random.once_in(8);
  options.memory_pattern = !random.once_in(8);
  options.memory_limit = kMemoryLimit;
  if (!folder.empty()) {
    if (random.once_in(2)) {
      options.config["session.model_external_initializers_file_folder_path"] = folder;
    } else {
      const auto weights = std::make_shared<std::string>(kWeightBytes, '\0');
      options.external_data[kWeights] = tensor::Buffer(weights->data(), weights->size(), weights, {}, false);
    }
  }
  session::ModelSource source;
  const auto bytes = std::make_shared<std::string>(model);
  source.bytes = tensor::Buffer(bytes->data(), bytes->size(), bytes, {}, false);

  Verdict verdict;
  const double begin = cpu_seconds();
  const MemoryWatch memory;
  try {
    const auto session = session::Session::create(engine, std::move(source), std::move(options));
    verdict.stage = Verdict::Stage::Failed;
    std::vector<Value> feeds;
    for (const session::ValueMetadata& feed : session->feeds())
      feeds.push_back(feed.overridable && !random.once_in(3) ? Value() : small_value(feed.type, random));
    session::PreparedRun run = session->prepare(std::move(feeds), {.timeout_ms = kTimeoutMs});
    for (std::size_t i = 0; i < session->outputs().size(); ++i) run.want(i);
    (void)run.result_shapes();
    for (const Value& value : run.execute())
      if (!value.empty()) (void)value.to_string();
    verdict.stage = Verdict::Stage::Ran;
    session->release();
  } catch (const Error& error) {
    verdict.error = error.message();
    if (error.code() == ErrorCode::Internal || error.message().empty())
      verdict.fault = cat(to_string(error.code()), ": ", error.message());
  } catch (const std::bad_alloc&) {
    verdict.fault = "memory was asked of the system without a check";
  } catch (const std::exception& error) {
    verdict.fault = cat("a stray exception: ", error.what());
  }
  if (const double took = cpu_seconds() - begin; verdict.fault.empty() && took > kSlowSeconds)
    verdict.fault = cat("it took ", took, " s");
  if (verdict.fault.empty() && memory.peak() > kMostBytes)
    verdict.fault = cat("it held ", memory.peak(), " bytes at a time");
  return verdict;
}

}  // namespace infernode::fuzz
