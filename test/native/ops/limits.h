#pragma once

#include "ops/op_test.h"

namespace infernode::test {

/// How often a run on one thread looks whether it is to end; `cancelled`: in one that was to end before it began, which
/// must be Aborted.
std::size_t looks_of(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                     bool cancelled = false);

/// A run that may hold so many bytes beside what its allocator gives ends with OutOfMemory.
void check_beyond_budget(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                         std::size_t bytes);
/// The same for one that may hold so many bytes with what its allocator gives, its outputs among them.
void check_beyond_limit(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs, std::size_t bytes);

}  // namespace infernode::test
