#pragma once

#include <map>
#include <set>
#include <vector>

#include "graph/patch.h"
#include "passes/pipeline.h"
#include "passes/transposes/turning.h"

namespace infernode::passes::transposes {

/// Nodes that hang together by values of one order of axes. Each of them may work on turned values or stay; where one
/// that turned meets one that stayed, a value has to be transposed. The cheapest choice is a minimum cut.
class Region {
 public:
  /// Takes from `budget` what it looks at.
  Region(const graph::Graph& graph, const kernel::Registry& registry, const graph::Consumers& consumers,
         TurningBudget& budget)
      : graph_(graph), registry_(registry), consumers_(consumers), budget_(budget) {}

  /// All that can follow where `seed` has this order; false where no node can.
  bool grow(graph::ValueId seed, const Order& order);
  /// Chooses who turns; false where that would not move less data, or would need more transposes.
  bool choose();
  /// Turns the chosen nodes. `graph` and `consumers` are those that the region grew in; the region is spent.
  void apply(graph::Graph& graph, graph::Consumers& consumers);

  /// Calls `visit(value, order)` for each value that has an order here.
  template <class Visit>
  void for_each_value(const Visit& visit) const {
    for (const auto& [value, place] : places_) visit(value, place.order);
  }

 private:
  struct Place {
    Order order;
    bool foreign;  ///< made by a Transpose of a value that has an order itself: taken as it is
  };
  /// Where a value's two versions come from.
  enum class Source {
    Constant,   ///< transposed when the model is loaded
    Member,     ///< the version in which its node works
    Begin,      ///< a Transpose whose input is the turned version
    Transpose,  ///< a Transpose from another order: either version costs the same
    Outside     ///< as it is
  };
  /// How a node outside, or a Transpose, reads a value.
  enum class Reader { Original, End, Either };
  struct Needs {
    bool turned = false, original = false;
  };
  struct Move {
    graph::ValueId value;
    bool view;  ///< only dims of 1 change places: a reshape can do it
  };

  const Order* order_of(graph::ValueId value) const;
  void assign(graph::ValueId value, const Order& order);
  void admit(graph::NodeId id);
  std::vector<Order> candidates(const graph::Node& node, graph::ValueId leading) const;
  bool fits(const Turning& turning) const;

  Source source_of(graph::ValueId value) const;
  Reader reader_of(graph::ValueId value, graph::NodeId reader) const;
  bool turns(graph::NodeId id) const { return chosen_.contains(id); }
  Needs needs_of(graph::ValueId value) const;
  bool is_view(graph::ValueId value, const Order& order) const;
  /// A lower-rank input that cannot simply be given dims of 1.
  bool widening_moves(const Turning& turning, std::size_t input, const Order& order) const;
  std::vector<Move> moves() const;
  std::int64_t cost(const Move& move, std::int64_t per_node) const;
  void cut(std::int64_t per_node);

  graph::ValueId add_transpose(graph::GraphPatch& patch, const graph::Node& like, graph::ValueId from,
                               graph::ValueId to, const Order& perm) const;
  graph::ValueId turned_type(graph::GraphPatch& patch, graph::ValueId value) const;
  void find_turned(graph::GraphPatch& patch, graph::ValueId value);
  void turn_node(graph::GraphPatch& patch, graph::NodeId id);
  graph::ValueId widen(graph::GraphPatch& patch, const Turning& turning, std::size_t input, const Order& order) const;
  void give_back(graph::GraphPatch& patch, graph::ValueId value);

  const graph::Graph& graph_;
  const kernel::Registry& registry_;
  const graph::Consumers& consumers_;
  TurningBudget& budget_;
  std::map<graph::ValueId, Place> places_;
  std::map<graph::NodeId, Turning> nodes_;
  std::vector<graph::ValueId> open_;
  std::set<graph::NodeId> chosen_;
  std::map<graph::ValueId, graph::ValueId> turned_;
};

}  // namespace infernode::passes::transposes
