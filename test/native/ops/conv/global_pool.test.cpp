#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("Global poolings reduce each plane to one element") {
  const Tensor x = f32({1, 2, 1, 2}, {-3, 4, 5, 12});
  check_op("(float[N,2,H,W] X) => (float[N,2,1,1] Y) { Y = GlobalMaxPool(X) }", 1, {x}, {f32({1, 2, 1, 1}, {4, 12})});
  check_op("(float[N,2,H,W] X) => (float[N,2,1,1] Y) { Y = GlobalAveragePool(X) }", 1, {x},
           {f32({1, 2, 1, 1}, {0.5, 8.5})});
  check_op("(float[N,2,H,W] X) => (float[N,2,1,1] Y) { Y = GlobalLpPool(X) }", 2, {x}, {f32({1, 2, 1, 1}, {5, 13})});
  check_op("(float[N,2,H,W] X) => (float[N,2,1,1] Y) { Y = GlobalLpPool<p=1.0>(X) }", 1, {x},
           {f32({1, 2, 1, 1}, {7, 17})});
}

TEST_CASE("Global poolings agree in all floating types") {
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"}) {
    for (const Shape& shape : {Shape{2, 3, 7, 9}, Shape{2, 5, 33}, Shape{1, 2, 3, 4, 5}}) {
      check_float_types(cat("(X) => (Y) { Y = ", op, "(X) }"), 22, {noise(shape, 3)});
    }
  }
  check_op_fails("(X) => (Y) { Y = GlobalMaxPool(X) }", 1, {noise({3})}, ErrorCode::ShapeMismatch, "[N,C,...]");
}

}  // namespace
}  // namespace infernode::test
