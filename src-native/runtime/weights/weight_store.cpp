#include "runtime/weights/weight_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/error.h"

namespace infernode::runtime {

namespace {

/// Of some of the bytes, spread over all, and their number.
ContentHash sample_of(std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = 64, kPieces = 64;
  std::array<std::byte, kPiece * kPieces> some;
  const std::size_t step = (bytes.size() - kPiece) / (kPieces - 1);
  for (std::size_t i = 0; i < kPieces; ++i) std::memcpy(some.data() + i * kPiece, bytes.data() + i * step, kPiece);
  ContentHash hash = content_hash(some);
  hash.low += bytes.size();
  return hash;
}

}  // namespace

/// A packed weight and the mapping that its key points into: while the entry lives the key cannot come to mean other
/// bytes.
struct WeightStore::Packed {
  tensor::Buffer source;
  tensor::Buffer packed;
};

std::shared_ptr<const MappedFile> WeightStore::map(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const FileIdentity identity = file_identity(path);
  std::erase_if(files_, [](const auto& file) { return file.expired(); });
  for (const auto& entry : files_) {
    if (auto file = entry.lock(); file && file->identity() == identity) return file;
  }
  auto file = std::make_shared<const MappedFile>(path);
  files_.push_back(file);
  return file;
}

tensor::Buffer WeightStore::pack(const tensor::Tensor& weight, std::string_view format,
                                 FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) {
  const bool mapped = !weight.buffer().writable() && find(weight.raw()) != nullptr;
  if (!mapped) return share(make(weight));
  const std::string key = cat(reinterpret_cast<std::uintptr_t>(weight.raw()), " ", weight.to_string(), " ", format);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = packed_.find(key); found != packed_.end()) {
      if (const auto entry = found->second.lock()) {
        return tensor::Buffer(entry->packed.data(), entry->packed.size(), entry, {}, false);
      }
    }
  }
  auto entry = std::make_shared<Packed>(Packed{weight.buffer(), make(weight)});
  const std::lock_guard lock(mutex_);
  release_pages_locked(weight, 0, weight.bytes());  // its packed form is read from now on
  drop_expired_locked();
  auto& slot = packed_[key];
  if (auto other = slot.lock()) {
    entry = std::move(other);  // another session packed it meanwhile
  } else {
    slot = entry;
  }
  return tensor::Buffer(entry->packed.data(), entry->packed.size(), entry, {}, false);
}

tensor::Buffer WeightStore::share(tensor::Buffer bytes) {
  constexpr std::size_t kLeast = std::size_t{16} << 10;  // others are not worth an entry
  if (bytes.size() < kLeast || !bytes.device().is_host()) return bytes;
  const ContentHash sample = sample_of({bytes.data(), bytes.size()});
  std::vector<std::shared_ptr<const tensor::Buffer>> alike;
  {
    const std::lock_guard lock(mutex_);
    for (auto [at, end] = shared_.equal_range(sample); at != end; ++at) {
      if (auto other = at->second.lock()) alike.push_back(std::move(other));
    }
  }
  for (const auto& other : alike) {
    if (other->size() != bytes.size()) continue;
    if (other->data() == bytes.data() || std::memcmp(other->data(), bytes.data(), bytes.size()) == 0)
      return {other->data(), other->size(), other, {}, false};
  }
  const auto entry = std::make_shared<const tensor::Buffer>(std::move(bytes));
  const std::lock_guard lock(mutex_);
  drop_expired_locked();
  shared_.emplace(sample, entry);
  return {entry->data(), entry->size(), entry, {}, false};
}

/// Each sweep waits until there are twice as many entries as the last one left, so that an entry costs a constant time.
void WeightStore::drop_expired_locked() {
  constexpr std::size_t kLeast = 64;
  if (packed_.size() + shared_.size() < sweep_from_) return;
  std::erase_if(packed_, [](const auto& item) { return item.second.expired(); });
  std::erase_if(shared_, [](const auto& item) { return item.second.expired(); });
  sweep_from_ = std::max(kLeast, 2 * (packed_.size() + shared_.size()));
}

std::shared_ptr<const MappedFile> WeightStore::find(const void* address) {
  const std::lock_guard lock(mutex_);
  return find_locked(address);
}

std::shared_ptr<const MappedFile> WeightStore::find_locked(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  for (const auto& entry : files_) {
    if (auto file = entry.lock(); file && at >= file->data() && at < file->data() + file->size()) return file;
  }
  return nullptr;
}

void WeightStore::release_pages(const tensor::Tensor& weight, std::size_t offset, std::size_t bytes) {
  if (weight.buffer().writable()) return;
  const std::lock_guard lock(mutex_);
  release_pages_locked(weight, offset, bytes);
}

void WeightStore::release_pages_locked(const tensor::Tensor& weight, std::size_t offset, std::size_t bytes) const {
  const auto file = find_locked(weight.raw());
  if (!file) return;
  const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(weight.raw()) - file->data());
  file->drop(begin + offset, bytes);
}

}  // namespace infernode::runtime
