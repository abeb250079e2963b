#include "onnx/diagnose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace infernode::onnx {
namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t offset;
  std::string_view bytes;
  std::string_view what;  ///< looks like ...
  std::string_view advice;
};

constexpr std::string_view kUnpack = "unpack it and load the .onnx file inside";
constexpr std::string_view kExportTorch = "export the model with torch.onnx.export first";

constexpr Signature kSignatures[] = {
    {0, "\x1f\x8b"sv, "a gzip archive", kUnpack},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "an xz archive", kUnpack},
    {0, "BZh"sv, "a bzip2 archive", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "a zstd archive", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", kUnpack},
    {257, "ustar"sv, "a tar archive", kUnpack},
    {0, "GGUF"sv, "a GGUF model", "load an ONNX export of the model instead"},
    {4, "TFL3"sv, "a TensorFlow Lite model", "convert it with tf2onnx"},
    {4, "ORTM"sv, "a model in ORT format", "leave session.load_model_format unset"},
    {0, "\x89HDF\r\n"sv, "an HDF5 file (Keras weights)", "convert the model with tf2onnx"},
    {0, "\x80\x02"sv, "a Python pickle (PyTorch checkpoint)", kExportTorch},
    {0, "\x80\x04"sv, "a Python pickle (PyTorch checkpoint)", kExportTorch},
    {0, "\x93NUMPY"sv, "a NumPy array", "load the model that it belongs to"},
    {0,
     "\x7f"
     "ELF"sv,
     "an executable", "check the path"},
    {0, "MZ"sv, "an executable", "check the path"},
    {0, "\x89PNG"sv, "a PNG picture", "check the path"},
    {0, "\xff\xd8\xff"sv, "a JPEG picture", "check the path"},
    {0, "%PDF"sv, "a PDF document", "check the path"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with_ignoring_case(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && std::ranges::equal(text.substr(0, start.size()), start, {}, lower, lower);
}

/// Whether these are characters of UTF-8 without control codes; the last one may be cut.
bool is_text(std::string_view head) {
  std::size_t following = 0;
  return std::ranges::all_of(head, [&following](char c) {
    const auto u = static_cast<unsigned char>(c);
    if (following > 0) return --following, (u & 0xC0) == 0x80;
    if (u < 0x80) return u >= 0x20 || c == '\n' || c == '\r' || c == '\t';
    following = u >= 0xF0 ? 3 : u >= 0xE0 ? 2 : 1;
    return u >= 0xC2 && u <= 0xF4;
  });
}

std::string sentence(std::string_view what, std::string_view advice) {
  return cat("It looks like ", what, ": ", advice, ".");
}

}  // namespace

std::string describe_foreign_bytes(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.empty()) return "It is empty: the download or export did not finish.";
  const std::string_view head = all.substr(0, 4096);

  if (head.starts_with("version https://git-lfs")) {
    const size_t at = head.find("\nsize ");
    const size_t end = at == std::string_view::npos ? at : head.find('\n', at + 1);
    const std::string size =
        end == std::string_view::npos ? "" : cat(" to a file of ", head.substr(at + 6, end - at - 6), " bytes");
    return sentence(cat("a Git LFS pointer", size), "run 'git lfs pull' to fetch the file itself");
  }
  if (head.starts_with("PK\x03\x04"sv) || head.starts_with("PK\x05\x06"sv)) {
    if (head.find("data.pkl") != std::string_view::npos)
      return sentence("a PyTorch checkpoint (a zip archive)", kExportTorch);
    return sentence("a zip archive", kUnpack);
  }
  for (const Signature& s : kSignatures)
    if (all.size() > s.offset && all.substr(s.offset).starts_with(s.bytes)) return sentence(s.what, s.advice);
  if (all.size() > 10 && all[8] == '{' && all[9] == '"') {
    uint64_t header;
    std::memcpy(&header, all.data(), sizeof header);
    if (header < all.size())
      return sentence("a safetensors file", "it holds weights only; load an ONNX export of the model");
  }
  std::string_view text = head;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  if (starts_with_ignoring_case(text, "<!doctype html") || starts_with_ignoring_case(text, "<html") ||
      starts_with_ignoring_case(text, "<head"))
    return sentence(
        "an HTML page",
        "the download gave a web page, perhaps an error or a login, instead of the file; check its address");
  if (text.starts_with("<?xml") || text.starts_with("<"))
    return sentence("an XML document",
                    "the download gave an error message, or this is another format; check its address");
  if (is_text(head)) {
    if (text.starts_with("{") || text.starts_with("["))
      return sentence("JSON text", "it may be a configuration or an error message; load the .onnx file beside it");
    return sentence("plain text", "check the path");
  }
  if (std::ranges::all_of(head, [](char c) { return c == '\0'; }))
    return sentence("zeros", "the file was reserved but never written; fetch it again");
  // First field of a ModelProto: ir_version (or a string after it). A GraphDef or a bare GraphProto begins with a
  // nested message.
  if (head[0] == '\x0a')
    return sentence("another protobuf message (a TensorFlow graph, or a bare ONNX graph)",
                    "an ONNX model is a ModelProto");
  return "";
}

}  // namespace infernode::onnx
