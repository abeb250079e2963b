#pragma once

#include <algorithm>

#include "session/option_fields.h"

namespace infernode::session {

/// How many of a pool's threads a session uses.
inline std::size_t threads_of(const SessionOptions& options, std::size_t pool) {
  return options.intra_op_threads == 0 ? pool : std::min(options.intra_op_threads, pool);
}

}  // namespace infernode::session
