#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/value_type.h"
#include "tensor/value.h"

namespace infernode::graph {

class Graph;

using Attribute =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                 std::vector<std::string>, tensor::Tensor, std::shared_ptr<const tensor::Sparse>,
                 std::vector<tensor::Tensor>, std::shared_ptr<Graph>, std::vector<std::shared_ptr<Graph>>, ValueType>;

/// A node's attributes in file order; lookup by name. Typed getters throw InvalidModel naming the attribute where it
/// has another type; an int is accepted where a float is asked for and one value where a list is.
class Attributes {
 public:
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Attribute* find(std::string_view name) const;
  void set(std::string name, Attribute value);
  void erase(std::string_view name);
  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  std::int64_t get_int(std::string_view name, std::int64_t fallback) const;
  std::int64_t get_int(std::string_view name) const;  ///< required: InvalidModel where missing; likewise below
  float get_float(std::string_view name, float fallback) const;
  float get_float(std::string_view name) const;
  std::string get_string(std::string_view name, std::string_view fallback) const;
  std::string get_string(std::string_view name) const;
  std::vector<std::int64_t> get_ints(std::string_view name, std::vector<std::int64_t> fallback = {}) const;
  std::vector<float> get_floats(std::string_view name, std::vector<float> fallback = {}) const;
  std::vector<std::string> get_strings(std::string_view name, std::vector<std::string> fallback = {}) const;
  const tensor::Tensor* get_tensor(std::string_view name) const;  ///< nullptr where missing
  std::shared_ptr<Graph> get_graph(std::string_view name) const;  ///< nullptr where missing
  const ValueType* get_type(std::string_view name) const;         ///< nullptr where missing

  bool operator==(const Attributes& other) const;  ///< graphs compare by identity, tensors by content

 private:
  std::vector<std::pair<std::string, Attribute>> items_;
};

}  // namespace infernode::graph
