#include <algorithm>
#include <map>

#include "ops/text/regex.h"

namespace infernode::ops::text {
namespace {

using Kind = RegexInstruction::Kind;

constexpr std::uint16_t kDead = 0xFFFF;
/// Limits of the table of subsets: its entries, and the instructions looked at while it is made.
constexpr std::size_t kMaxEntries = 1 << 18, kMaxWork = 4'000'000;
constexpr std::size_t kCheckEvery = 1 << 16;

bool is_word(std::optional<char32_t> c) {
  return c && (*c == '_' || (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z'));
}

bool contains(const std::vector<CodeRange>& ranges, char32_t c) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t x, const CodeRange& r) { return x < r.first; });
  return after != ranges.begin() && c <= (after - 1)->last;
}

}  // namespace

/// Instructions in the order they were added; cleared in constant time.
class Regex::StateSet {
 public:
  explicit StateSet(std::size_t size) : at_(size) {}
  bool add(std::uint32_t state) {
    const std::uint32_t place = at_[state];
    if (place < list_.size() && list_[place] == state) return false;
    at_[state] = static_cast<std::uint32_t>(list_.size());
    list_.push_back(state);
    return true;
  }
  void clear() { list_.clear(); }
  const std::vector<std::uint32_t>& list() const { return list_; }

 private:
  std::vector<std::uint32_t> list_, at_;
};

