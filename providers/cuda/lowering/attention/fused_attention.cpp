// infernode.FusedAttention: Y = softmax(scale * Q * K' + mask) * V.

#include <utility>

#include "base/error.h"
#include "providers/cuda/lowering/parts/attention.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

bool can_attend(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  return (rank == 3 || rank == 4) && node.input_rank(1) == rank && node.input_rank(2) == rank &&
         kProductTypes.contains(node.input_dtype(0)) && node.all_of({node.input_dtype(0)}) && !node.has_output(1) &&
         node.attributes().get_int("zero_nan", 0) == 0;
}

/// Keys and values that wait to be joined with those of earlier steps: a kernel that reads them writes them, too.
/// False, and nothing done, where there is none.
bool attend_joined(Builder& b) {
  const Deferred *wait_k = b.deferred(1), *wait_v = b.deferred(2);
  const auto flag = [&](const char* name) { return b.attributes().get_int(name, 0) != 0; };
  if (wait_k == nullptr || wait_v == nullptr || !wait_k->joins_rows || !wait_v->joins_rows || flag("k_rows_first") ||
      flag("v_rows_first")) {
    return false;
  }
  const Operand4 q = operand_of(rows_of(b, 0), flag("q_rows_first"));
  Operand4 k = operand_of(wait_k->reads[0], false), v = operand_of(wait_v->reads[0], false);
  const Operand4 new_k = operand_of(wait_k->reads[1], false), new_v = operand_of(wait_v->reads[1], false);
  if (k.rows != v.rows) return false;
  AttentionJoin join{.k = heads_of(new_k), .v = heads_of(new_v), .all_k = {}, .all_v = {}, .past = k.rows};
  join.past_given = wait_k->reads_given && wait_v->reads_given;
  k.rows += new_k.rows, v.rows += new_v.rows;
  check_fit(q, k, v);
  const Attending how{.scale = b.attributes().get_float("scale", 1)};
  AttentionProblem whole = attention_problem(q, k, v, {}, {}, how);
  whole.join = join;
  if (attention_choices(b.target(), whole).empty()) return false;
  const DeviceTensor all_k = b.take_deferred(1), all_v = b.take_deferred(2);
  const Operand4 mask = mask_of(b, 3, b.input_shape(0).rank(), Shape{q.batch, q.heads, q.rows, k.rows});
  whole = attention_problem(q, k, v, mask, operand_of(b.output(0), flag("y_rows_first")), how);
  join.all_k = heads_of(operand_of(all_k, false));
  join.all_v = heads_of(operand_of(all_v, false));
  whole.join = join;
  launch_attention(b, whole);
  return true;
}

void lower_attention(Builder& b) {
  if (attend_joined(b)) return;
  const auto flag = [&](const char* name) { return b.attributes().get_int(name, 0) != 0; };
  const Operand4 q = operand_of(rows_of(b, 0), flag("q_rows_first")),
                 k = operand_of(rows_of(b, 1), flag("k_rows_first")),
                 v = operand_of(rows_of(b, 2), flag("v_rows_first"));
  check_fit(q, k, v);
  const Operand4 mask = mask_of(b, 3, b.input_shape(0).rank(), Shape{q.batch, q.heads, q.rows, k.rows});
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  const Operand4 y = operand_of(out, flag("y_rows_first"));
  attend(b, q, k, v, mask, y, {.scale = b.attributes().get_float("scale", 1)});
}

}  // namespace

void register_fused_attention(Lowerings& lowerings) {
  lowerings.push_back({graph::kOwn, "FusedAttention", can_attend, lower_attention});
}

}  // namespace infernode::cuda
