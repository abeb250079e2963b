#include "ops/matmul/einsum_equation.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"

namespace infernode::ops {
namespace {

using Labels = EinsumEquation::Labels;

struct Term {
  Labels before, after;  ///< around the ellipsis
  bool ellipsis = false;
  std::size_t letters() const { return before.size() + after.size(); }
};

class Reader {
 public:
  explicit Reader(std::string_view text) {
    for (char c : text) {
      if (c != ' ') text_ += c;
    }
  }

  EinsumEquation read(const std::vector<std::size_t>& ranks) {
    std::string_view inputs = text_, output;
    const std::size_t arrow = text_.find("->");
    const bool stated = arrow != std::string::npos;
    if (stated) {
      output = inputs.substr(arrow + 2);
      inputs = inputs.substr(0, arrow);
    }
    std::vector<Term> terms;
    for (;;) {
      const std::size_t comma = inputs.find(',');
      terms.push_back(read_term(inputs.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      inputs.remove_prefix(comma + 1);
    }
    if (terms.size() != ranks.size()) bad(cat("has ", terms.size(), " terms for ", ranks.size(), " inputs"));

    EinsumEquation out;
    std::size_t widest = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Term& term = terms[i];
      if (term.ellipsis ? ranks[i] < term.letters() : ranks[i] != term.letters())
        fail(ErrorCode::ShapeMismatch, cat("Einsum '", text_, "': input ", i, " has rank ", ranks[i],
                                           ", its term names ", term.letters(), " dims"));
      const std::size_t hidden = ranks[i] - term.letters();
      widest = std::max(widest, hidden);
      out.inputs.push_back(expand(term, hidden));
    }
    out.output = stated ? expand(read_term(output), widest) : implied(out.inputs, widest);
    check_output(out);
    return out;
  }

 private:
  [[noreturn]] void bad(std::string_view why) const {
    fail(ErrorCode::InvalidModel, cat("Einsum equation '", text_, "' ", why));
  }

  Term read_term(std::string_view text) const {
    Term term;
    while (!text.empty()) {
      const char c = text.front();
      if (text.starts_with("...") && !term.ellipsis) {
        term.ellipsis = true;
        text.remove_prefix(3);
      } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        (term.ellipsis ? term.after : term.before).push_back(c);
        text.remove_prefix(1);
      } else {
        bad(cat("has an unexpected '", c, "'"));
      }
    }
    return term;
  }

  static Labels expand(const Term& term, std::size_t hidden) {
    Labels out = term.before;
    if (term.ellipsis) {
      for (std::size_t i = hidden; i-- > 0;) out.push_back(EinsumEquation::kEllipsis + static_cast<int>(i));
    }
    out.insert(out.end(), term.after.begin(), term.after.end());
    return out;
  }

  /// The ellipsis, then the letters that appear once, in alphabetical order.
  static Labels implied(const std::vector<Labels>& inputs, std::size_t widest) {
    std::map<int, int> uses;
    for (const Labels& labels : inputs) {
      for (int label : labels) ++uses[label];
    }
    Labels out;
    for (std::size_t i = widest; i-- > 0;) out.push_back(EinsumEquation::kEllipsis + static_cast<int>(i));
    for (const auto& [label, count] : uses) {
      if (count == 1 && label < EinsumEquation::kEllipsis) out.push_back(label);
    }
    return out;
  }

  void check_output(const EinsumEquation& equation) const {
    for (std::size_t i = 0; i < equation.output.size(); ++i) {
      const int label = equation.output[i];
      if (std::count(equation.output.begin(), equation.output.end(), label) > 1) bad("repeats a label in its output");
      const bool known = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                     [&](const Labels& l) { return std::find(l.begin(), l.end(), label) != l.end(); });
      if (!known) bad("has a label in its output that no input has");
    }
  }

  std::string text_;
};

}  // namespace

EinsumEquation EinsumEquation::parse(std::string_view text, const std::vector<std::size_t>& ranks) {
  return Reader(text).read(ranks);
}

}  // namespace infernode::ops
