// Random graphs of the nodes that transposes move past: the answers before and after are the same to the last bit, and
// no more is transposed than before. All values are small integers, so that sums do not hang on their order.

#include <numeric>
#include <random>

#include "fusions/graph_test.h"
#include "graph/patch.h"
#include "passes/fusions.h"
#include "tensor/dtype.h"

using namespace infernode;
using namespace infernode::test;

namespace {

using Dims = std::vector<std::int64_t>;

std::string list(const Dims& values) {
  std::string out;
  for (const std::int64_t value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}

/// Writes a model in text form, node by node, and keeps the dims of what it has.
class Writer {
 public:
  Writer(std::uint32_t seed, std::int64_t opset) : random_(seed), opset_(opset) {}

  std::string write() {
    const int inputs = below(2) + 1;
    for (int i = 0; i < inputs; ++i) {
      Dims dims;
      for (int axis = 0, rank = 3 + below(2); axis < rank; ++axis) dims.push_back(below(6) == 0 ? 1 : 2 + below(3));
      const std::string name = "x" + std::to_string(i);
      std::string declared;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        const bool symbol = below(4) == 0;
        const std::string text = symbol ? name + "_" + std::to_string(axis) : std::to_string(dims[axis]);
        if (symbol) symbols[text] = dims[axis];
        declared += (axis == 0 ? "" : ",") + text;
      }
      head_ += (i == 0 ? "float[" : ", float[") + declared + "] " + name;
      add_value(name, dims);
    }
    for (int steps = 5 + below(8), tries = 0; steps > 0 && tries < 60; ++tries) steps -= step();
    std::string outputs;
    for (const auto& [name, dims] : values_) {
      if (!read_.contains(name) || (name[0] != 'x' && below(10) == 0)) outputs += (outputs.empty() ? "" : ", ") + name;
    }
    return "(" + head_ + ") => (" + outputs + ") <float unused = {0}" + constants_ + "> {\n" + body_ + "}";
  }

  std::map<std::string, std::int64_t> symbols;

 private:
  struct Known {
    std::string name;
    Dims dims;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(below(static_cast<int>(n))); }
  std::string fresh() { return "v" + std::to_string(next_++); }
  void add_value(const std::string& name, const Dims& dims) { values_.push_back({name, dims}); }

  std::string constant(const char* type, const Dims& dims, const Dims& values) {
    const std::string name = "c" + std::to_string(next_++);
    constants_ += std::string(", ") + type + (dims.empty() ? "" : "[" + list(dims) + "]") + " " + name + " = {" +
                  list(values) + "}";
    return name;
  }
  std::string integers(const Dims& values) {
    return constant("int64", {static_cast<std::int64_t>(values.size())}, values);
  }
  Dims noise(const Dims& dims) {
    Dims out;
    for (std::int64_t left = size(dims); left > 0; --left) out.push_back(below(5) - 2);
    return out;
  }
  static std::int64_t size(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  }

  /// `op` with attributes and inputs as they stand.
  std::string emit(const std::string& op, const std::string& attributes, const std::string& inputs, const Dims& dims) {
    const std::string name = fresh();
    body_ += name + " = " + op + (attributes.empty() ? "" : "<" + attributes + ">") + "(" + inputs + ")\n";
    add_value(name, dims);
    return name;
  }

  /// Axes by attribute, or from a version on by input.
  void emit_axes(const std::string& op, std::string attributes, const std::string& x, const Dims& axes,
                 std::int64_t input_since, const Dims& dims) {
    const bool input = opset_ >= input_since;
    if (!input) attributes += (attributes.empty() ? "axes = [" : ", axes = [") + list(axes) + "]";
    emit(op, attributes, x + (input ? ", " + integers(axes) : ""), dims);
  }

  /// An axis, and as a node is told of it: counted from either end.
  struct Axis {
    std::int64_t place, said;

    std::size_t at() const { return static_cast<std::size_t>(place); }
    std::string text() const { return "axis = " + std::to_string(said); }
  };

  /// Adds a node; false where it does not fit what was chosen for it.
  bool step() {
    const Known x = values_[below(3) == 0 ? pick(values_.size()) : values_.size() - 1];
    const auto rank = static_cast<std::int64_t>(x.dims.size());
    if (size(x.dims) > 4000) return false;
    read_.insert(x.name);
    if (rank > 1 && below(10) < 4) return transpose(x);
    const std::int64_t place = rank == 0 ? 0 : below(static_cast<int>(rank));
    const Axis axis{place, rank > 0 && below(3) == 0 ? place - rank : place};
    const int op = below(20);
    if (op < 2) {
      const char* ops[] = {"Relu", "Neg", "Abs", "Sign", "Identity", "Floor"};
      emit(ops[below(6)], "", x.name, x.dims);
      return true;
    }
    if (op < 5) return binary(x);
    if (op == 15) return squeeze(x);
    if (op == 16) return unsqueeze(x);
    return rank > 0 && along(op, x, axis);
  }

  /// Adds a node that works along an axis.
  bool along(int op, const Known& x, const Axis& axis) {
    Dims dims = x.dims;
    std::int64_t& dim = dims[axis.at()];
    switch (op) {
      case 5:
        dim *= 2;
        emit("Concat", axis.text(), x.name + ", " + x.name, dims);
        return true;
      case 6:
        return split(x, axis);
      case 7:
        return pad(x);
      case 8:
        if (dim < 2) return false;
        dim = (dim - 1 + 1) / 2;
        slice(x, {1}, {1000}, ", " + integers({axis.said}) + ", " + integers({2}), dims);
        return true;
      case 9:
        if (dims[0] < 2) return false;
        --dims[0];
        slice(x, {0}, {-1}, "", dims);
        return true;
      case 10:
        return gather(x, axis);
      case 11:
        return tile(x);
      case 12:
      case 13:
        return reduce(x);
      case 14:
        return arg(x, axis);
      case 17:
        return reshape(x, axis.at());
      case 18:
        emit("CumSum", below(2) == 0 ? "reverse = 1" : "", x.name + ", " + constant("int64", {}, {axis.said}), dims);
        return true;
      default:
        return quantize(x, axis);
    }
  }

  bool split(const Known& x, const Axis& axis) {
    Dims dims = x.dims;
    if (dims[axis.at()] % 2 != 0) return false;
    dims[axis.at()] /= 2;
    const std::string a = fresh(), b = fresh();
    body_ += a + ", " + b + " = Split<" + axis.text() + (opset_ >= 18 ? ", num_outputs = 2>(" : ">(") + x.name + ")\n";
    add_value(a, dims);
    add_value(b, dims);
    return true;
  }

  bool pad(const Known& x) {
    Dims dims = x.dims, pads(2 * x.dims.size(), 0);
    for (std::int64_t& pad : pads) pad = below(3) == 0 ? 1 : 0;
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] += pads[i] + pads[i + dims.size()];
    emit("Pad", "", x.name + ", " + integers(pads), dims);
    return true;
  }

