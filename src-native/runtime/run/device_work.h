#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "provider/provider.h"
#include "runtime/memory/frame_allocator.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// What the run of a frame has on devices: for each provider a stream, host memory for copies, and the values that work
/// in the stream still reads or writes. Streams and memory are kept from run to run.
class DeviceWork {
 public:
  explicit DeviceWork(std::size_t keep_bytes) : keep_bytes_(keep_bytes) {}

  /// Makes what is not there yet of these providers'. Before the run's first step.
  void prepare(std::span<provider::Provider* const> providers);
  /// Host memory whose copies to and from the provider's device are fast.
  tensor::Allocator& staging(const provider::Provider& provider) { return of(provider).staging; }
  kernel::Stream& stream(const provider::Provider& provider) { return *of(provider).stream; }

  /// Streams serve one thread at a time: whoever calls what follows, or runs a kernel with a stream, has the turn.
  std::unique_lock<std::mutex> turn() { return std::unique_lock(mutex_); }
  /// Waits for each stream but `own` whose work gives one of these values on the host. False where there is none.
  bool wait_for(std::span<const graph::ValueId> values, const kernel::Stream* own);
  /// The stream got work that reads and writes these: they live until it is done.
  void keep(const kernel::Stream& stream, std::span<const tensor::Value* const> inputs,
            std::span<const tensor::Value> outputs) noexcept;
  /// The stream got work that gives these values on the host.
  void give(const kernel::Stream& stream, std::span<const graph::ValueId> values);

  /// Waits for all streams; false where they are empty. Throws what went wrong first, with all of them empty.
  bool synchronize();
  /// The same for a run that has failed already.
  void abandon() noexcept;

  std::size_t kept_bytes() const;
  /// Returns host memory that no value uses to the system.
  void trim();

 private:
  struct Device {
    Device(provider::Provider& p, std::size_t keep)
        : provider(&p), stream(p.make_stream()), staging(keep, p.host_allocator()) {}
    const provider::Provider* provider;
    std::unique_ptr<kernel::Stream> stream;
    FrameAllocator staging;
    std::vector<tensor::Value> in_use;
    std::vector<graph::ValueId> given;  ///< on the host, once the stream is synchronized
    bool busy = false;

    bool synchronize();
  };
  Device& of(const provider::Provider& provider);
  Device& of(const kernel::Stream& stream);

  std::size_t keep_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace infernode::runtime
