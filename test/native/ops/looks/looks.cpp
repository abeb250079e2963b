#include "ops/looks/looks.h"

#include <cctype>
#include <cmath>

namespace infernode::test {

void check_looks(std::span<const LongOp> ops) {
  for (const LongOp& op : ops) {
    CAPTURE(std::string(op.text));
    const std::vector<Value> inputs = op.inputs();
    const std::size_t looks = looks_of(op.text, op.opset, inputs, false, op.constant);
    CHECK(static_cast<double>(looks) >= std::ceil(op.steps / op.between));
    CHECK(looks_of(op.text, op.opset, inputs, true, op.constant) == 1);
  }
}

CountedGraphs::CountedGraphs(std::span<const LongOp> ops) {
  files().emplace_back([ops] {
    Texts texts;
    for (const LongOp& op : ops) texts.emplace_back(op.text);
    return texts;
  });
}

CountedGraphs::CountedGraphs(Texts (*texts)()) { files().emplace_back(texts); }

CountedGraphs::Texts CountedGraphs::all() {
  Texts out;
  for (const auto& file : files()) {
    for (std::string& text : file()) out.push_back(std::move(text));
  }
  return out;
}

std::vector<std::function<CountedGraphs::Texts()>>& CountedGraphs::files() {
  static std::vector<std::function<Texts()>> all;
  return all;
}

std::string last_operator(std::string_view text) {
  const auto names = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  std::string last;
  int braces = 0, attributes = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{') ++braces;
    if (c == '}') --braces;
    if (c == '<') ++attributes;
    if (c == '>' && text[i - 1] != '=') --attributes;
    if (c != '=' || braces != 1 || attributes != 0) continue;
    std::size_t begin = i + 1;
    while (begin < text.size() && text[begin] == ' ') ++begin;
    std::size_t end = begin;
    while (end < text.size() && names(text[end])) ++end;
    last = text.substr(begin, end - begin);
  }
  return last;
}

}  // namespace infernode::test
