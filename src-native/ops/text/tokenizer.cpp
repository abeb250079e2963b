#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/mover.h"
#include "ops/text/regex.h"

namespace infernode::ops {
namespace {

using kernel::CountedVector;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using kernel::RunContext;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using text::Assertion;
using text::RegexInstruction;

struct Piece {
  std::size_t begin, end;
};

/// Finds occurrences: the leftmost, and of those the longest. One pass over the text for each.
class Finder {
 public:
  explicit Finder(std::string_view pattern) : program_(text::compile_regex(pattern)) {}

  /// The first occurrence that is not empty and begins at `from` or later.
  std::optional<Piece> find(std::string_view subject, std::size_t from, Look look) const {
    constexpr std::size_t kNowhere = SIZE_MAX;
    std::optional<Piece> best;
    // Where the earliest walk that stands at an instruction began.
    std::vector<std::size_t> now(program_.code.size(), kNowhere), next(now);
    std::vector<std::uint32_t> stack;
    std::optional<char32_t> before = last_before(subject, from);
    std::size_t work = 0;
    for (std::size_t at = from;;) {
      work += program_.code.size();
      if (work > kTextPiece) {
        look();
        work = 0;
      }
      std::size_t end = at;
      std::optional<char32_t> c;
      if (at < subject.size()) c = text::next_code_point(subject, end);
      if (!best) follow(program_.start, at, before, c, now, stack);
      bool alive = false;
      for (std::uint32_t i = 0; i < now.size(); ++i) {
        const std::size_t begin = now[i];
        if (begin == kNowhere || (best && begin > best->begin)) continue;
        const RegexInstruction& instruction = program_.code[i];
        if (instruction.kind == RegexInstruction::Kind::kMatch) {
          if (at > begin && (!best || begin < best->begin || at > best->end)) best = Piece{begin, at};
        } else if (instruction.kind == RegexInstruction::Kind::kCharacter && c && holds(instruction.other, *c)) {
          next[instruction.next] = std::min(next[instruction.next], begin);
          alive = true;
        }
      }
      if (!c || (best && !alive)) return best;
      before = c;
      at = end;
      std::optional<char32_t> after;
      if (std::size_t peek = at; at < subject.size()) after = text::next_code_point(subject, peek);
      std::fill(now.begin(), now.end(), kNowhere);
      for (std::uint32_t i = 0; i < next.size(); ++i) {
        if (next[i] != kNowhere) follow(i, next[i], before, after, now, stack);
      }
      std::fill(next.begin(), next.end(), kNowhere);
    }
  }

 private:
  bool holds(std::uint32_t set, char32_t c) const {
    const auto& ranges = program_.sets[set];
    const auto above =
        std::upper_bound(ranges.begin(), ranges.end(), c,
                         [](char32_t value, const text::CodeRange& range) { return value < range.first; });
    return above != ranges.begin() && c <= std::prev(above)->last;
  }

  static std::optional<char32_t> last_before(std::string_view subject, std::size_t at) {
    std::size_t begin = at;
    while (begin > 0 && at - begin < 4) {
      --begin;
      std::size_t end = begin;
      const char32_t c = text::next_code_point(subject, end);
      if (end == at) return c;
    }
    return std::nullopt;
  }

  static bool is_word(std::optional<char32_t> c) {
    return c && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_');
  }

  static bool met(Assertion assertion, std::optional<char32_t> before, std::optional<char32_t> after) {
    switch (assertion) {
      case Assertion::kBeginText:
        return !before;
      case Assertion::kEndText:
        return !after;
      case Assertion::kBeginLine:
        return !before || *before == '\n';
      case Assertion::kEndLine:
        return !after || *after == '\n';
      case Assertion::kWordBoundary:
        return is_word(before) != is_word(after);
      case Assertion::kNoWordBoundary:
        return is_word(before) == is_word(after);
    }
    return false;
  }

  /// Marks all instructions that are reached from `first` without a character, for a walk that began at `begin`.
  void follow(std::uint32_t first, std::size_t begin, std::optional<char32_t> before, std::optional<char32_t> after,
              std::vector<std::size_t>& reached, std::vector<std::uint32_t>& stack) const {
    stack.push_back(first);
    while (!stack.empty()) {
      const std::uint32_t at = stack.back();
      stack.pop_back();
      if (reached[at] <= begin) continue;
      reached[at] = begin;
      const RegexInstruction& instruction = program_.code[at];
      if (instruction.kind == RegexInstruction::Kind::kSplit) stack.push_back(instruction.other);
      if (instruction.kind == RegexInstruction::Kind::kSplit ||
          (instruction.kind == RegexInstruction::Kind::kAssert && met(instruction.assertion, before, after))) {
        stack.push_back(instruction.next);
      }
    }
  }

