#pragma once

// In place of the header of this name: kernels run one after the other here.
namespace infernode::cuda {

inline void wait_for_previous() {}
inline void let_next_start() {}

}  // namespace infernode::cuda
