// SparseAttention and PagedAttention: answers of onnxruntime and of their definition (test/fixtures/contrib-paged.txt,
// written by test/generators/contrib/paged.py).

#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const EdgeCases edges(R"(
  SparseAttention | no prompts | 21 | 1e-05
  y0, y1, y2 = com.microsoft.SparseAttention<num_heads = 1, kv_num_heads = 1, sparse_block_size = 16>(x0, x0, x0, x1, x1, x2, x3, x4, x5)
  float[0,1,2] x0 = {}, float[0,1,4,2] x1 = {}, int32[1,2] x2 = {0, 1}, int32[1,1] x3 = {0}, int32 x4 = {1}, int32[0] x5 = {}
  float[0,1,2] y0 = {}, float[0,1,4,2] y1 = {}, float[0,1,4,2] y2 = {}

  SparseAttention | rank 0 | 21 | 1e-05
  y0, y1, y2 = com.microsoft.SparseAttention<num_heads = 1, kv_num_heads = 1, sparse_block_size = 16>(x0, x0, x0, x1, x1, x2, x3, x4, x5)
  float x0 = {1}, float[1,1,4,2] x1 = {1, 2, 3, 4, 5, 6, 7, 8}, int32[1,2] x2 = {0, 1}, int32[1,1] x3 = {0}, int32 x4 = {1}, int32[1] x5 = {1}
  refused

  PagedAttention | no tokens | 21 | 1e-05
  y0, y1, y2 = com.microsoft.PagedAttention<num_heads = 1, kv_num_heads = 1>(x0, x0, x0, x1, x1, x2, x3, x4)
  float[0,2] x0 = {}, float[1,2,1,2] x1 = {1, 2, 3, 4}, int32[2] x2 = {0, 0}, int32[1] x3 = {1}, int32[1,1] x4 = {0}
  float[0,2] y0 = {}, float[1,2,1,2] y1 = {1, 2, 3, 4}, float[1,2,1,2] y2 = {1, 2, 3, 4}

  PagedAttention | rank 0 | 21 | 1e-05
  y0 = com.microsoft.PagedAttention<num_heads = 1, kv_num_heads = 1>(x0, x0, x0, x1, x1, x2, x3, x4)
  float x0 = {1}, float[1,2,1,2] x1 = {1, 2, 3, 4}, int32[2] x2 = {0, 1}, int32[1] x3 = {0}, int32[1,1] x4 = {0}
  refused
)");

const Value kNone;

TEST_CASE("SparseAttention and PagedAttention answer as onnxruntime and their definition do") {
  check_cases("contrib-paged.txt", 15);
}

TEST_CASE("SparseAttention refuses blocks and lengths that do not fit") {
  const char* plain = "num_heads = 2, kv_num_heads = 1, sparse_block_size = 16";
  const Tensor q = noise({1, 2, 4}), k = noise({1, 2, 2}), past = noise({1, 1, 20, 2}), total = i32({}, {3}),
               length = i32({1}, {3});
  const Tensor rows = i32({1, 3}, {0, 1, 3}), columns = i32({1, 3}, {0, 0, 1});
  const auto call = [&](const char* attributes, std::vector<Value> inputs, ErrorCode code, const char* what) {
    refuses("SparseAttention", attributes, inputs, code, what);
  };
  const auto shape = ErrorCode::ShapeMismatch, bad = ErrorCode::InvalidArgument, model = ErrorCode::InvalidModel;
  call("num_heads = 2, kv_num_heads = 1, sparse_block_size = 8", {q, k, k, past, past, rows, columns, total, length},
       model, "sparse_block_size");
  call("num_heads = 3, kv_num_heads = 2, sparse_block_size = 16", {q, k, k, past, past, rows, columns, total, length},
       model, "do not share");
  call(plain, {noise({1, 2, 5}), k, k, past, past, rows, columns, total, length}, shape, "query is");
  call(plain, {q, k, noise({1, 2, 4}), past, past, rows, columns, total, length}, shape, "input 2");
  call(plain, {q, k, k, past, noise({1, 1, 19, 2}), rows, columns, total, length}, shape, "input 4");
  call(plain, {q, k, k, past, past, i32({1, 2}, {0, 1}), columns, total, length}, shape, "1 blocks");
  call(plain, {q, k, k, past, past, i32({3, 1}, {0, 0, 0}), i32({3, 1}, {0, 0, 0}), total, length}, shape,
       "block indices");
  call(plain, {q, k, k, past, past, i32({1, 3}, {0, 4, 3}), columns, total, length}, bad, "block_row_indices has 4");
  call(plain, {q, k, k, past, past, i32({1, 3}, {0, 2, 1}), columns, total, length}, bad, "block_row_indices has 1");
  call(plain, {q, k, k, past, past, rows, columns, i32({}, {21}), length}, bad, "a total of 21");
  call(plain, {q, k, k, past, past, rows, columns, total, i32({2}, {3, 3})}, bad, "2 lengths");
  call(plain, {q, k, k, past, past, rows, columns, total, i32({1}, {4})}, bad, "a length of 4");
  call(plain, {q, k, k, past, past, rows, columns, total, i32({1}, {1})}, bad, "a length of 1");
  call("num_heads = 2, kv_num_heads = 1, sparse_block_size = 16, do_rotary = 1",
       {q, k, k, past, past, rows, columns, total, length}, bad, "cos_cache");
  call("num_heads = 2, kv_num_heads = 1, sparse_block_size = 16, do_rotary = 1",
       {q, k, k, past, past, rows, columns, total, length, noise({2, 1}), noise({2, 1})}, bad, "position 2");
}

