#include "tensor/buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/error.h"
#include "base/immortal.h"
#include "base/limits/memory_watch.h"
#include "base/system.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace infernode::tensor {
namespace {

constexpr size_t kAlignment = 64;
#if defined(__SANITIZE_ADDRESS__)  // which sees what is read or written past a block's end, but not past its pages'
constexpr size_t kBlockUnit = 1, kPagesFrom = kHugePage;
#else
constexpr size_t kBlockUnit = kAlignment;
/// Blocks from here on are pages of their own, so that freeing them shrinks the process.
constexpr size_t kPagesFrom = size_t{1} << 20;
#endif

/// What empty buffers point to: never null, never accessed.
alignas(kAlignment) constexpr std::byte kEmptyBlock[kAlignment]{};

[[noreturn]] void fail_memory(size_t bytes) {
  fail(ErrorCode::OutOfMemory, cat("the system did not give ", bytes, " bytes of memory"));
}

void* map_pages(size_t bytes) {
#if defined(_WIN32)
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
#else
  const auto map = [](size_t size) -> std::byte* {
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
  };
#if defined(MADV_HUGEPAGE)
  if (bytes >= kHugePage) {
    // One huge page more than is needed, of which the ends are given back.
    const size_t size = align_up(bytes, page_size());
    if (std::byte* const all = map(size + kHugePage); all != nullptr) {
      const auto address = reinterpret_cast<uintptr_t>(all);
      const size_t before = align_up(address, kHugePage) - address;
      if (before > 0) munmap(all, before);
      if (before < kHugePage) munmap(all + before + size, kHugePage - before);
      prefer_huge_pages(all + before, size);
      return all + before;
    }
  }
#endif
  return map(bytes);
#endif
}

struct UnmapPages {
  size_t bytes;
  void operator()(void* p) const noexcept {
#if defined(_WIN32)
    VirtualFree(p, 0, MEM_RELEASE);
#else
    // In pieces: other threads that ask for memory wait while one goes back to the system.
    constexpr size_t kPiece = size_t{16} << 20;
    for (size_t at = 0; at < bytes; at += kPiece) munmap(static_cast<std::byte*>(p) + at, std::min(kPiece, bytes - at));
#endif
  }
};

struct FreeAligned {
  void operator()(void* p) const noexcept { ::operator delete (p, std::align_val_t{kAlignment}); }
};

class HostAllocator final : public Allocator {
 public:
  Buffer allocate(size_t bytes) override { return allocate(bytes, true); }
  /// Zeros that are not `written` soon take no memory even where little is left.
  Buffer allocate(size_t bytes, bool written) {
    if (bytes == 0) return Buffer(const_cast<std::byte*>(kEmptyBlock), 0, nullptr);
    if (bytes > static_cast<size_t>(PTRDIFF_MAX) - kPagesFrom) fail_memory(bytes);
    const auto scarce = take_available(bytes);
    void* p = bytes >= kPagesFrom
                  ? map_pages(bytes)
                  : ::operator new (align_up(bytes, kBlockUnit), std::align_val_t{kAlignment}, std::nothrow);
    if (p == nullptr) fail_memory(bytes);
    // The constructor of shared_ptr calls the deleter where it cannot allocate its count.
    auto owner =
        bytes >= kPagesFrom ? std::shared_ptr<void>(p, UnmapPages{bytes}) : std::shared_ptr<void>(p, FreeAligned{});
    if (scarce && written && bytes >= kPagesFrom) touch_zeroed_pages(p, bytes);
    return Buffer(p, bytes, std::move(owner));
  }
  Device device() const override { return {}; }
};

}  // namespace

std::string DeviceKind::to_string() const {
  std::string name;
  for (std::uint64_t rest = letters_; rest != 0; rest >>= 8) name += static_cast<char>(rest & 0xff);
  return name;
}

std::string Device::to_string() const { return is_host() ? kind.to_string() : cat(kind.to_string(), ":", id); }

Buffer::Buffer(void* data, size_t bytes, std::shared_ptr<const void> owner, Device device, bool writable)
    : data_(static_cast<std::byte*>(data)),
      bytes_(bytes),
      owner_(std::move(owner)),
      device_(device),
      writable_(writable) {}

bool Buffer::held_alone() const {
  if (owner_.use_count() != 1) return false;
  // Reading a count orders nothing, counting up and down does.
  std::shared_ptr<const void>(owner_).reset();
  return true;
}

Buffer Buffer::slice(size_t offset, size_t bytes) const {
  INFERNODE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset, ErrorCode::Internal, "slice [", offset, ", +", bytes,
                  ") of a buffer of ", bytes_, " bytes");
  return Buffer(data_ + offset, bytes, owner_, device_, writable_);
}

namespace {
HostAllocator& pages() {
  static Immortal<HostAllocator> allocator;
  return *allocator;
}
}  // namespace

Allocator& host_allocator() { return pages(); }

void grow_host_buffer(Buffer& block, size_t bytes) {
  if (block.size() >= bytes) return;
  const size_t slack = block ? bytes / 8 : 0;
  block = {};
  block = host_allocator().allocate(checked_add(bytes, slack));
}

Buffer zeroed_host_buffer(size_t bytes) {
  Buffer out = pages().allocate(bytes, false);
  if (bytes > 0 && bytes < kPagesFrom) std::memset(out.data(), 0, bytes);
  return out;
}

}  // namespace infernode::tensor
