#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "onnx/reader.h"

namespace infernode::onnx {

/// Where one tensor's external data is.
struct ExternalLocation {
  std::string location;
  std::uint64_t offset = 0;
};

/// A run of bytes with what holds it and the file it is mapped from, if any.
struct SourceBytes {
  const char* data = nullptr;
  std::size_t size = 0;
  tensor::Buffer holder;  ///< contains the run
  const MappedFile* file = nullptr;
};

/// Files of external data: mapped once each, and never outside the model's folder.
class ExternalData {
 public:
  /// `model_path` is "" for a model in memory. The options outlive this.
  ExternalData(const std::string& model_path, const ReadOptions& options);

  /// `size` bytes for the initializer `name`. Throws Io, InvalidModel or InvalidArgument naming it.
  SourceBytes fetch(const std::string& name, const ExternalLocation& where, std::size_t size);
  /// Identities of the files used so far.
  std::vector<FileIdentity> identities() const;

 private:
  const std::shared_ptr<const MappedFile>& open(const std::string& name, const std::string& location);
  std::string checked_path(const std::string& name, const std::string& location) const;

  std::string model_path_, folder_;
  const ReadOptions& options_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace infernode::onnx
