#pragma once

namespace infernode {

/// Has the system set up what this thread needs of thread-local data, which it may do at the first touch, where glibc
/// ends the process for want of memory: throwing touches some. Threads of our own have done so.
void touch_thread_data() noexcept;

}  // namespace infernode
