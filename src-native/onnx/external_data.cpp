#include "onnx/external_data.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/path.h"
#include "onnx/diagnose.h"

namespace infernode::onnx {
namespace {

namespace fs = std::filesystem;

/// "./a//b" and "a/b" are one name.
std::string normal_location(std::string_view location) {
  std::string out;
  for (size_t i = 0; i <= location.size();) {
    const size_t end = std::min(location.find('/', i), location.size());
    const std::string_view part = location.substr(i, end - i);
    if (!part.empty() && part != ".") out += (out.empty() ? "" : "/") + std::string(part);
    i = end + 1;
  }
  return out;
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

/// Names for a message, the first ten: ". What there is: 'a', 'b'".
std::string there_is(std::string_view what, std::vector<std::string> names) {
  if (names.empty()) return {};
  constexpr size_t kMost = 10;
  std::sort(names.begin(), names.end());
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += cat(i == 0 ? "" : ", ", "'", names[i], "'");
  if (names.size() > kMost) text += cat(" and ", names.size() - kMost, " more");
  return cat(" ", what, " ", text, ".");
}

/// The files beside one that is not there.
std::string files_beside(const fs::path& missing) {
  constexpr size_t kMostLookedAt = 1000;
  std::vector<std::string> names;
  std::error_code error;
  size_t looked_at = 0;
  for (fs::directory_iterator at(missing.parent_path(), error), end; !error && at != end && looked_at < kMostLookedAt;
       at.increment(error), ++looked_at) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) names.push_back(to_utf8(at->path().filename()));
  }
  return there_is("The folder holds", std::move(names));
}

tensor::Buffer whole(const std::shared_ptr<const MappedFile>& file) {
  return tensor::Buffer(const_cast<std::byte*>(file->data()), file->size(), file, {}, false);
}

[[noreturn]] void fail_location(ErrorCode code, const std::string& name, const std::string& location,
                                const std::string& what) {
  ErrorContext context;
  context.path = location;
  context.input = name;
  fail(code, cat("External data path validation failed for initializer: ", name, ". ", what), std::move(context));
}

}  // namespace

ExternalData::ExternalData(const std::string& model_path, const ReadOptions& options)
    : model_path_(model_path), options_(options) {
  folder_ = options.external_folder;
  if (folder_.empty() && !model_path.empty()) folder_ = to_utf8(to_path(model_path).parent_path());
  if (folder_.empty()) folder_ = ".";
}

SourceBytes ExternalData::fetch(const std::string& name, const ExternalLocation& where, size_t size) {
  if (!options_.external_data.empty()) {
    const std::string wanted = normal_location(where.location);
    for (const auto& [location, data] : options_.external_data) {
      if (normal_location(location) != wanted) continue;
      if (where.offset > data.size() || size > data.size() - where.offset) {
        ErrorContext context;
        context.path = where.location;
        context.input = name;
        fail(ErrorCode::InvalidArgument,
             cat("External initializer: ", name, " offset: ", where.offset, " size to read: ", size,
                 " given file_length: ", data.size(), " are out of bounds or can not be read in full."),
             std::move(context));
      }
      return {reinterpret_cast<const char*>(data.data()) + where.offset, size, data, nullptr};
    }
    ErrorContext context;
    context.path = where.location;
    context.input = name;
    std::vector<std::string> given;
    for (const auto& [location, data] : options_.external_data) given.push_back(location);
    fail(ErrorCode::InvalidArgument,
         cat("External file: ", where.location, " not found from the table user provided (needed by initializer '",
             name, "').", there_is("The paths in externalData are", std::move(given))),
         std::move(context));
  }
  const auto& file = open(name, where.location);
  if (where.offset > file->size() || size > file->size() - where.offset) {
    ErrorContext context;
    context.path = file->path();
    context.input = name;
    const std::string guess = file->size() < 1024 ? describe_foreign_bytes(file->bytes()) : std::string();
    fail(ErrorCode::InvalidModel,
         cat("External initializer: ", name, " offset: ", where.offset, " size to read: ", size,
             " given file_length: ", file->size(), " are out of bounds or can not be read in full: the file ",
             file->path(), " is too short. ", guess.empty() ? "Fetch or export it again." : guess),
         std::move(context));
  }
  return {reinterpret_cast<const char*>(file->data()) + where.offset, size, whole(file), file.get()};
}

const std::shared_ptr<const MappedFile>& ExternalData::open(const std::string& name, const std::string& location) {
  auto& file = files_[location];
  if (!file) {
    const std::string path = checked_path(name, location);
    try {
      file = options_.map ? options_.map(path) : std::make_shared<const MappedFile>(path);
    } catch (const Error& e) {
      fail_location(ErrorCode::Io, name, location, e.message());
    }
  }
  return file;
}

std::string ExternalData::checked_path(const std::string& name, const std::string& location) const {
  const auto escapes = [&](std::string_view how) {
    fail_location(ErrorCode::InvalidModel, name, location,
                  cat("External data path: ", location, " escapes model directory: ", folder_, " (", how, ")"));
  };
  if (location.empty()) fail_location(ErrorCode::InvalidModel, name, location, "The location is empty.");
  if (location.find('\0') != std::string::npos)
    fail_location(ErrorCode::InvalidModel, name, location, "The location contains a null character.");
  const fs::path relative = to_path(location);
  if (relative.is_absolute() || relative.has_root_path() || location[0] == '\\' ||
      (location.size() > 1 && location[1] == ':'))
    escapes("it is absolute");
  int depth = 0;
  for (const fs::path& part : relative) {
    if (part == "..")
      --depth;
    else if (part != "." && !part.empty())
      ++depth;
    if (depth < 0) escapes("it leads out of the folder");
  }
  std::error_code error;
  const fs::path full = to_path(to_utf8(to_path(folder_) / relative));
  const fs::path target = fs::canonical(full, error);
  if (error) {
    fail_location(ErrorCode::Io, name, location,
                  cat("External data path does not exist: ", to_utf8(full), " (", error.message(),
                      "). Put the file next to the model, or pass it in externalData.", files_beside(full)));
  }
  // A pipe would block whoever opens it.
  if (!fs::is_regular_file(target, error))
    fail_location(ErrorCode::Io, name, location, cat(to_utf8(full), " is not a regular file."));
  const fs::path folder = fs::canonical(to_path(folder_), error);
  if (!error && is_inside(target, folder)) return to_utf8(target);
  // Caches of downloads link both the model and its data to one folder of blobs.
  if (!model_path_.empty()) {
    const fs::path model = fs::canonical(to_path(model_path_), error);
    if (!error && is_inside(target, model.parent_path())) return to_utf8(target);
  }
  escapes("a symbolic link leads out of the folder");
  return {};
}

std::vector<FileIdentity> ExternalData::identities() const {
  std::vector<FileIdentity> out;
  for (const auto& [location, file] : files_)
    if (file) out.push_back(file->identity());
  return out;
}

}  // namespace infernode::onnx