  /// `more`: axes and steps, as inputs.
  void slice(const Known& x, const Dims& starts, const Dims& ends, const std::string& more, const Dims& dims) {
    emit("Slice", "", x.name + ", " + integers(starts) + ", " + integers(ends) + more, dims);
  }

  bool gather(const Known& x, const Axis& axis) {
    Dims dims = x.dims;
    const Dims shapes[] = {{}, {2}, {1, 3}};
    const Dims& indices = shapes[below(3)];
    Dims chosen(static_cast<std::size_t>(size(indices)));
    for (std::int64_t& index : chosen) index = below(static_cast<int>(dims[axis.at()]));
    dims.erase(dims.begin() + axis.place);
    dims.insert(dims.begin() + axis.place, indices.begin(), indices.end());
    emit("Gather", axis.text(), x.name + ", " + constant("int64", indices, chosen), dims);
    return true;
  }

  bool tile(const Known& x) {
    Dims dims = x.dims, repeats;
    for (std::int64_t& dim : dims) {
      repeats.push_back(1 + (below(3) == 0 ? 1 : 0));
      dim *= repeats.back();
    }
    emit("Tile", "", x.name + ", " + integers(repeats), dims);
    return true;
  }

  bool arg(const Known& x, const Axis& axis) {
    Dims dims = x.dims;
    const bool keep = below(2) == 0;
    if (keep)
      dims[axis.at()] = 1;
    else
      dims.erase(dims.begin() + axis.place);
    const std::string index =
        emit(below(2) == 0 ? "ArgMax" : "ArgMin", axis.text() + ", keepdims = " + (keep ? "1" : "0"), x.name, dims);
    values_.pop_back();
    emit("Cast", "to = 1", index, dims);
    return true;
  }

