#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "graph/text.h"

namespace infernode::graph {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr int64_t kMaxShown = 16;

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + '"';
}

std::string spell(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool plain = !name.empty() && letter(name[0]) &&
                     std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
  return plain ? std::string(name) : in_quotes(name);
}

/// Shortest text that reads back as the same number; never looks like an integer.
template <class T>
std::string spell_real(T v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string spell_type(const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::Unknown:
      return "";
    case ValueType::Kind::Sequence:
      return cat("seq(", type.inner ? spell_type(*type.inner) : "", ")");
    case ValueType::Kind::Optional:
      return cat("optional(", type.inner ? spell_type(*type.inner) : "", ")");
    case ValueType::Kind::Map:
      return cat("map(", onnx_name(type.elem), ", ", type.inner ? spell_type(*type.inner) : "", ")");
    case ValueType::Kind::Tensor:
    case ValueType::Kind::SparseTensor:
      break;
  }
  std::string out(onnx_name(type.elem));
  if (!type.shape) {
    out += "[]";
  } else if (!type.shape->empty()) {
    out += '[';
    for (size_t i = 0; i < type.shape->size(); ++i) {
      const Dim& d = (*type.shape)[i];
      if (i) out += ',';
      const std::string text = d.to_string();
      out += d.known() || text == "?" ? text : spell(text);
    }
    out += ']';
  }
  return type.kind == ValueType::Kind::SparseTensor ? cat("sparse_tensor(", out, ")") : out;
}

std::string spell_elements(const Tensor& t, bool full) {
  if (!full && t.numel() > kMaxShown) return "{...}";
  if (!t.device().is_host()) return "{...}";
  std::string out = "{";
  const auto add = [&](std::string text) {
    if (out.size() > 1) out += ", ";
    out += text;
  };
  const auto n = static_cast<size_t>(t.numel());
  switch (t.dtype()) {
    case DType::String:
      for (const std::string& s : t.span<std::string>()) add(in_quotes(s));
      break;
    case DType::Float64:
      for (double v : t.span<double>()) add(spell_real(v));
      break;
    case DType::Complex64:
      for (size_t i = 0; i < 2 * n; ++i) add(spell_real(static_cast<const float*>(t.raw())[i]));
      break;
    case DType::Complex128:
      for (size_t i = 0; i < 2 * n; ++i) add(spell_real(static_cast<const double*>(t.raw())[i]));
      break;
    case DType::UInt64:
      for (uint64_t v : t.span<uint64_t>()) add(std::to_string(v));
      break;
    default:
      if (tensor::is_floating(t.dtype()))
        for (float v : to_float_vector(t)) add(spell_real(v));
      else
        for (int64_t v : to_int64_vector(t)) add(std::to_string(v));
  }
  return out + "}";
}

std::string spell_tensor(const Tensor& t, bool full) {
  return cat(spell_type(ValueType::tensor(t.dtype(), to_sym(t.shape()))), " ", spell_elements(t, full));
}

class Printer {
 public:
  explicit Printer(bool full) : full_(full) {}

  std::string graph(const Graph& g, const NameTable* outer, const std::string& indent) {
    const NameTable names(g, outer);
    std::string out = cat(g.name.empty() ? std::string("graph") : spell(g.name), " (", infos(g, names, g.inputs()),
                          ") => (", infos(g, names, g.outputs()), ")");
    std::string initializers;
    for (size_t v = 0; v < g.values().size(); ++v) {
      const ValueInfo& info = g.values()[v];
      if (!info.constant.is_tensor() || info.is_input) continue;
      const Tensor& t = info.constant.tensor();
      initializers += cat(initializers.empty() ? "" : ", ", spell_type(ValueType::tensor(t.dtype(), to_sym(t.shape()))),
                          " ", spell(names[static_cast<ValueId>(v)]), " = ", spell_elements(t, full_));
    }
    if (!initializers.empty()) out += cat("\n", indent, "<", initializers, ">");
    out += cat("\n", indent, "{\n");
    for (NodeId id : g.topological_order()) out += cat(indent, "  ", node(g.node(id), names, indent + "  "), "\n");
    return out + indent + "}";
  }

