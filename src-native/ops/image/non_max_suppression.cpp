#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

void infer_non_max_suppression(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Int64);
  ctx.set_output_shape(0, graph::SymShape{Dim::unknown(), 3});
}

struct Box {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

Box corners(const float* p, bool center) {
  if (center) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(height > 0 && width > 0)) return false;
  const float area_a = a.area(), area_b = b.area();
  if (area_a <= 0 || area_b <= 0) return false;
  const float shared = height * width;
  return shared / (area_a + area_b - shared) > threshold;
}

class NonMaxSuppression : public Kernel {
 public:
  explicit NonMaxSuppression(KernelInfo& info) {
    const std::int64_t form = info.attributes().get_int("center_point_box", 0);
    INFERNODE_CHECK(form == 0 || form == 1, ErrorCode::InvalidModel, "center_point_box is ", form,
                    " instead of 0 or 1");
    center_ = form == 1;
  }

  void run(KernelContext& ctx) const override {
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    INFERNODE_CHECK(boxes.rank() == 3 && boxes.dim(2) == 4 && scores.rank() == 3 && scores.dim(0) == boxes.dim(0) &&
                        scores.dim(2) == boxes.dim(1),
                    ErrorCode::ShapeMismatch, "boxes of shape ", boxes.shape().dims(), " and scores of shape ",
                    scores.shape().dims(), " must be [batch, count, 4] and [batch, classes, count]");
    const Tensor *most = ctx.optional_input(2), *iou = ctx.optional_input(3), *score = ctx.optional_input(4);
    const std::int64_t limit = most ? tensor::to_int64_scalar(*most) : 0;
    const float iou_threshold = iou ? tensor::to_float_scalar(*iou) : 0.0f;
    INFERNODE_CHECK(iou_threshold >= 0 && iou_threshold <= 1, ErrorCode::InvalidArgument, "iou_threshold ",
                    iou_threshold, " is outside [0, 1]");
    const std::int64_t classes = scores.dim(1), count = boxes.dim(1);
    const auto tasks = static_cast<std::size_t>(limit > 0 ? scores.dim(0) * classes : 0);
    const kernel::Charge lists(ctx.run(), checked_mul(tasks, sizeof(Selection)));
    std::vector<Selection> selected(tasks);
    ctx.parallel_for(tasks, 20.0 * static_cast<double>(count), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t t = begin; t < end; ++t) {
        const float* of_class = scores.data<float>() + static_cast<std::int64_t>(t) * count;
        const float* of_batch = boxes.data<float>() + static_cast<std::int64_t>(t) / classes * count * 4;
        select(ctx.run(), of_batch, of_class, count, limit, iou_threshold, score, selected[t]);
      }
    });
    std::size_t total = 0;
    for (const Selection& of_task : selected) total += of_task.boxes.size();
    const Tensor out = ctx.output(0, Shape{static_cast<std::int64_t>(total), 3});
    auto* to = out.mutable_data<std::int64_t>();
    for (std::size_t t = 0; t < tasks; ++t) {
      for (const std::int64_t box : selected[t].boxes) {
        *to++ = static_cast<std::int64_t>(t) / classes;
        *to++ = static_cast<std::int64_t>(t) % classes;
        *to++ = box;
      }
    }
  }

 private:
  struct Selection {
    std::optional<kernel::Charge> charge{};  ///< of the boxes
    std::vector<std::int64_t> boxes{};
  };

  /// Boxes of one class in the order of their scores (equal ones by index), none of which overlaps one before it.
  void select(const kernel::RunContext& run, const float* boxes, const float* scores, std::int64_t count,
              std::int64_t limit, float iou_threshold, const Tensor* score_threshold, Selection& out) const {
    constexpr double kOverlapNs = 3, kScoreNs = 1, kComparisonNs = 3;
    kernel::Watch watch(run);
    const auto boxes_there = static_cast<std::size_t>(count);
    const auto most = static_cast<std::size_t>(std::min(count, limit));
    const kernel::Charge charge(
        run, checked_add(checked_mul(boxes_there, sizeof(std::int64_t)), checked_mul(most, sizeof(Box))));
    std::vector<std::int64_t> order;
    order.reserve(boxes_there);
    const float least = score_threshold ? tensor::to_float_scalar(*score_threshold) : 0.0f;
    for (std::int64_t i = 0; i < count; ++i) {
      watch.did(kScoreNs);
      if (scores[i] == scores[i] && (!score_threshold || scores[i] > least)) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      watch.did(kComparisonNs);
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    const std::size_t room = std::min(most, order.size());
    out.charge.emplace(run, checked_mul(room, sizeof(std::int64_t)));
    out.boxes.reserve(room);
    std::vector<Box> kept;
    kept.reserve(room);
    for (const std::int64_t i : order) {
      if (static_cast<std::int64_t>(kept.size()) == limit) break;
      watch.did(kOverlapNs * static_cast<double>(kept.size() + 1));
      const Box box = corners(boxes + i * 4, center_);
      if (std::any_of(kept.begin(), kept.end(), [&](const Box& k) { return overlaps(k, box, iou_threshold); }))
        continue;
      kept.push_back(box);
      out.boxes.push_back(i);
    }
  }

  bool center_ = false;
};

}  // namespace

void register_non_max_suppression(kernel::OpRegistrar& r) {
  r.op("NonMaxSuppression")
      .version(10,
               "boxes:float, scores:float, max_output_boxes_per_class:int64?, iou_threshold:float?, "
               "score_threshold:float? -> selected_indices:int64")
      .version(11,
               "boxes:float, scores:float, max_output_boxes_per_class:int64?, iou_threshold:float?, "
               "score_threshold:float? -> selected_indices:int64")
      .infer(infer_non_max_suppression)
      .kernel<NonMaxSuppression>();
}

}  // namespace infernode::ops
