#pragma once

#include "base/error.h"
#include "kernel/run_context.h"

namespace infernode::runtime {

/// Ends a brief run (RunContext::brief) where it may not be brief, as a run is ended that is cancelled: its caller begins
/// it anew where it may take its time.
[[noreturn]] inline void give_up() { fail(ErrorCode::Aborted, "the run is not brief"); }

}  // namespace infernode::runtime
