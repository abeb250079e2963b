#include "onnx/flatbuffer.h"

#include <algorithm>

namespace infernode::onnx::flat {
namespace {

/// Offsets between tables and their vtables are signed 32-bit numbers.
constexpr std::size_t kMaxBytes = (std::size_t{1} << 31) - 1;
constexpr std::size_t kMaxAlignment = 64;
/// What a table takes of the allowance: about what callers make of it.
constexpr std::uint64_t kTableCost = 256;

}  // namespace

void Source::fail_at(std::uint64_t at, std::string_view what) {
  fail(ErrorCode::InvalidModel, cat("It is damaged near byte ", at, ": ", what, "."));
}

void Source::check(std::uint64_t at, std::uint64_t size, const char* what) const {
  if (at > bytes_.size() || size > bytes_.size() - at) fail_at(at, cat(what, " leads out of the file"));
}

void Source::spend(std::uint64_t amount) const {
  if (amount > allowance_) fail(ErrorCode::InvalidModel, "It is damaged: it refers to its own parts without end.");
  allowance_ -= amount;
}

std::uint64_t Source::follow(std::uint64_t at, const char* what, std::uint64_t cost) const {
  const std::uint64_t to = at + load<std::uint32_t>(at, what);
  if (to == at) fail_at(at, cat(what, " has no place"));
  check(to, 4, what);
  spend(cost);
  return to;
}

namespace {

std::string_view text_at(const Source& source, std::uint64_t at) {
  const auto size = source.load<std::uint32_t>(at, "a string");
  source.check(at + 4, size, "a string");
  source.spend(size);
  return source.bytes().substr(at + 4, size);
}

}  // namespace

Table Offsets::table(std::size_t i) const { return {*source_, source_->follow(at_ + 4 * i, "a table", kTableCost)}; }

std::string_view Offsets::text(std::size_t i) const {
  return text_at(*source_, source_->follow(at_ + 4 * i, "a string"));
}

Table Table::root(const Source& source) { return {source, source.follow(0, "the root table", kTableCost)}; }

Table::Table(const Source& source, std::uint64_t at) : source_(&source), at_(at) {
  const std::int64_t vtable = static_cast<std::int64_t>(at) - source.load<std::int32_t>(at, "a table");
  if (vtable < 0) Source::fail_at(at, "a table's layout leads out of the file");
  vtable_ = static_cast<std::uint64_t>(vtable);
  vtable_size_ = source.load<std::uint16_t>(vtable_, "a table's layout");
  size_ = source.load<std::uint16_t>(vtable_ + 2, "a table's layout");
  if (vtable_size_ < 4 || vtable_size_ % 2 != 0 || size_ < 4)
    Source::fail_at(vtable_, "a table's layout is impossible");
  source.check(vtable_, vtable_size_, "a table's layout");
  source.check(at_, size_, "a table");
}

std::uint64_t Table::find(int field, std::uint64_t size) const {
  const std::uint64_t entry = 4 + 2 * static_cast<std::uint64_t>(field);
  if (entry + 2 > vtable_size_) return 0;
  const auto offset = source_->load<std::uint16_t>(vtable_ + entry, "a table's layout");
  if (offset == 0) return 0;
  if (offset < 4 || offset + size > size_) Source::fail_at(vtable_ + entry, "a field lies outside of its table");
  return at_ + offset;
}

std::string_view Table::text(int field) const {
  const std::uint64_t at = find(field, 4);
  return at == 0 ? std::string_view() : text_at(*source_, source_->follow(at, "a string"));
}

std::optional<Table> Table::table(int field) const {
  const std::uint64_t at = find(field, 4);
  if (at == 0) return std::nullopt;
  return Table(*source_, source_->follow(at, "a table", kTableCost));
}

Offsets Table::offsets(int field) const {
  const std::uint64_t at = find(field, 4);
  if (at == 0) return {};
  const std::uint64_t vector = source_->follow(at, "a list");
  const auto count = source_->load<std::uint32_t>(vector, "a list");
  source_->check(vector + 4, std::uint64_t{count} * 4, "a list");
  return {*source_, vector + 4, count};
}

Bytes Table::bytes(int field, std::size_t size) const {
  const std::uint64_t at = find(field, 4);
  if (at == 0) return {};
  const std::uint64_t vector = source_->follow(at, "a list");
  const auto count = source_->load<std::uint32_t>(vector, "a list");
  source_->check(vector + 4, std::uint64_t{count} * size, "a list");
  return {source_->bytes().substr(vector + 4, count * size), count};
}

void Builder::reserve(std::size_t more) {
  INFERNODE_CHECK(more <= kMaxBytes && size_ <= kMaxBytes - more, ErrorCode::InvalidModel,
                  "the model takes more than the 2 GB that the ORT format allows: write it as .onnx");
  if (size_ + more <= data_.size()) return;
  std::vector<std::byte> larger(std::max(2 * data_.size(), size_ + more));
  std::copy(data_.end() - static_cast<std::ptrdiff_t>(size_), data_.end(),
            larger.end() - static_cast<std::ptrdiff_t>(size_));
  data_ = std::move(larger);
}

void Builder::push(const void* bytes, std::size_t size) {
  reserve(size);
  size_ += size;
  if (size > 0) std::memcpy(data_.data() + (data_.size() - size_), bytes, size);
}

void Builder::align(std::size_t size, std::size_t alignment) {
  static constexpr char kZeros[kMaxAlignment] = {};
  push(kZeros, (alignment - (size_ + size) % alignment) % alignment);
}

void Builder::push_offset(Position to) {
  const auto distance = static_cast<std::uint32_t>(size_ + 4 - to);
  push(&distance, 4);
}

Position Builder::bytes(std::string_view data, std::size_t count, std::size_t alignment) {
  align(data.size(), std::max<std::size_t>(alignment, 4));
  push(data.data(), data.size());
  const auto n = static_cast<std::uint32_t>(count);
  push(&n, 4);
  return here();
}

Position Builder::text(std::string_view text) {
  if (const auto at = texts_.find(text); at != texts_.end()) return at->second;
  align(text.size() + 1, 4);
  push("", 1);
  push(text.data(), text.size());
  const auto n = static_cast<std::uint32_t>(text.size());
  push(&n, 4);
  texts_.emplace(text, here());
  return here();
}

Position Builder::offsets(std::span<const Position> items) {
  align(4 * items.size(), 4);
  for (std::size_t i = items.size(); i-- > 0;) push_offset(items[i]);
  const auto n = static_cast<std::uint32_t>(items.size());
  push(&n, 4);
  return here();
}

Position Builder::table(TableFields fields) {
  // Wide fields first, at the table's end: then none needs padding but the last.
  auto& list = fields.fields_;
  std::ranges::stable_sort(list, std::greater<>(), &TableFields::Field::size);
  const std::size_t end = size_;
  int most = -1;
  std::vector<std::pair<int, std::size_t>> places;  // field, position
  for (const TableFields::Field& f : list) {
    align(f.size, f.size);
    if (f.is_offset)
      push_offset(static_cast<Position>(f.bits));
    else
      push(&f.bits, f.size);  // little endian: the low bytes come first
    places.emplace_back(f.field, size_);
    most = std::max(most, f.field);
  }
  align(4, 4);
  const std::int32_t placeholder = 0;
  push(&placeholder, 4);
  const Position table = here();
  std::vector<std::uint16_t> vtable(static_cast<std::size_t>(most) + 3);
  vtable[0] = static_cast<std::uint16_t>(2 * vtable.size());
  vtable[1] = static_cast<std::uint16_t>(table - end);
  for (const auto& [field, at] : places)
    vtable[static_cast<std::size_t>(field) + 2] = static_cast<std::uint16_t>(table - at);
  auto known = vtables_.find(vtable);
  if (known == vtables_.end()) {
    push(vtable.data(), 2 * vtable.size());
    known = vtables_.emplace(vtable, here()).first;
  }
  const std::int32_t distance = static_cast<std::int32_t>(known->second) - static_cast<std::int32_t>(table);
  std::memcpy(data_.data() + (data_.size() - table), &distance, 4);
  return table;
}

std::vector<std::byte> Builder::finish(Position root, std::string_view identifier) {
  align(8, kMaxAlignment);
  push(identifier.data(), 4);
  push_offset(root);
  data_.erase(data_.begin(), data_.end() - static_cast<std::ptrdiff_t>(size_));
  return std::move(data_);
}

}  // namespace infernode::onnx::flat
