#include "providers/cuda/kernels/epilogue.h"

namespace infernode::cuda {

namespace {

/// Whether every row begins at a multiple of 16 bytes.
bool vector_rows(DevicePtr base, Element type, std::int64_t row, const std::int64_t (&batch)[2]) {
  const std::int64_t size = element_size(type);
  return base % 16 == 0 && row * size % 16 == 0 && batch[0] * size % 16 == 0 && batch[1] * size % 16 == 0;
}

}  // namespace

EpilogueParams epilogue_params(const Epilogue& e, std::int32_t column_batch) {
  EpilogueParams p{};
  p.out = e.out;
  p.residual = e.residual;
  p.bias = e.bias;
  p.scale = e.scale;
  p.out_row = e.out_row;
  p.residual_row = e.residual_row;
  for (int i = 0; i < 2; i++) {
    p.out_batch[i] = e.out_batch[i];
    p.residual_batch[i] = e.residual_batch[i];
  }
  p.column_batch = column_batch;
  p.out_type = e.out_type;
  p.residual_type = e.residual_type;
  p.activation = e.activation;
  if (vector_rows(e.out, e.out_type, e.out_row, e.out_batch)) p.flags |= kEpilogueOutVector;
  if (vector_rows(e.residual, e.residual_type, e.residual_row, e.residual_batch)) p.flags |= kEpilogueResidualVector;
  if (e.residual_last) p.flags |= kEpilogueResidualLast;
  if (e.columns_constant) p.flags |= kEpilogueColumnsConstant;
  if (e.bias % 16 == 0 && e.scale % 16 == 0 && column_batch % 4 == 0) p.flags |= kEpilogueColumnsVector;
  p.alpha = e.alpha;
  p.a = e.a;
  p.b = e.b;
  return p;
}

bool is_whole(const EpilogueParams& e, Element type) {
  const auto has = [&](std::uint32_t flag) { return (e.flags & flag) != 0; };
  return e.out_type == type && has(kEpilogueOutVector) && e.activation <= kLastCommonActivation &&
         (e.residual == 0 || (e.residual_type == type && has(kEpilogueResidualVector))) &&
         ((e.bias == 0 && e.scale == 0) || has(kEpilogueColumnsVector));
}

}  // namespace infernode::cuda
