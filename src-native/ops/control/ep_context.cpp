#include "base/error.h"
#include "kernel/op_registrar.h"

namespace infernode::ops {
namespace {

/// com.microsoft's EPContext: a part of a graph as one of onnxruntime's execution providers compiled it. Only a
/// provider that claims the node can run it.
class EpContext final : public kernel::Kernel {
 public:
  explicit EpContext(kernel::KernelInfo& info) {
    const std::string source = info.attributes().get_string("source", "");
    const std::string part = info.attributes().get_string("partition_name", "");
    fail(ErrorCode::UnsupportedOperator,
         cat("EPContext holds what an execution provider of onnxruntime compiled",
             source.empty() ? std::string(", without its name") : cat(", '", source, "'"),
             part.empty() ? std::string() : cat(", of partition '", part, "'"),
             "; no provider here runs it: take the model that it was compiled from"));
  }
  void run(kernel::KernelContext&) const override {}
};

}  // namespace

void register_ep_context(kernel::OpRegistrar& r) {
  r.op("EPContext", "com.microsoft")
      .version(1,
               "inputs:T** -> outputs:T**; T = bool|int8|int16|int32|int64|uint8|uint16|uint32|uint64|float16|float|"
               "double|bfloat16")
      .infer([](kernel::InferContext&) {})
      .kernel<EpContext>();
}

}  // namespace infernode::ops
