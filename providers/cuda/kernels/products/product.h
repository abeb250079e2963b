#pragma once

#include <optional>

#include "providers/cuda/kernels/epilogue.h"
#include "providers/cuda/kernels/params/gemm.h"
#include "providers/cuda/kernels/weights.h"

// What matrix products and convolutions come down to, and the kernels that compute it.
namespace infernode::cuda {

/// Rows that are contiguous along K.
struct Operand {
  DevicePtr address = 0;
  Element type = Element::f16;
  std::int64_t row = 0, batch[2] = {0, 0};  ///< elements; a batch part that repeats has stride 0
  int pieces = 1;                           ///< planes of bfloat16 (WeightLayout)
  std::int64_t plane = 0;
};

/// Rows of A are normalized before they are multiplied: (x - mean) / deviation * scale + bias, or without mean.
struct RowNorm {
  DevicePtr scale = 0, bias = 0;  ///< constants of A's type, [k]; scale 0: rows stay as they are; bias 0: none
  float epsilon = 0;
  bool no_mean = false;
  float largest = 1;  ///< magnitude among the scales
  explicit operator bool() const { return scale != 0; }
};

/// m rows of A by n rows of B. A convolution's A is an image whose output pixels are the rows.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;  ///< k: of a row of B
  std::int64_t batch[2] = {1, 1};
  Operand a, b;
  bool b_constant = true;  ///< B may be fetched before the kernel before has ended
  ConvParams conv{};       ///< taps 0: A is a matrix
  std::int64_t images = 1, groups = 1;
  Precision precision = Precision::highest;
  RowNorm norm;  ///< product_choices is empty where no kernel can do that
  Epilogue epilogue;
  std::int32_t column_batch = 0;
};

enum class ProductKernel : std::uint32_t { block, gemv, mma, simt };

/// A kernel, its tile and how K is shared; which of them is fastest can be measured and kept.
struct ProductChoice {
  ProductKernel kernel = ProductKernel::simt;
  int bm = 64, bn = 64, kw = 1;  ///< tile; warpgroups (gemv: warps) that share K
  int stages = 1, split = 1;
  float microseconds = 0;  ///< as the model expects
};

/// All that can compute the product, the fastest by the model first. Empty only where rows are to be normalized.
std::vector<ProductChoice> product_choices(const Target& target, const Product& product);

/// Bytes of scratch memory that the choice needs.
std::size_t product_workspace(const Product& product, const ProductChoice& choice);

/// Appends the launches.
void plan_product(const Target& target, const Product& product, const ProductChoice& choice, DevicePtr workspace,
                  std::vector<Launch>& launches);

/// What the model expects of one choice, us (product_model.cpp).
float product_microseconds(const Target& target, const Product& product, const ProductChoice& choice);

/// Whether a block's sums go from registers to the output: ends_in_registers, whole words, whole K.
bool finishes_in_registers(const Product& product, const ProductChoice& choice);

/// Elements of K in a step of the tensor-core kernels; steps of the whole product.
std::int64_t product_step(const Product& product);
std::int64_t product_steps(const Product& product);

/// Dynamic shared memory of a block.
std::size_t product_shared(const Product& product, const ProductChoice& choice);

}  // namespace infernode::cuda
