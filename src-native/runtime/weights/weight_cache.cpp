#include "runtime/weights/weight_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/path.h"
#include "runtime/weights/packing_id.h"

namespace infernode::runtime {

namespace {

/// The file begins with a Header. Then come the entries, each an EntryHeader, its key and a check sum for each kBlock
/// bytes of it; then, from a page on, what is packed, each entry aligned to kAlignment.
struct Header {
  std::array<char, 16> magic;
  ContentHash sum;  ///< of what lies between it and `data_begin`
  std::array<char, 64> packing;
  std::uint64_t table_bytes, data_begin, file_bytes;
};
struct EntryHeader {
  std::uint64_t key_bytes, offset, size;
};
constexpr std::array<char, 16> kMagic{"infernode cache"};
constexpr std::size_t kSummed = offsetof(Header, packing);
constexpr std::size_t kBlock = std::size_t{1} << 20, kAlignment = 64, kPage = 4096;

std::array<char, 64> packing_id() {
  std::array<char, 64> id;
  static_assert(sizeof kPackingId == id.size() + 1);
  std::copy_n(kPackingId, id.size(), id.begin());
  return id;
}

constexpr std::string_view kDamaged = "it is damaged";

[[noreturn]] void fail_damaged() { fail(ErrorCode::Io, std::string(kDamaged)); }

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

/// The first `count` bytes, which `bytes` then lacks.
std::span<const std::byte> take(std::span<const std::byte>& bytes, std::uint64_t count) {
  if (count > bytes.size()) fail_damaged();
  const auto first = bytes.first(count);
  bytes = bytes.subspan(count);
  return first;
}

template <class T>
T take(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, take(bytes, sizeof value).data(), sizeof value);
  return value;
}

/// Tells a file from what it was before and from others: by its bytes, and for a large one by its size, the time of its
/// last change and many samples. The time is that of any change, which no program can set, where the system has it.
std::string stamp_of(const MappedFile& file) {
  constexpr std::size_t kWhole = std::size_t{16} << 20, kSample = 4096, kSamples = 256;
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() <= kWhole) return content_hash(bytes).to_string();
  std::vector<std::byte> facts;
  append(facts, bytes_of(file.identity().size));
  append(facts, bytes_of(file.identity().modified_ns));
  const std::size_t step = (bytes.size() - kSample) / (kSamples - 1);
  for (std::size_t i = 0; i < kSamples; ++i) append(facts, bytes.subspan(i * step, kSample));
  return content_hash(facts).to_string();
}

}  // namespace

/// Compares blocks with their check sums, on all threads that call work(). Lives as long as one of them does.
struct WeightCache::Check {
  std::shared_ptr<const MappedFile> file;
  std::vector<Block> blocks;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> intact = true;
  std::mutex mutex;
  std::condition_variable all_done;
  std::size_t done = 0;

  void work() {
    std::size_t here = 0;
    for (std::size_t i; (i = next++) < blocks.size(); ++here) {
      if (intact && content_hash(blocks[i].bytes) != blocks[i].sum) intact = false;
    }
    const std::lock_guard lock(mutex);
    done += here;
    if (done == blocks.size()) all_done.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    all_done.wait(lock, [this] { return done == blocks.size(); });
  }
};

WeightCache::WeightCache(std::string path, WeightStore& weights, ThreadPool& pool, std::size_t threads,
                         const Logger& logger)
    : path_(std::move(path)), weights_(weights), pool_(pool), threads_(threads), logger_(logger) {
  try {
    std::error_code ignored;
    if (!std::filesystem::exists(to_path(path_), ignored)) return;
    read(weights_.map(path_));
    check_in_background();
  } catch (const Error& error) {
    check_ = nullptr;
    entries_.clear();
    warn(error.message());
  }
}

void WeightCache::warn(std::string_view why) const {
  logger_.write(LogSeverity::Warning, "cache", "packed weights in ", path_, " are not used: ", why);
}

void WeightCache::read(const std::shared_ptr<const MappedFile>& file) {
  std::span<const std::byte> table = file->bytes();
  if (file->size() < sizeof(Header)) fail(ErrorCode::Io, "it is no file of packed weights");
  const auto header = take<Header>(table);
  if (header.magic != kMagic) fail(ErrorCode::Io, "it is no file of packed weights");
  if (header.packing != packing_id())
    return logger_.write(LogSeverity::Info, "cache", path_, " was written by another build");
  if (header.file_bytes != file->size() || header.data_begin > file->size() || header.data_begin < sizeof header ||
      header.sum != content_hash(file->bytes().first(header.data_begin).subspan(kSummed)))
    fail_damaged();
  table = take(table, header.table_bytes);
  const tensor::Buffer all(const_cast<std::byte*>(file->data()), file->size(), file, {}, false);
  check_ = std::make_shared<Check>();
  check_->file = file;
  while (!table.empty()) {
    const auto entry = take<EntryHeader>(table);
    const auto key = take(table, entry.key_bytes);
    if (entry.offset < header.data_begin || entry.offset > file->size() || entry.size > file->size() - entry.offset ||
        entry.offset % kAlignment != 0)
      fail_damaged();
    for (auto rest = file->bytes().subspan(entry.offset, entry.size); !rest.empty();) {
      const auto bytes = take(rest, std::min(rest.size(), kBlock));
      check_->blocks.push_back({bytes, take<ContentHash>(table)});
    }
    entries_.insert_or_assign(std::string(reinterpret_cast<const char*>(key.data()), key.size()),
                              all.slice(entry.offset, entry.size));
  }
}

