#pragma once

#include <span>

#include "base/log.h"
#include "session/session.h"

namespace infernode::session {

/// Checks one feed against what the model declares: kind, dtype, rank, known dims. One element satisfies a declared
/// scalar. Throws InvalidArgument or ShapeMismatch with the input's name, what was expected and what came.
void check_feed(const ValueMetadata& declared, const tensor::Value& value);

/// "float32[batch,3,224,224]": a declared type for messages.
std::string declared_text(const graph::ValueType& type);

}  // namespace infernode::session
