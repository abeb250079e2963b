#pragma once

#include <random>
#include <string>
#include <vector>

#include "fuzz/ort_tree.h"
#include "fuzz/proto_tree.h"

namespace infernode::fuzz {

/// Name of the file of external data that changed models may use.
inline constexpr const char* kWeights = "w";

/// Changes models into models that may be wrong in every way: other operators, edges, attributes, types, dims, places
/// of data and bytes. The same seed gives the same changes.
class Mutator {
 public:
  Mutator(std::vector<std::string> operators, std::uint32_t seed) : operators_(std::move(operators)), random_(seed) {}

  /// Fields of this model become material for the others.
  void learn(std::string_view model);
  std::string mutate(std::string_view model);
  /// Changes a model in ORT format: other operators, edges, numbers and lists, and tables, offsets and layouts that
  /// lie.
  std::string bend(std::string_view model);
  /// Changes bytes wherever they are: the frame breaks too.
  std::string tear(std::string_view model);
  /// Attributes that a node of this operator had in a model learned from, now and then with another value; empty where
  /// none is known.
  std::vector<Field> attributes_of(std::string_view op);

  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  bool once_in(std::size_t n) { return below(n) == 0; }
  /// Small numbers mostly, then the ends of the ranges that code may forget.
  std::int64_t integer();
  std::uint32_t float_bits();

 private:
  struct Sample {
    Kind parent;
    Field field;
  };
  void edit(std::vector<Field>& model, Kind kind = Kind::Model);
  void change(const Place& place, std::vector<Field>& model);
  void change_text(const Place& place, std::vector<Field>& model);
  void reshape(std::vector<Field>& tensor);
  void externalise(std::vector<Field>& tensor);
  void scramble(std::string& bytes);
  void graft(const Place& place);
  void bend_at(std::string& file, const std::vector<OrtSpot>& spots);
  std::size_t layout(std::string& file, const OrtSpot& like);
  void bend_text(std::string& file, const OrtSpot& spot, std::size_t other);
  void bend_numbers(std::string& file, const OrtSpot& spot, const std::vector<OrtSpot>& spots);

  std::vector<std::string> operators_;
  std::vector<Sample> samples_;  ///< attributes, tensors, types and nodes
  std::mt19937 random_;
};

}  // namespace infernode::fuzz