void WeightCache::check_in_background() {
  if (!check_) return;
  constexpr std::size_t kMost = 4;  // memory gives no more
  try {
    for (std::size_t i = 1; i < std::min(threads_, kMost); ++i) pool_.submit([check = check_] { check->work(); });
  } catch (const Error&) {
    // no thread to be had: finish_check() does the rest
  }
}

void WeightCache::finish_check_locked() {
  if (!check_) return;
  const auto check = std::exchange(check_, nullptr);
  check->work();
  check->wait();
  if (check->intact) return;
  entries_.clear();
  warn(kDamaged);
}

tensor::Buffer WeightCache::pack(const tensor::Tensor& weight, std::string_view format,
                                 FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) {
  std::unique_lock lock(mutex_);
  finish_check_locked();
  std::string key = cat(source_of_locked(weight), " ", weight.to_string(), " ", format);
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    ++hits_;
    given_.insert_or_assign(std::move(key), found->second);
    return found->second;
  }
  ++misses_;
  lock.unlock();
  tensor::Buffer packed = weights_.pack(weight, format, make);
  lock.lock();
  given_.insert_or_assign(std::move(key), packed);
  return packed;
}

std::string WeightCache::source_of_locked(const tensor::Tensor& weight) {
  const auto file = weight.buffer().writable() ? nullptr : weights_.find(weight.raw());
  if (!file) return content_hash(weight.byte_span()).to_string();
  std::string& stamp = stamps_[file];
  if (stamp.empty()) stamp = stamp_of(*file);
  return cat(stamp, "+", static_cast<const std::byte*>(weight.raw()) - file->data());
}

void WeightCache::save() {
  if (hits_ > 0) logger_.write(LogSeverity::Info, "cache", hits_, " packed weights come from ", path_);
  if (misses_ == 0) return;
  std::string temporary;
  try {
    temporary = temporary_beside(path_);
    const std::filesystem::path path = to_path(path_);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    write(temporary);
    std::filesystem::rename(to_path(temporary), path, error);
    if (error) fail(ErrorCode::Io, error.message());
    logger_.write(LogSeverity::Info, "cache", "packed weights were written to ", path_);
  } catch (const Error& error) {
    logger_.write(LogSeverity::Warning, "cache", "packed weights cannot be written to ", path_, ": ", error.message());
    std::error_code ignored;
    if (!temporary.empty()) std::filesystem::remove(to_path(temporary), ignored);
  }
}

void WeightCache::write(const std::string& path) const {
  std::vector<Block> blocks;
  for (const auto& [key, packed] : given_) {
    for (std::span<const std::byte> rest(packed.data(), packed.size()); !rest.empty();)
      blocks.push_back({take(rest, std::min(rest.size(), kBlock)), {}});
  }
  constexpr double kBytesPerNs = 10;
  pool_.parallel_for(blocks.size(), kBlock / kBytesPerNs, threads_,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) blocks[i].sum = content_hash(blocks[i].bytes);
                     });

  Header header{
      .magic = kMagic, .sum = {}, .packing = packing_id(), .table_bytes = 0, .data_begin = 0, .file_bytes = 0};
  for (const auto& [key, packed] : given_)
    header.table_bytes += sizeof(EntryHeader) + key.size() + ceil_div(packed.size(), kBlock) * sizeof(ContentHash);
  header.data_begin = header.file_bytes = align_up(sizeof header + header.table_bytes, kPage);
  std::vector<std::byte> head(sizeof header);
  auto block = blocks.begin();
  for (const auto& [key, packed] : given_) {
    const EntryHeader entry{
        .key_bytes = key.size(), .offset = align_up(header.file_bytes, kAlignment), .size = packed.size()};
    append(head, bytes_of(entry));
    append(head, std::as_bytes(std::span(key)));
    for (std::size_t left = ceil_div(packed.size(), kBlock); left > 0; --left) append(head, bytes_of((block++)->sum));
    header.file_bytes = entry.offset + entry.size;
  }
  head.resize(header.data_begin);
  std::memcpy(head.data(), &header, sizeof header);
  header.sum = content_hash(std::span(head).subspan(kSummed));
  std::memcpy(head.data(), &header, sizeof header);

  errno = 0;
  std::ofstream out(to_path(path), std::ios::binary | std::ios::trunc);
  const auto put = [&](std::span<const std::byte> bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  put(head);
  std::size_t at = head.size();
  for (const auto& [key, packed] : given_) {
    constexpr std::array<std::byte, kAlignment> kZeros{};
    put(std::span(kZeros).first(align_up(at, kAlignment) - at));
    put({packed.data(), packed.size()});
    at = align_up(at, kAlignment) + packed.size();
  }
  out.close();  // not waited for until it is on the disk: check sums tell of what never came there
  if (!out) fail(ErrorCode::Io, errno != 0 ? std::generic_category().message(errno) : "the disk is full");
}

}  // namespace infernode::runtime
