#pragma once

namespace infernode::kernel {

/// A device's queue: what a run puts into it is done in that order, and may be done late. One thread at a time uses it.
class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Waits until everything put into it is done. Throws Error for what went wrong on the device since the last call;
  /// nothing is left in it then either.
  virtual void synchronize() = 0;
};

}  // namespace infernode::kernel
