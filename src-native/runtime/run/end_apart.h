#pragma once

#include <span>
#include <utility>

#include "base/thread_pool.h"
#include "runtime/memory/frame_allocator.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// Whether `values` hold so many strings or tensors of their own, which nobody shares, that freeing them takes longer
/// than a run that is ended may take to answer. `pages`: or a tensor of kSlowBytes.
bool are_freed_slowly(std::span<const tensor::Value> values, bool pages);

/// Frees what `thing` holds on a thread of the pool, so that who waits for the caller's answer does not wait for that;
/// here where there is no thread or memory for it. It must need nothing that may be gone by then.
template <class T>
void end_apart(ThreadPool& pool, T thing) noexcept {
  try {
    pool.submit([ended = std::move(thing)] {});
  } catch (...) {  // it has been freed
  }
}

}  // namespace infernode::runtime