Regex::Regex(std::string_view pattern) : program_(compile_regex(pattern)) {
  std::vector<char32_t> begins{0};
  for (const auto& set : program_.sets) {
    for (const CodeRange& r : set) {
      begins.push_back(r.first);
      if (r.last < kMaxCodePoint) begins.push_back(r.last + 1);
    }
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  class_begins_ = std::move(begins);
  build_table();
}

std::size_t Regex::class_of(char32_t c) const {
  return static_cast<std::size_t>(std::upper_bound(class_begins_.begin(), class_begins_.end(), c) -
                                  class_begins_.begin()) -
         1;
}

/// Adds to `set` what can be reached from `first` without a character.
void Regex::close(std::uint32_t first, const Around& around, StateSet& set, std::vector<std::uint32_t>& stack) const {
  const auto holds = [&](Assertion assertion) {
    switch (assertion) {
      case Assertion::kBeginText:
        return !around.before;
      case Assertion::kEndText:
        return !around.after;
      case Assertion::kBeginLine:
        return !around.before || *around.before == '\n';
      case Assertion::kEndLine:
        return !around.after || *around.after == '\n';
      case Assertion::kWordBoundary:
        return is_word(around.before) != is_word(around.after);
      case Assertion::kNoWordBoundary:
        return is_word(around.before) == is_word(around.after);
    }
    return false;
  };
  stack.push_back(first);
  while (!stack.empty()) {
    const std::uint32_t at = stack.back();
    stack.pop_back();
    if (!set.add(at)) continue;
    const RegexInstruction& instruction = program_.code[at];
    if (instruction.kind == Kind::kSplit) {
      stack.push_back(instruction.other);
      stack.push_back(instruction.next);
    } else if (instruction.kind == Kind::kAssert && holds(instruction.assertion)) {
      stack.push_back(instruction.next);
    }
  }
}

/// Subset construction. Assertions about the text's begin hold in the start state only, those about its end are left in
/// a state and followed when the text ends there; other assertions look at both neighbours and leave the table empty.
void Regex::build_table() {
  const std::size_t classes = class_begins_.size();
  if (classes > kDead) return;
  for (const RegexInstruction& i : program_.code) {
    if (i.kind == Kind::kAssert && i.assertion != Assertion::kBeginText && i.assertion != Assertion::kEndText) return;
  }
  for (char32_t c = 0; c < ascii_class_.size(); ++c) ascii_class_[c] = static_cast<std::uint16_t>(class_of(c));

  StateSet reached(program_.code.size());
  std::vector<std::uint32_t> stack;
  std::map<std::vector<std::uint32_t>, std::uint16_t> numbers;
  std::vector<std::vector<std::uint32_t>> states;
  std::vector<std::uint16_t> table;
  std::vector<std::uint8_t> accepts;
  std::size_t work = 0;
  const auto number_of = [&](bool begin) {
    std::vector<std::uint32_t> key;
    for (const std::uint32_t i : reached.list()) {
      if (program_.code[i].kind != Kind::kSplit) key.push_back(i);
    }
    if (key.empty()) return kDead;
    std::sort(key.begin(), key.end());
    // The start state differs from an equal set met later: there the text's begin is behind.
    const auto [found, fresh] =
        begin ? std::pair(numbers.end(), true) : numbers.try_emplace(key, static_cast<std::uint16_t>(states.size()));
    if (!fresh) return found->second;
    states.push_back(std::move(key));
    return static_cast<std::uint16_t>(states.size() - 1);
  };

  const std::optional<char32_t> some = U' ';
  close(program_.start, {std::nullopt, some}, reached, stack);
  if (number_of(true) == kDead) states.push_back({});
  for (std::size_t s = 0; s < states.size(); ++s) {
    if ((s + 1) * classes > kMaxEntries || work > kMaxWork) return;
    const std::vector<std::uint32_t> from = states[s];
    reached.clear();
    for (const std::uint32_t i : from) {
      close(i, {s == 0 ? std::nullopt : some, std::nullopt}, reached, stack);
    }
    const auto& ends = reached.list();
    accepts.push_back(
        std::any_of(ends.begin(), ends.end(), [&](std::uint32_t i) { return program_.code[i].kind == Kind::kMatch; }));
    for (const char32_t c : class_begins_) {
      reached.clear();
      for (const std::uint32_t i : from) {
        const RegexInstruction& instruction = program_.code[i];
        if (instruction.kind != Kind::kCharacter || !contains(program_.sets[instruction.other], c)) continue;
        close(instruction.next, {some, some}, reached, stack);
      }
      work += from.size() + 4 * reached.list().size();
      table.push_back(number_of(false));
      if (work > kMaxWork || states.size() >= kDead) return;
    }
  }
  table_ = std::move(table);
  accepts_ = std::move(accepts);
}

bool Regex::full_match(std::string_view text, Look look) const {
  if (!has_table()) return simulate(text, look);
  const std::size_t classes = class_begins_.size();
  std::size_t state = 0;
  TextWatch watch(look);
  for (std::size_t at = 0; at < text.size();) {
    watch.at(at);
    const auto byte = static_cast<unsigned char>(text[at]);
    std::size_t kind;
    if (byte < 0x80) {
      kind = ascii_class_[byte];
      ++at;
    } else {
      const char32_t c = next_code_point(text, at);
      if (c == kInvalid) return false;
      kind = class_of(c);
    }
    state = table_[state * classes + kind];
    if (state == kDead) return false;
  }
  return accepts_[state] != 0;
}

bool Regex::simulate(std::string_view text, Look look) const {
  StateSet now(program_.code.size()), next(program_.code.size());
  std::vector<std::uint32_t> stack;
  std::size_t at = 0, work = 0;
  Around around;
  const auto read = [&]() -> std::optional<char32_t> {
    if (at >= text.size()) return std::nullopt;
    return next_code_point(text, at);
  };
  around.after = read();
  close(program_.start, around, now, stack);
  while (around.after) {
    const char32_t c = *around.after;
    if (c == kInvalid) return false;
    around = {c, read()};
    next.clear();
    for (const std::uint32_t i : now.list()) {
      const RegexInstruction& instruction = program_.code[i];
      if (instruction.kind != Kind::kCharacter || !contains(program_.sets[instruction.other], c)) continue;
      close(instruction.next, around, next, stack);
    }
    std::swap(now, next);
    if (now.list().empty()) return false;
    work += now.list().size();
    if (work > kCheckEvery) {
      look();
      work = 0;
    }
  }
  return std::any_of(now.list().begin(), now.list().end(),
                     [&](std::uint32_t i) { return program_.code[i].kind == Kind::kMatch; });
}

}  // namespace infernode::ops::text