TEST_CASE("PagedAttention refuses pages and sequences that do not fit") {
  const char* plain = "num_heads = 2, kv_num_heads = 1";
  const Tensor q = noise({3, 4}), k = noise({3, 2}), pages = noise({3, 2, 1, 2});
  const Tensor starts = i32({3}, {0, 2, 3}), past = i32({2}, {1, 0}), table = i32({2, 2}, {0, 1, 2, -1});
  const auto call = [&](const char* attributes, std::vector<Value> inputs, ErrorCode code, const char* what) {
    refuses("PagedAttention", attributes, inputs, code, what);
  };
  const auto shape = ErrorCode::ShapeMismatch, bad = ErrorCode::InvalidArgument, model = ErrorCode::InvalidModel;
  call(plain, {q, k, k, pages, pages, i32({3}, {0, 2, 4}), past, table}, shape, "cumulative_sequence_length");
  call(plain, {q, k, k, pages, pages, i32({3}, {0, 4, 3}), past, table}, bad, "sequence 0");
  call(plain, {q, k, k, pages, pages, starts, i32({2}, {3, 0}), table}, bad, "its pages hold 4");
  call(plain, {q, k, k, pages, pages, starts, i32({2}, {-1, 0}), table}, bad, "sequence 0 has -1");
  call(plain, {q, k, k, pages, pages, starts, past, i32({1, 2}, {0, 1})}, shape, "block_table");
  call(plain, {q, k, k, pages, pages, starts, past, i32({2, 2}, {0, 3, 2, -1})}, bad, "page 3 of 3");
  call(plain, {q, k, k, pages, noise({3, 2, 2, 2}), starts, past, table}, shape, "input 4");
  call(plain, {q, k, noise({3, 3}), pages, pages, starts, past, table}, shape, "input 2");
  call(plain, {q, k, k, pages, pages, starts, past, table, kNone, kNone, i32({3}, {0, 6, 1})}, bad, "slot 6");
  call(plain, {q, k, k, pages, pages, starts, past, table, kNone, kNone, i32({2}, {0, 1})}, shape, "slot_mapping");
  call(plain, {q, k, k, pages, pages, starts, past, table, kNone, kNone, kNone, noise({3})}, shape, "head_sink");
  call("num_heads = 2, kv_num_heads = 1, do_rotary = 1", {q, k, k, pages, pages, starts, past, table}, bad,
       "cos_cache");
  call("num_heads = 2, kv_num_heads = 1, k_quant_type = \"PER_TENSOR\"", {q, k, k, pages, pages, starts, past, table},
       model, "scale");
  call("num_heads = 2, kv_num_heads = 1, kv_cache_layout = \"LATENT\"", {q, k, k, pages, pages, starts, past, table},
       model, "latent");
  call("num_heads = 2, kv_num_heads = 1, k_cache_dtype = \"int4\"", {q, k, k, pages, pages, starts, past, table},
       ErrorCode::UnsupportedOperator, "int4");
}

}  // namespace
}  // namespace infernode::test
