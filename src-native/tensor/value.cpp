#include "tensor/value.h"

#include "base/error.h"

namespace infernode::tensor {
namespace {

[[noreturn]] void fail_kind(const Value& value, const char* wanted) {
  fail(ErrorCode::Internal, cat("a ", wanted, " was expected where the value is ", value.to_string()));
}

}  // namespace

Value::Value(Sequence s) : v_(std::make_shared<const Sequence>(std::move(s))) {}
Value::Value(Map m) : v_(std::make_shared<const Map>(std::move(m))) {}
Value::Value(Sparse s) : v_(std::make_shared<const Sparse>(std::move(s))) {}

const Tensor& Value::tensor() const {
  if (const auto* t = std::get_if<Tensor>(&v_)) return *t;
  fail_kind(*this, "tensor");
}
Tensor& Value::tensor() {
  if (auto* t = std::get_if<Tensor>(&v_)) return *t;
  fail_kind(*this, "tensor");
}
const Sequence& Value::sequence() const {
  if (const auto* s = std::get_if<std::shared_ptr<const Sequence>>(&v_)) return **s;
  fail_kind(*this, "sequence");
}
const Map& Value::map() const {
  if (const auto* m = std::get_if<std::shared_ptr<const Map>>(&v_)) return **m;
  fail_kind(*this, "map");
}
const Optional& Value::optional() const {
  if (const auto* o = std::get_if<Optional>(&v_)) return *o;
  fail_kind(*this, "optional");
}
const Sparse& Value::sparse() const {
  if (const auto* s = std::get_if<std::shared_ptr<const Sparse>>(&v_)) return **s;
  fail_kind(*this, "sparse tensor");
}

size_t Value::bytes() const {
  size_t total = 0;
  if (is_tensor()) total = tensor().bytes();
  if (is_sequence())
    for (const Value& item : sequence().items) total += item.bytes();
  if (is_map()) {
    total = map().keys.bytes();
    for (const Value& item : map().values) total += item.bytes();
  }
  if (is_optional() && optional().item) total = optional().item->bytes();
  if (is_sparse()) total = sparse().values.bytes() + sparse().indices.bytes();
  return total;
}

std::string Value::to_string() const {
  if (is_tensor()) return tensor().to_string();
  if (is_sequence()) return cat("sequence(", sequence().items.size(), ")");
  if (is_map()) return cat("map(", map().values.size(), ")");
  if (is_optional()) return cat("optional(", optional().item ? optional().item->to_string() : "", ")");
  if (is_sparse()) return cat("sparse ", name(sparse().values.dtype()), sparse().shape.dims());
  return "empty";
}

}  // namespace infernode::tensor
