#include "onnx/structure_budget.h"

#include "base/error.h"

namespace infernode::onnx {

void StructureBudget::refuse() const {
  fail(ErrorCode::InvalidModel, cat("the model's nodes, values, properties and attributes would take more than ",
                                    bytes_, " bytes, and ", kTimesFile,
                                    " times the file, before they are checked; more is allowed by extra: { session: { "
                                    "max_structure_bytes: '...' } }"));
}

}  // namespace infernode::onnx
