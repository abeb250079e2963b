#include "napi/borrowed.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace infernode::napi {

using tensor::Buffer;
using tensor::Tensor;
using tensor::Value;

std::shared_ptr<const void> borrowed_owner() {
  static constexpr char kMarker = 0;
  return {std::shared_ptr<const void>(), &kMarker};
}

bool is_borrowed(const Tensor& tensor) { return tensor.buffer().owner() == borrowed_owner().get(); }

namespace {

constexpr std::size_t kAlignment = 64;

/// Bytes that copies of all borrowed tensors within take in one block.
std::size_t copy_bytes(const Value& value) {
  std::size_t total = 0;
  const auto add = [&total](std::size_t bytes) { total = checked_add(total, bytes); };
  if (value.is_tensor() && is_borrowed(value.tensor())) {
    add(align_up(value.tensor().bytes(), kAlignment));
  } else if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) add(copy_bytes(item));
  } else if (value.is_map()) {
    add(copy_bytes(Value(value.map().keys)));
    for (const Value& item : value.map().values) add(copy_bytes(item));
  }
  return total;
}

/// Places copies of borrowed tensors one behind another in a block; finish() fills them.
class BlockCopier {
 public:
  explicit BlockCopier(Buffer block) : block_(std::move(block)) {}

  Value copy(const Value& value) {
    if (value.is_tensor()) return is_borrowed(value.tensor()) ? Value(copy(value.tensor())) : value;
    if (value.is_sequence()) {
      tensor::Sequence sequence{value.sequence().elem, {}};
      for (const Value& item : value.sequence().items) sequence.items.push_back(copy(item));
      return sequence;
    }
    if (value.is_map()) {
      tensor::Map map{copy(Value(value.map().keys)).tensor(), {}};
      for (const Value& item : value.map().values) map.values.push_back(copy(item));
      return map;
    }
    return value;
  }

  void finish(ThreadPool& pool, std::size_t threads) const {
    constexpr std::size_t kMuch = std::size_t{2} << 20;
    constexpr double kBytesPerNs = 15;
    const auto fill = [this](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) std::memcpy(parts_[i].to, parts_[i].from, parts_[i].bytes);
    };
    if (offset_ < kMuch || threads < 2) return fill(0, parts_.size(), 0);
    const double cost = static_cast<double>(offset_) / kBytesPerNs / static_cast<double>(parts_.size());
    pool.parallel_for(parts_.size(), cost, threads, fill);
  }

 private:
  struct Part {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  static constexpr std::size_t kPart = std::size_t{256} << 10;

  Tensor copy(const Tensor& from) {
    const std::size_t bytes = from.bytes();
    const Tensor to(from.dtype(), from.shape(), block_.slice(offset_, bytes));
    auto* const data = static_cast<std::byte*>(to.mutable_raw());
    for (std::size_t at = 0; at < bytes; at += kPart)
      parts_.push_back({data + at, static_cast<const std::byte*>(from.raw()) + at, std::min(kPart, bytes - at)});
    offset_ += align_up(bytes, kAlignment);
    return to;
  }

  Buffer block_;
  std::size_t offset_ = 0;
  std::vector<Part> parts_;
};

}  // namespace

std::size_t borrowed_bytes(std::span<const Value> values) {
  std::size_t total = 0;
  for (const Value& value : values) total = checked_add(total, copy_bytes(value));
  return total;
}

void own(std::span<Value> values, const Buffer& block, ThreadPool& pool, std::size_t threads) {
  BlockCopier copier(block);
  for (Value& value : values) value = copier.copy(value);
  copier.finish(pool, threads);
}

}  // namespace infernode::napi