  bool squeeze(const Known& x) {
    Dims dims = x.dims, axes;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
    }
    if (axes.empty()) return false;
    std::erase(dims, 1);
    emit_axes("Squeeze", "", x.name, axes, 13, dims);
    return true;
  }

  bool unsqueeze(const Known& x) {
    Dims dims = x.dims;
    if (dims.size() > 4) return false;
    const std::int64_t place = below(static_cast<int>(dims.size()) + 1);
    dims.insert(dims.begin() + place, 1);
    emit_axes("Unsqueeze", "", x.name, {place}, 13, dims);
    return true;
  }

  bool quantize(const Known& x, const Axis& axis) {
    const std::int64_t dim = x.dims[axis.at()];
    const std::string scale = constant("float", {dim}, Dims(static_cast<std::size_t>(dim), 2));
    const std::string codes = emit("QuantizeLinear", axis.text(), x.name + ", " + scale, x.dims);
    values_.pop_back();
    emit("DequantizeLinear", axis.text(), codes + ", " + scale, x.dims);
    return opset_ >= 13;
  }

  bool transpose(const Known& x) {
    Dims perm(x.dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    // Mostly channels to the back and to the front again, so that many meet their inverse.
    const int kind = below(5);
    if (kind < 2)
      std::rotate(perm.begin() + 1, perm.begin() + 1 + (perm.size() > 2 ? 1 : 0), perm.end());
    else if (kind < 4)
      std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
    else
      std::shuffle(perm.begin(), perm.end(), random_);
    Dims dims;
    for (const std::int64_t axis : perm) dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
    emit("Transpose", "perm = [" + list(perm) + "]", x.name, dims);
    return true;
  }

  bool binary(const Known& x) {
    const char* ops[] = {"Add", "Sub", "Min", "Max"};
    std::vector<Known> partners;
    for (const Known& value : values_) {
      const std::size_t rank = value.dims.size();
      if (rank <= x.dims.size() &&
          std::equal(value.dims.begin(), value.dims.end(), x.dims.end() - static_cast<std::ptrdiff_t>(rank)))
        partners.push_back(value);
    }
    std::string other = partners[pick(partners.size())].name;
    read_.insert(other);
    if (below(2) == 0) {
      Dims dims(x.dims.end() - below(static_cast<int>(x.dims.size()) + 1), x.dims.end());
      for (std::int64_t& dim : dims) dim = below(3) == 0 ? 1 : dim;
      other = constant("float", dims, noise(dims));
    }
    const bool swapped = below(2) == 0;
    const std::string operands = swapped ? other + ", " + x.name : x.name + ", " + other;
    if (below(4) != 0) {
      emit(ops[below(4)], "", operands, x.dims);
      return true;
    }
    const std::string condition = emit("Less", "", operands, x.dims);
    values_.pop_back();
    emit("Where", "", condition + ", " + operands, x.dims);
    return true;
  }

  bool reduce(const Known& x) {
    const char* ops[] = {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1"};
    const std::string op = ops[below(4)];
    const bool keep = below(2) == 0;
    Dims axes, dims;
    for (std::size_t i = 0; i < x.dims.size(); ++i) {
      if (below(2) == 0) {
        axes.push_back(static_cast<std::int64_t>(i) - (below(3) == 0 ? static_cast<std::int64_t>(x.dims.size()) : 0));
        if (keep) dims.push_back(1);
      } else {
        dims.push_back(x.dims[i]);
      }
    }
    if (axes.empty()) return false;
    emit_axes(op, std::string("keepdims = ") + (keep ? "1" : "0"), x.name, axes, op == "ReduceSum" ? 13 : 18, dims);
    return true;
  }

  /// Splits the dim or joins it with the next one.
  bool reshape(const Known& x, std::size_t at) {
    Dims dims = x.dims;
    if (below(4) == 0) {
      emit("Flatten", "axis = " + std::to_string(at), x.name,
           {size({dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(at)}),
            size({dims.begin() + static_cast<std::ptrdiff_t>(at), dims.end()})});
      return true;
    }
    if (dims[at] == 4 && dims.size() < 5) {
      dims[at] = 2;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), 2);
    } else if (at + 1 < dims.size()) {
      dims[at] *= dims[at + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    } else {
      return false;
    }
    Dims said = dims;
    if (below(2) == 0) said[pick(said.size())] = -1;
    emit("Reshape", "", x.name + ", " + integers(said), dims);
    return true;
  }

  std::mt19937 random_;
  std::int64_t opset_;
  std::string head_, constants_, body_;
  std::vector<Known> values_;
  std::set<std::string> read_;
  int next_ = 0;
};