  std::string attributes(const Attributes& all, const NameTable& names, const std::string& indent) {
    std::vector<const std::pair<std::string, Attribute>*> sorted;
    for (const auto& item : all) sorted.push_back(&item);
    std::ranges::sort(sorted, {}, [](const auto* item) -> const std::string& { return item->first; });
    std::string out;
    for (const auto* item : sorted)
      out += cat(out.empty() ? "" : ", ", item->first, attribute(item->second, names, indent));
    return out.empty() ? out : cat(" <", out, ">");
  }

 private:
  std::string infos(const Graph& g, const NameTable& names, const std::vector<ValueId>& ids) {
    std::string out;
    for (ValueId id : ids) {
      const ValueInfo& info = g.value(id);
      const std::string type = spell_type(info.type);
      out += cat(out.empty() ? "" : ", ", type, type.empty() ? "" : " ", spell(names[id]));
      if (info.is_input && info.constant.is_tensor()) out += cat(" = ", spell_elements(info.constant.tensor(), full_));
    }
    return out;
  }

  std::string node(const Node& n, const NameTable& names, const std::string& indent) {
    const auto list = [&](const std::vector<ValueId>& ids) {
      std::string out;
      for (size_t i = 0; i < ids.size(); ++i)
        out += cat(i ? ", " : "", ids[i] == kNoValue ? std::string("\"\"") : spell(names[ids[i]]));
      return out;
    };
    std::string out = full_ && !n.name.empty() ? cat("[", in_quotes(n.name), "] ") : std::string();
    out += cat(list(n.outputs), " = ", n.domain, n.domain.empty() ? "" : ".", n.op_type);
    if (!n.overload.empty()) out += cat(":", n.overload);
    return cat(out, attributes(n.attributes, names, indent), " (", list(n.inputs), ")");
  }

  template <class T, class F>
  static std::string list(const std::vector<T>& items, const char* kind, F&& f) {
    std::string out = items.empty() ? cat(": ", kind, " = [") : std::string(" = [");
    for (size_t i = 0; i < items.size(); ++i) out += cat(i ? ", " : "", f(items[i]));
    return out + "]";
  }

  std::string attribute(const Attribute& value, const NameTable& names, const std::string& indent) {
    const auto nested = [&](const std::shared_ptr<Graph>& g) { return graph(*g, &names, indent); };
    return std::visit(
        [&]<class T>(const T& v) -> std::string {
          if constexpr (std::is_same_v<T, int64_t>)
            return cat(" = ", v);
          else if constexpr (std::is_same_v<T, float>)
            return std::isfinite(v) ? cat(" = ", spell_real(v)) : cat(": float = ", spell_real(v));
          else if constexpr (std::is_same_v<T, std::string>)
            return cat(" = ", in_quotes(v));
          else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
            return list(v, "ints", [](int64_t i) { return std::to_string(i); });
          else if constexpr (std::is_same_v<T, std::vector<float>>)
            return list(v, "floats", [](float f) { return spell_real(f); });
          else if constexpr (std::is_same_v<T, std::vector<std::string>>)
            return list(v, "strings", [](const std::string& s) { return in_quotes(s); });
          else if constexpr (std::is_same_v<T, Tensor>)
            return cat(" = ", spell_tensor(v, full_));
          else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
            return list(v, "tensors", [&](const Tensor& t) { return spell_tensor(t, full_); });
          else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>)
            return cat(" = ", nested(v));
          else if constexpr (std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>)
            return list(v, "graphs", nested);
          else if constexpr (std::is_same_v<T, ValueType>)
            return cat(" = ", spell_type(v));
          else
            return cat(" = sparse ", spell_tensor(v->values, full_));
        },
        value);
  }

  bool full_;
};

}  // namespace

std::string to_text(const Graph& graph, bool full) { return Printer(full).graph(graph, nullptr, ""); }

std::string to_text(const Attributes& attributes) {
  const Graph none;
  return Printer(true).attributes(attributes, NameTable(none), "");
}

}  // namespace infernode::graph
