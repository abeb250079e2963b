#include "ops/common/definition.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/error.h"
#include "ops/common/activation.h"

namespace infernode::ops {

std::vector<std::string> Definition::calls(std::string_view op, std::initializer_list<std::string_view> inputs,
                                           std::size_t outputs) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs; ++i) {
    names.push_back(cat("v", count_++));
    text_ += cat(i == 0 ? "" : ", ", names.back());
  }
  text_ += cat(" = ", op, "(");
  bool first = true;
  for (const std::string_view input : inputs) text_ += cat(std::exchange(first, false) ? "" : ", ", input);
  text_ += ")  ";
  return names;
}

std::string Definition::constant(double value) {
  return call(cat("Constant<value = ", type_, " {", static_cast<float>(value), "}>"), {});
}

std::string Definition::integers(const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t v : values) list += cat(list.empty() ? "" : ", ", v);
  return call(cat("Constant<value = int64[", values.size(), "] {", list, "}>"), {});
}

std::string Definition::repeat(const std::string& value, std::int64_t count) {
  std::string name = cat("v", count_++);
  text_ += cat(name, " = Concat<axis = 2>(", value);
  for (std::int64_t i = 1; i < count; ++i) text_ += cat(", ", value);
  text_ += ")  ";
  return name;
}

void Definition::finish(std::string_view result, std::string_view output) {
  text_ += cat(output, " = Identity(", result, ")  ");
}

std::string Definition::activate(const std::string& value, const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  if (name.empty()) return value;
  const KnownActivation* const known = find_activation(name);
  if (known == nullptr) fail(ErrorCode::InvalidModel, cat("unknown activation '", name, "'"));
  const microkernels::ActivationArgs args = read_activation(attributes);
  std::map<std::string, std::string, std::less<>> names{{"x", value}};
  std::string rest = known->definition, statements;
  // Takes the letters, digits and points at the start of `rest`.
  const auto word = [&] {
    const std::size_t end = std::min(rest.find_first_of(" ,)="), rest.size());
    std::string out = rest.substr(0, end);
    rest.erase(0, end);
    return out;
  };
  while (!rest.empty()) {
    const char c = rest[0];
    rest.erase(0, 1);
    if (c == '%') {
      const std::string id = word();
      if (!names.contains(id)) names[id] = cat("v", count_++);
      statements += names[id];
    } else if (c == '#') {
      const std::string number = word();
      statements += constant(number == "a" ? args.a : number == "b" ? args.b : std::stod(number));
    } else if (c == '{') {
      statements += cat(rest[0] == 'a' ? args.a : args.b);
      rest.erase(0, 2);
    } else {
      statements += c;
    }
  }
  text_ += statements + "  ";  // after the constants that it reads
  return names.at("y");
}

std::string definition_input(const graph::Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != graph::kNoValue ? cat("i", i) : std::string();
}

}  // namespace infernode::ops
