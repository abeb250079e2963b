#pragma once

#include <span>

#include "base/log.h"
#include "session/session.h"

namespace infernode::session {

/// Checks one feed against what the model declares: kind, dtype, rank, known dims; the only place with that rule. One
/// element satisfies a declared scalar; dims that share a symbol are not compared. Throws InvalidArgument or
/// ShapeMismatch with the input's name, what was expected and what came.
void check_feed(const ValueMetadata& declared, const tensor::Value& value);

/// Checks the type of a tensor that an output shall be written into; its shape is known only when the run is over.
/// Throws InvalidArgument with the output's name, what was expected and what came.
void check_target(const ValueMetadata& declared, const tensor::Tensor& target);

/// Has an error of a run that may come of what was fed (a shape, a value, an amount of memory) say what that was:
/// names, types and dims of the first feeds, cut short. By index into Session::feeds(), an empty Value where not fed.
void name_feeds(Error& error, std::span<const ValueMetadata> declared, std::span<const tensor::Value> feeds);

}  // namespace infernode::session