struct Moved {
  std::size_t count = 0, bytes = 0;
  bool known = true;  ///< the bytes are all
};
/// Transposes of a graph, and the bytes that they move where the symbols have these sizes.
Moved transposed(const graph::Graph& graph, const std::map<std::string, std::int64_t>& symbols) {
  Moved out;
  for (const graph::NodeId id : graph.topological_order()) {
    if (graph.node(id).op_type != "Transpose") continue;
    const graph::ValueType& type = graph.value(graph.node(id).outputs[0]).type;
    const auto count = graph::numel(*type.shape).evaluate([&](std::string_view name) {
      return std::optional(symbols.at(std::string(name)));
    });
    ++out.count;
    out.known = out.known && count;
    out.bytes += tensor::byte_size(type.elem, count.value_or(0));
  }
  return out;
}

}  // namespace

TEST_CASE("random graphs give the same answers with fewer transposes") {
  const passes::Fusions fusions(registry());
  std::size_t before_all = 0, after_all = 0;
  const std::int64_t opsets[] = {12, 13, 17, 18, 21};
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const std::int64_t opset = opsets[seed % 5];
    Writer writer(seed, opset);
    const std::string text = writer.write();
    CAPTURE(seed);
    CAPTURE(text);
    const graph::Model before = parse(text, opset);
    graph::Model after = parse(text, opset);
    passes::PassOptions options = pass_options(1);
    options.fusions = &fusions;
    passes::run_basic(after, options);
    graph::verify(*after.graph);

    std::vector<Value> inputs = feeds(*before.graph, writer.symbols, seed);
    for (const Value& input : inputs) {
      for (float& v : input.tensor().mutable_span<float>()) v = std::floor(v * 4);
    }
    const std::vector<Value> expected = evaluate(*before.graph, inputs), actual = evaluate(*after.graph, inputs);
    check_same(actual, expected, 0);
    const Moved was = transposed(*before.graph, writer.symbols), is = transposed(*after.graph, writer.symbols);
    CHECK(is.count <= was.count);
    if (is.known && was.known) CHECK(is.bytes <= was.bytes);
    before_all += was.count;
    after_all += is.count;
  }
  MESSAGE("transposes: ", before_all, " before, ", after_all, " after");
  CHECK(after_all * 2 < before_all);
}
