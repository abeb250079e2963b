#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace infernode::onnx {

/// What bytes that are no ONNX model look like, and what to do: "It looks like an HTML page: ...". "" where nothing is
/// recognised.
std::string describe_foreign_bytes(std::span<const std::byte> bytes);

}  // namespace infernode::onnx
