#include "kernel/op_registrar.h"
#include "ops/text/regex.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using tensor::Tensor;

class RegexFullMatch final : public kernel::Kernel {
 public:
  explicit RegexFullMatch(kernel::KernelInfo& info) : regex_(info.attributes().get_string("pattern", "")) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    bool* out = ctx.output(0, tensor::DType::Bool, in.shape()).mutable_data<bool>();
    const std::string* x = in.data<std::string>();
    const auto look = [&] { ctx.run().check(); };
    ctx.parallel_for(static_cast<std::size_t>(in.numel()), regex_.has_table() ? 100 : 2000,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) out[i] = regex_.full_match(x[i], look);
                     });
  }

 private:
  text::Regex regex_;
};

void infer_regex_full_match(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Bool);
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

}  // namespace

void register_regex_full_match(kernel::OpRegistrar& r) {
  r.op("RegexFullMatch")
      .version(20, "X:T1 -> Y:T2; T1 = string, T2 = bool")
      .infer(infer_regex_full_match)
      .kernel<RegexFullMatch>();
}

}  // namespace infernode::ops