  text::RegexProgram program_;
};

/// Cuts each string into tokens: the occurrences of `tokenexp`, or what stands between those of the separators, or (one
/// separator that is empty) characters. Rows are filled up with `pad_value`; `mark` puts a start and an end around
/// them.
class Tokenizer final : public Kernel {
 public:
  explicit Tokenizer(KernelInfo& info)
      : mark_(info.attributes().get_int("mark") != 0),
        pad_(info.attributes().get_string("pad_value")),
        least_(info.attributes().get_int("mincharnum")) {
    INFERNODE_CHECK(least_ > 0, ErrorCode::InvalidModel, "mincharnum is ", least_, ", but must be positive");
    const std::string expression = info.attributes().get_string("tokenexp", "");
    const auto separators = info.attributes().get_strings("separators");
    INFERNODE_CHECK(expression.empty() != separators.empty(), ErrorCode::InvalidModel,
                    "exactly one of separators and tokenexp must be given");
    if (!expression.empty()) {
      token_.emplace(expression);
      return;
    }
    by_character_ = separators.size() == 1 && separators[0].empty();
    if (by_character_) return;
    for (const std::string& separator : separators) {
      INFERNODE_CHECK(!separator.empty(), ErrorCode::InvalidModel, "an empty separator among others");
      separators_.emplace_back(separator);
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    INFERNODE_CHECK(x.rank() == 1 || x.rank() == 2, ErrorCode::InvalidArgument, "Tokenizer: X is ", x.to_string(),
                    ", but must have one or two dims");
    const std::span<const std::string> texts = x.span<std::string>();
    const auto look = [&] { ctx.run().check(); };
    kernel::Watch watch(ctx.run());
    CountedVector<Pieces> tokens(ctx.run());
    tokens.reserve(texts.size());
    std::size_t width = 0;
    for (const std::string& subject : texts) {
      watch.did(100);
      tokens.push_back(cut(ctx.run(), subject, look));
      width = std::max(width, tokens.back().size());
    }
    if (width > 0 && mark_) width += 2;
    Shape shape = x.shape();
    shape.push_back(static_cast<std::int64_t>(width));
    const Tensor out = ctx.output(0, DType::String, shape);
    if (width == 0) return;
    std::string* to = out.mutable_data<std::string>();
    Mover mover(ctx.run());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::string* const row = to + i * width;
      std::size_t at = 0;
      if (mark_) row[at++] = "\x02";
      for (const Piece& piece : tokens[i]) {
        row[at].clear();
        mover.append(row[at++], std::string_view(texts[i]).substr(piece.begin, piece.end - piece.begin));
      }
      if (mark_) row[at++] = "\x03";
      for (; at < width; ++at) mover.set(row[at], pad_);
    }
  }

 private:
  using Pieces = CountedVector<Piece>;

  Pieces cut(const RunContext& run, std::string_view subject, Look look) const {
    Pieces pieces(run);
    TextWatch watch(look);
    if (by_character_) {
      for (std::size_t at = 0; at < subject.size();) {
        watch.at(at);
        const std::size_t begin = at;
        text::next_code_point(subject, at);
        pieces.push_back({begin, at});
      }
    } else if (token_) {
      for (auto found = token_->find(subject, 0, look); found; found = token_->find(subject, found->end, look)) {
        watch.at(found->end);
        pieces.push_back(*found);
      }
    } else {
      pieces.push_back({0, subject.size()});
      for (const Finder& separator : separators_) pieces = split(subject, pieces, separator, look);
    }
    std::erase_if(pieces, [&](const Piece& piece) { return !long_enough(subject, piece, look); });
    return pieces;
  }

  static Pieces split(std::string_view subject, const Pieces& pieces, const Finder& separator, Look look) {
    Pieces out(pieces.get_allocator());
    TextWatch watch(look);
    for (const Piece& piece : pieces) {
      watch.at(piece.begin);
      const std::string_view part = subject.substr(piece.begin, piece.end - piece.begin);
      std::size_t from = 0;
      for (auto found = separator.find(part, 0, look); found; found = separator.find(part, from, look)) {
        watch.at(piece.begin + from);
        out.push_back({piece.begin + from, piece.begin + found->begin});
        from = found->end;
      }
      out.push_back({piece.begin + from, piece.end});
    }
    return out;
  }

  bool long_enough(std::string_view subject, const Piece& piece, Look look) const {
    std::int64_t characters = 0;
    TextWatch watch(look);
    for (std::size_t at = piece.begin; at < piece.end && characters < least_; ++characters) {
      watch.at(at - piece.begin);
      text::next_code_point(subject, at);
    }
    return characters >= least_;
  }

  bool mark_, by_character_ = false;
  std::string pad_;
  std::int64_t least_;
  std::optional<Finder> token_;
  std::vector<Finder> separators_;
};

void infer_tokenizer(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::String);
  if (const graph::SymShape* x = ctx.input_shape(0)) {
    INFERNODE_CHECK(x->size() == 1 || x->size() == 2, ErrorCode::ShapeMismatch, "X has ", x->size(),
                    " dims, but must have one or two");
    graph::SymShape shape = *x;
    shape.push_back(graph::Dim::unknown());
    ctx.set_output_shape(0, std::move(shape));
  }
}

}  // namespace

void register_tokenizer(kernel::OpRegistrar& r) {
  r.op("Tokenizer", "com.microsoft").version(1, "X:T -> Y:T; T = string").infer(infer_tokenizer).kernel<Tokenizer>();
}

}  // namespace infernode::ops
