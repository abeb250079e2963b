// Pattern -> syntax tree -> automaton.

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "ops/text/regex.h"

namespace infernode::ops::text {
namespace {

using Ranges = std::vector<CodeRange>;

constexpr std::size_t kMaxDepth = 1000;    ///< nested groups
constexpr std::int64_t kMaxRepeat = 1000;  ///< RE2's own limit on {n,m}
constexpr std::size_t kMaxInstructions = 100'000;
constexpr std::size_t kMaxSetRanges = 1'000'000;  ///< over all sets
constexpr std::size_t kMaxFoldings = 10'000;      ///< classes whose other letter cases are looked for

[[noreturn]] void fail_at(std::string_view pattern, std::size_t at, std::string_view reason) {
  constexpr std::size_t kShown = 200;
  fail(ErrorCode::InvalidModel, cat("regular expression \"", pattern.substr(0, kShown),
                                    pattern.size() > kShown ? "...\"" : "\"", " at byte ", at, ": ", reason));
}

Ranges normalized(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  Ranges out;
  for (const CodeRange& r : ranges) {
    if (!out.empty() && r.first <= out.back().last + 1)
      out.back().last = std::max(out.back().last, r.last);
    else
      out.push_back(r);
  }
  return out;
}

Ranges complement(const Ranges& sorted) {
  Ranges out;
  char32_t next = 0;
  for (const CodeRange& r : sorted) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kMaxCodePoint) out.push_back({next, kMaxCodePoint});
  return out;
}

/// Adds what differs by case only. `ranges` are normalized.
Ranges folded(Ranges ranges) {
  std::vector<char32_t> keys;  // of the characters with case in `ranges`
  const auto contains = [&](char32_t c) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t x, const CodeRange& r) { return x < r.first; });
    return after != ranges.begin() && c <= (after - 1)->last;
  };
  const auto for_each_cased = [](auto&& f) {
    for (const auto table : {tables::upper(), tables::lower()}) {
      for (const tables::CaseRange& r : table) {
        for (char32_t c = r.first; c <= r.last; c += r.step) f(c);
      }
    }
  };
  for_each_cased([&](char32_t c) {
    if (contains(c)) keys.push_back(fold_case(c));
  });
  std::sort(keys.begin(), keys.end());
  Ranges more;
  for_each_cased([&](char32_t c) {
    if (std::binary_search(keys.begin(), keys.end(), fold_case(c))) more.push_back({c, c});
  });
  ranges.insert(ranges.end(), more.begin(), more.end());
  return normalized(std::move(ranges));
}

