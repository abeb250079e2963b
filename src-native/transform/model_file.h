#pragma once

#include <string>

#include "transform/transformation.h"

namespace infernode::transform {

/// A model to change, and where the result goes.
struct FileRequest {
  std::string path;      ///< of the model; "": it is `bytes`
  tensor::Buffer bytes;  ///< of the model
  std::string output;
  std::string transformation;
  Settings settings;
};

/// Reads a model, changes it and writes it to another file, with large tensors in `<output>.data` where the setting
/// useExternalDataFormat says so or the model would take over 2 GB. Files are written beside and renamed; the model's
/// own are never touched: InvalidArgument where the output would replace one of them. Throws what reading, the
/// transformation and writing throw.
Report transform_file(const FileRequest& request, const Context& context);

}  // namespace infernode::transform
