#pragma once
// Ensembles of decision trees: checked, laid out for fast walks, and scored.

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "kernel/kernel.h"
#include "microkernels/trees/trees.h"

namespace infernode::ops {

enum class TreeMode : std::uint8_t { Leq, Lt, Gte, Gt, Eq, Neq, Member, Leaf };
enum class TreeAggregate : std::uint8_t { Average, Sum, Min, Max };

/// An ensemble as a model states it, ids resolved to indices into `nodes`. Several nodes may share a child.
struct TreeModel {
  struct Node {
    TreeMode mode = TreeMode::Leaf;
    bool missing_is_true = false;
    std::int64_t feature = 0;
    double value = 0;  ///< the split; of a Member node, the index into `members`
    std::uint32_t on_true = 0, on_false = 0;
    std::uint32_t first_weight = 0, weight_count = 0;  ///< of a leaf, into `weights`
  };
  struct Weight {
    std::uint32_t target;
    double value;
  };
  std::vector<Node> nodes;
  std::vector<std::uint32_t> roots;
  std::vector<Weight> weights;
  std::vector<std::vector<double>> members;
  std::size_t targets = 1;
};

/// T: the type that X and the splits are compared in, float or double. Sums are kept in double, tree by tree in the
/// order of the roots, so results do not depend on threads.
template <class T>
class TreeEnsemble {
 public:
  /// Throws InvalidModel for features out of range, indices out of range and cycles.
  TreeEnsemble(const TreeModel& model, TreeAggregate aggregate, const microkernels::KernelSet& kernels);

  std::size_t targets() const { return targets_; }
  std::size_t trees() const { return roots_.size(); }

  /// Calls finish(row, scores, scored) once for each row of x, from several threads: `scores` holds the aggregate of
  /// each target (0 where no leaf spoke of it), `scored` whether some leaf did.
  using Finish = FunctionRef<void(std::size_t row, std::span<double> scores, const std::uint8_t* scored)>;
  void score(kernel::KernelContext& ctx, const tensor::Tensor& x, std::size_t rows, std::size_t columns,
             Finish finish) const;

 private:
  static constexpr bool kFloat = sizeof(T) == sizeof(float);
  using Lean = std::conditional_t<kFloat, microkernels::TreeNode32, microkernels::TreeNode64>;
  /// Any question: a bit mask of the relations between element and split that lead to yes.
  struct Wide {
    T threshold;
    std::uint32_t feature;  ///< times kTreeLanes
    std::uint32_t answer;
    std::uint32_t next[2];  ///< no, yes; a leaf leads to itself
  };

  void lay_out_weights(const TreeModel& model, std::span<const std::uint32_t> reached);
  bool lay_out_lean(const TreeModel& model, std::span<const std::uint32_t> reached);
  void lay_out_wide(const TreeModel& model, std::span<const std::uint32_t> reached);
  T leaf_threshold(const TreeModel& model, std::uint32_t id) const;
  T threshold(std::uint32_t node) const { return wide_.empty() ? lean()[node].threshold : wide_[node].threshold; }
  const Lean* lean() const { return reinterpret_cast<const Lean*>(lean_.data()); }
  bool is_member(T set, T value) const;

  void load_rows(const tensor::Tensor& x, std::size_t columns, std::size_t begin, std::size_t count, T* block) const;
  void find_leaves(std::size_t first_tree, std::size_t trees, const T* block, std::size_t groups,
                   std::uint32_t* leaves) const;
  void find_leaves_of_row(std::size_t first_tree, std::size_t trees, const T* block, std::uint32_t* leaves) const;
  void walk_wide(const T* x, std::size_t apart, std::uint32_t (&at)[microkernels::kTreeLanes]) const;
  void add(std::size_t tree, const std::uint32_t* leaves, std::size_t rows, double* scores, std::uint8_t* scored) const;
  void accumulate(double value, double& score, std::uint8_t& scored) const;
  void finish_row(std::size_t row, double* scores, const std::uint8_t* scored, Finish finish) const;
  void score_few(kernel::KernelContext& ctx, const tensor::Tensor& x, std::size_t rows, std::size_t columns,
                 Finish finish) const;
  std::size_t stride() const { return (features_ + 1) * microkernels::kTreeLanes; }

  TreeAggregate aggregate_;
  std::size_t targets_, features_ = 0;  ///< columns that the trees read; one of NaN follows in each block
  std::vector<microkernels::TreeRoot> roots_;
  tensor::Buffer lean_;
  std::vector<Wide> wide_;  ///< instead of lean_
  std::size_t node_bytes_ = 0;
  microkernels::TreeLoops<Lean, T> loops_{};
  double walk_ns_ = 1;  ///< of one row in one tree
  /// One weight a leaf, one target a tree: the leaf's threshold is the weight. Otherwise its bits are an index into
  /// first_.
  bool inline_weights_ = true;
  std::vector<std::uint32_t> tree_target_;
  std::vector<std::uint8_t> spoken_of_;  ///< by target, where inline_weights_
  std::vector<std::uint32_t> first_;     ///< of leaf i: weights_[first_[i]] up to weights_[first_[i + 1]]
  std::vector<TreeModel::Weight> weights_;
  std::vector<std::vector<T>> members_;  ///< ascending
};

extern template class TreeEnsemble<float>;
extern template class TreeEnsemble<double>;

}  // namespace infernode::ops