bool is_name_byte(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// ASCII classes, as RE2 has them.
Ranges ascii_class(std::string_view name) {
  if (name == "alnum") return {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
  if (name == "alpha") return {{'A', 'Z'}, {'a', 'z'}};
  if (name == "ascii") return {{0, 0x7F}};
  if (name == "blank") return {{'\t', '\t'}, {' ', ' '}};
  if (name == "cntrl") return {{0, 0x1F}, {0x7F, 0x7F}};
  if (name == "digit") return {{'0', '9'}};
  if (name == "graph") return {{'!', '~'}};
  if (name == "lower") return {{'a', 'z'}};
  if (name == "print") return {{' ', '~'}};
  if (name == "punct") return {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
  if (name == "space") return {{'\t', '\r'}, {' ', ' '}};
  if (name == "upper") return {{'A', 'Z'}};
  if (name == "word") return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  if (name == "xdigit") return {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  return {};
}

struct Node {
  enum class Kind : std::uint8_t { kEmpty, kSet, kAssert, kSequence, kChoice, kRepeat } kind = Kind::kEmpty;
  Assertion assertion = Assertion::kBeginText;
  std::uint32_t set = 0;
  std::int64_t least = 0, most = 0;  ///< kRepeat; most -1: no end
  std::vector<std::uint32_t> children{};
};

struct Flags {
  bool ignore_case = false, multi_line = false, dot_all = false;
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  std::uint32_t parse() {
    const std::uint32_t root = choice(0);
    if (!at_end()) fail_here("unexpected )");
    return root;
  }

  std::vector<Node> nodes;
  std::vector<Ranges> sets;

 private:
  bool at_end() const { return at_ >= pattern_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  bool looking_at(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!looking_at(text)) return false;
    at_ += text.size();
    return true;
  }
  [[noreturn]] void fail_here(std::string_view reason) const { fail_at(pattern_, at_, reason); }

  char32_t character() {
    if (at_end()) fail_here("the pattern ends too early");
    const std::size_t begin = at_;
    const char32_t c = next_code_point(pattern_, at_);
    if (c == kInvalid) fail_at(pattern_, begin, "no valid UTF-8");
    return c;
  }

  std::uint32_t add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }
  std::uint32_t add_set(Ranges ranges) {
    set_ranges_ += ranges.size();
    if (set_ranges_ > kMaxSetRanges) fail_here("the pattern is too large");
    if (sets.empty() || sets.back().size() != ranges.size() ||
        !std::equal(ranges.begin(), ranges.end(), sets.back().begin(),
                    [](const CodeRange& a, const CodeRange& b) { return a.first == b.first && a.last == b.last; })) {
      sets.push_back(std::move(ranges));
    }
    return add({.kind = Node::Kind::kSet, .set = static_cast<std::uint32_t>(sets.size() - 1)});
  }
  std::uint32_t literal(char32_t c) {
    if (!flags_.ignore_case) return add_set({{c, c}});
    // The two ASCII letters with more than two cases: Kelvin's sign and the long s.
    if (c < 0x80) {
      Ranges ranges{{c, c}};
      const char32_t upper = to_upper(c), lower = to_lower(c);
      if (upper != lower) ranges = {{upper, upper}, {lower, lower}};
      if (lower == 'k') ranges.push_back({0x212A, 0x212A});
      if (lower == 's') ranges.push_back({0x017F, 0x017F});
      return add_set(std::move(ranges));
    }
    if (to_upper(c) == c && to_lower(c) == c) return add_set({{c, c}});
    const auto known = folded_literals_.find(c);
    return add_set(known != folded_literals_.end() ? known->second : folded_literals_[c] = with_case({{c, c}}));
  }
  Ranges with_case(Ranges ranges) {
    if (++foldings_ > kMaxFoldings) fail_here("the pattern is too large");
    return folded(std::move(ranges));
  }
  std::uint32_t assertion(Assertion a) { return add({.kind = Node::Kind::kAssert, .assertion = a}); }

  std::uint32_t choice(std::size_t depth) {
    if (depth > kMaxDepth) fail_here("groups nest too deeply");
    Node out{.kind = Node::Kind::kChoice};
    do {
      out.children.push_back(sequence(depth));
    } while (take("|"));
    return out.children.size() == 1 ? out.children[0] : add(std::move(out));
  }

  std::uint32_t sequence(std::size_t depth) {
    Node out{.kind = Node::Kind::kSequence};
    bool repeatable = false;  // whether the last child may be repeated
    while (!at_end() && peek() != '|' && peek() != ')') {
      const std::size_t begin = at_;
      const char c = peek();
      if (c == '*' || c == '+' || c == '?') {
        ++at_;
        repeat(out, repeatable, begin, c == '+' ? 1 : 0, c == '?' ? 1 : -1);
        repeatable = false;
      } else if (std::int64_t least, most; c == '{' && counts(least, most)) {
        repeat(out, repeatable, begin, least, most);
        repeatable = false;
      } else if (take("\\Q")) {
        while (!at_end() && !take("\\E")) out.children.push_back(literal(character()));
        repeatable = !out.children.empty();
      } else if (const auto child = atom(depth)) {
        out.children.push_back(*child);
        repeatable = true;
      } else {
        repeatable = false;  // flags such as (?i)
      }
    }
    if (out.children.size() == 1) return out.children[0];
    return add(std::move(out));
  }

  void repeat(Node& sequence, bool repeatable, std::size_t begin, std::int64_t least, std::int64_t most) {
    if (!repeatable) {
      const bool twice = begin > 0 && !sequence.children.empty();
      fail_at(pattern_, begin, twice ? "bad repetition operator" : "missing argument to repetition operator");
    }
    take("?");  // laziness decides between matches, not whether there is one
    Node node{.kind = Node::Kind::kRepeat, .least = least, .most = most, .children = {sequence.children.back()}};
    sequence.children.back() = add(std::move(node));
  }

  /// Reads {n}, {n,} or {n,m}; anything else is literal text.
  bool counts(std::int64_t& least, std::int64_t& most) {
    std::size_t at = at_ + 1;
    const auto number = [&](std::int64_t& value) {
      const std::size_t begin = at;
      value = 0;
      for (; at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '9'; ++at) {
        value = std::min<std::int64_t>(value * 10 + (pattern_[at] - '0'), kMaxRepeat + 1);
      }
      return at > begin;
    };
    if (!number(least)) return false;
    most = least;
    if (at < pattern_.size() && pattern_[at] == ',') {
      ++at;
      if (!number(most)) most = -1;
    }
    if (at >= pattern_.size() || pattern_[at] != '}') return false;
    if (least > kMaxRepeat || most > kMaxRepeat || (most >= 0 && most < least)) {
      fail_here("invalid repetition size: at most 1000, the second number not below the first");
    }
    at_ = at + 1;
    return true;
  }

  std::optional<std::uint32_t> atom(std::size_t depth) {
    switch (peek()) {
      case '(':
        return group(depth);
      case '[':
        return add_set(bracket());
      case '.':
        ++at_;
        return add_set(flags_.dot_all ? Ranges{{0, kMaxCodePoint}} : Ranges{{0, '\n' - 1}, {'\n' + 1, kMaxCodePoint}});
      case '^':
        ++at_;
        return assertion(flags_.multi_line ? Assertion::kBeginLine : Assertion::kBeginText);
      case '$':
        ++at_;
        return assertion(flags_.multi_line ? Assertion::kEndLine : Assertion::kEndText);
      case '\\':
        return escape();
      default:
        return literal(character());
    }
  }

  std::optional<std::uint32_t> group(std::size_t depth) {
    const std::size_t begin = at_++;
    const Flags outer = flags_;
    if (take("?")) {
      if (looking_at("=") || looking_at("!") || looking_at("<=") || looking_at("<!") || looking_at(">")) {
        fail_at(pattern_, begin, "lookaround and atomic groups are not part of RE2's syntax");
      }
      if (take("P<") || take("<")) {
        const std::size_t name = at_;
        while (is_name_byte(peek())) ++at_;
        const std::string_view text = pattern_.substr(name, at_ - name);
        if (text.empty() || !take(">")) fail_at(pattern_, begin, "invalid named capture group");
        if (std::find(names_.begin(), names_.end(), text) != names_.end()) {
          fail_at(pattern_, begin, "duplicate capture group name");
        }
        names_.push_back(text);
      } else if (read_flags(begin)) {
        return std::nullopt;
      }
    }
    const std::uint32_t inner = choice(depth + 1);
    if (!take(")")) fail_at(pattern_, begin, "missing closing )");
    flags_ = outer;
    return inner;
  }

  /// After "(?": reads flags up to ")" (true: they hold for the rest of the group) or ":" (a group follows).
  bool read_flags(std::size_t begin) {
    Flags next = flags_;
    bool value = true, any = false;
    for (;; any = true) {
      if (at_end()) fail_at(pattern_, begin, "missing closing )");
      const char c = pattern_[at_++];
      if (c == ':' || c == ')') {
        if (!value && !any) break;
        flags_ = next;
        return c == ')';
      }
      if (c == 'i')
        next.ignore_case = value;
      else if (c == 'm')
        next.multi_line = value;
      else if (c == 's')
        next.dot_all = value;
      else if (c == '-' && value)
        value = false;
      else if (c != 'U')  // swaps greedy and lazy
        break;
      if (c == '-') {
        if (peek() == ':' || peek() == ')') break;
      }
    }
    fail_at(pattern_, begin, "invalid or unsupported group flags; RE2 knows i, m, s and U");
  }

  /// \d, \pL, \p{Greek} and their negations at the cursor.
  std::optional<Ranges> class_escape() {
    const std::size_t begin = at_;
    const char c = peek(1);
    std::string_view name;
    switch (c | 0x20) {
      case 'd':
        name = "digit";
        break;
      case 's':
        name = "space";
        break;
      case 'w':
        name = "word";
        break;
      case 'p':
        break;
      default:
        return std::nullopt;
    }
    bool negated = (c & 0x20) == 0;
    at_ += 2;
    Ranges ranges;
    if (!name.empty()) {
      // RE2's \s lacks the vertical tab that [[:space:]] has.
      ranges = name == "space" ? Ranges{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}} : ascii_class(name);
    } else {
      if (take("{")) {
        if (take("^")) negated = !negated;
        const std::size_t end = pattern_.find('}', at_);
        if (end == std::string_view::npos) fail_at(pattern_, begin, "missing closing }");
        name = pattern_.substr(at_, end - at_);
        at_ = end + 1;
      } else {
        const std::size_t first = at_;
        character();
        name = pattern_.substr(first, at_ - first);
      }
      ranges = property_ranges(name);
      if (ranges.empty()) fail_at(pattern_, begin, cat("no Unicode category or script is named \"", name, "\""));
    }
    if (flags_.ignore_case) ranges = with_case(std::move(ranges));
    return negated ? complement(ranges) : ranges;
  }

  /// One escaped character; the cursor stands on the backslash.
  char32_t escaped_character() {
    const std::size_t begin = at_++;
    const char32_t c = character();
    const auto octal = [&] { return peek() >= '0' && peek() <= '7'; };
    const auto hex_digit = [](char d) -> int {
      if (d >= '0' && d <= '9') return d - '0';
      const int lower = d | 0x20;
      return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    };
    switch (c) {
      case 'a':
        return 7;
      case 'f':
        return 12;
      case 'n':
        return 10;
      case 'r':
        return 13;
      case 't':
        return 9;
      case 'v':
        return 11;
      case 'x': {
        char32_t value = 0;
        if (take("{")) {
          std::size_t digits = 0;
          for (; hex_digit(peek()) >= 0; ++at_, ++digits) {
            value = value * 16 + static_cast<char32_t>(hex_digit(peek()));
            if (value > kMaxCodePoint) fail_at(pattern_, begin, "character beyond 10FFFF");
          }
          if (digits == 0 || !take("}")) fail_at(pattern_, begin, "invalid \\x{...}");
          return value;
        }
        for (int i = 0; i < 2; ++i, ++at_) {
          if (hex_digit(peek()) < 0) fail_at(pattern_, begin, "\\x needs two hexadecimal digits");
          value = value * 16 + static_cast<char32_t>(hex_digit(peek()));
        }
        return value;
      }
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      if (c != '0' && !octal()) fail_at(pattern_, begin, "backreferences are not part of RE2's syntax");
      char32_t value = c - '0';
      for (int i = 0; i < 2 && octal(); ++i) value = value * 8 + static_cast<char32_t>(pattern_[at_++] - '0');
      return value;
    }
    const bool word = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (word) {
      fail_at(pattern_, begin,
              cat("the escape ", pattern_.substr(begin, at_ - begin), " is not part of RE2's syntax",
                  c == 'C' ? " for text (it would match one byte)" : ""));
    }
    return c;
  }

  std::uint32_t escape() {
    if (auto ranges = class_escape()) return add_set(std::move(*ranges));
    if (take("\\A")) return assertion(Assertion::kBeginText);
    if (take("\\z")) return assertion(Assertion::kEndText);
    if (take("\\b")) return assertion(Assertion::kWordBoundary);
    if (take("\\B")) return assertion(Assertion::kNoWordBoundary);
    return literal(escaped_character());
  }

  Ranges bracket() {
    const std::size_t begin = at_++;
    const bool negated = take("^");
    Ranges plain, ready;  // `ready` took the letter case into account already
    for (bool first = true;; first = false) {
      if (at_end()) fail_at(pattern_, begin, "missing closing ]");
      if (peek() == ']' && !first) break;
      if (take("[:")) {
        const std::size_t end = pattern_.find(":]", at_);
        if (end == std::string_view::npos) {
          at_ -= 2;
        } else {
          std::string_view name = pattern_.substr(at_, end - at_);
          const bool inverted = name.starts_with("^");
          Ranges ranges = ascii_class(inverted ? name.substr(1) : name);
          if (ranges.empty()) fail_here("unknown [:class:]");
          at_ = end + 2;
          if (flags_.ignore_case) ranges = with_case(std::move(ranges));
          if (inverted) ranges = complement(ranges);
          ready.insert(ready.end(), ranges.begin(), ranges.end());
          continue;
        }
      }
      if (peek() == '\\') {
        if (const auto ranges = class_escape()) {
          ready.insert(ready.end(), ranges->begin(), ranges->end());
          continue;
        }
      }
      const std::size_t at = at_;
      const char32_t from = peek() == '\\' ? escaped_character() : character();
      char32_t to = from;
      if (peek() == '-' && at_ + 1 < pattern_.size() && peek(1) != ']') {
        ++at_;
        to = peek() == '\\' ? escaped_character() : character();
        if (to < from) fail_at(pattern_, at, "invalid character class range");
      }
      plain.push_back({from, to});
    }
    ++at_;
    plain = normalized(std::move(plain));
    if (flags_.ignore_case) plain = with_case(std::move(plain));
    plain.insert(plain.end(), ready.begin(), ready.end());
    plain = normalized(std::move(plain));
    return negated ? complement(plain) : plain;
  }

  std::string_view pattern_;
  std::size_t at_ = 0, set_ranges_ = 0;
  Flags flags_;
  std::vector<std::string_view> names_;  // of capture groups so far
  std::map<char32_t, Ranges> folded_literals_;
  std::size_t foldings_ = 0;
};

/// Builds backwards: each node is emitted with the instruction that follows it.
class Compiler {
 public:
  Compiler(std::string_view pattern, const std::vector<Node>& nodes, RegexProgram& program)
      : pattern_(pattern), nodes_(nodes), program_(program) {}

  std::uint32_t emit(std::uint32_t index, std::uint32_t next) {
    count();
    const Node& node = nodes_[index];
    switch (node.kind) {
      case Node::Kind::kEmpty:
        return next;
      case Node::Kind::kSet:
        return add({.kind = RegexInstruction::Kind::kCharacter, .next = next, .other = node.set});
      case Node::Kind::kAssert:
        return add({.kind = RegexInstruction::Kind::kAssert, .assertion = node.assertion, .next = next});
      case Node::Kind::kSequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) next = emit(*child, next);
        return next;
      case Node::Kind::kChoice: {
        std::uint32_t first = emit(node.children.back(), next);
        for (auto child = node.children.rbegin() + 1; child != node.children.rend(); ++child) {
          first = split(emit(*child, next), first);
        }
        return first;
      }
      case Node::Kind::kRepeat:
        break;
    }
    const std::uint32_t child = node.children[0], after = next;
    if (node.most < 0) {
      const std::uint32_t loop = split(0, after);
      const std::uint32_t body = emit(child, loop);
      program_.code[loop].next = body;
      next = loop;
    } else {
      for (std::int64_t i = node.least; i < node.most; ++i) next = split(emit(child, next), after);
    }
    for (std::int64_t i = 0; i < node.least; ++i) next = emit(child, next);
    return next;
  }

  std::uint32_t add(RegexInstruction instruction) {
    count();
    program_.code.push_back(instruction);
    return static_cast<std::uint32_t>(program_.code.size() - 1);
  }

 private:
  std::uint32_t split(std::uint32_t a, std::uint32_t b) {
    return add({.kind = RegexInstruction::Kind::kSplit, .next = a, .other = b});
  }
  /// Bounds nested repetitions, of empty expressions too.
  void count() {
    if (++steps_ > 2 * kMaxInstructions) fail_at(pattern_, 0, "the pattern is too large once repetitions are unrolled");
  }

  std::string_view pattern_;
  const std::vector<Node>& nodes_;
  RegexProgram& program_;
  std::size_t steps_ = 0;
};

}  // namespace

RegexProgram compile_regex(std::string_view pattern) {
  Parser parser(pattern);
  const std::uint32_t root = parser.parse();
  RegexProgram program;
  program.sets = std::move(parser.sets);
  Compiler compiler(pattern, parser.nodes, program);
  const std::uint32_t match = compiler.add({});
  program.start = compiler.emit(root, match);
  return program;
}

}  // namespace infernode::ops::text
