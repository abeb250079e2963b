#pragma once

#include "passes/pipeline.h"
#include "runtime/plan/plan_environment.h"
#include "session/session_options.h"

namespace infernode::session {

/// What the session's config entries say about optimizers. Throws InvalidArgument for values that make no sense.
void configure(passes::PassOptions& to, const SessionOptions& options);

/// For tests: "1" looks for contradictions, "complete" also for what substitution does not know.
runtime::ShapeCheck shape_check(const SessionOptions& options);

}  // namespace infernode::session
