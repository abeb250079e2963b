#include "tensor/value.h"

#include "base/error.h"

namespace infernode::tensor {
namespace {

/// What kind a value has, the model says: where its bodies give others than they declare, nobody else can know.
[[noreturn]] void fail_kind(const Value& value, const char* wanted) {
  fail(ErrorCode::InvalidModel, cat("a ", wanted, " was expected where the value is ", value.to_string()));
}

}  // namespace

Value::Value(Sequence s) : kind_(Kind::Sequence), other_(std::make_shared<const Sequence>(std::move(s))) {}
Value::Value(Map m) : kind_(Kind::Map), other_(std::make_shared<const Map>(std::move(m))) {}
Value::Value(Optional o) : kind_(Kind::Optional), other_(std::make_shared<const Optional>(std::move(o))) {}
Value::Value(Sparse s) : kind_(Kind::Sparse), other_(std::make_shared<const Sparse>(std::move(s))) {}

template <class T>
const T& Value::other(Kind kind, const char* wanted) const {
  if (kind_ != kind) fail_kind(*this, wanted);
  return *static_cast<const T*>(other_.get());
}

const Tensor& Value::tensor() const {
  if (!is_tensor()) fail_kind(*this, "tensor");
  return tensor_;
}
Tensor& Value::tensor() {
  if (!is_tensor()) fail_kind(*this, "tensor");
  return tensor_;
}
const Sequence& Value::sequence() const { return other<Sequence>(Kind::Sequence, "sequence"); }
const Map& Value::map() const { return other<Map>(Kind::Map, "map"); }
const Optional& Value::optional() const { return other<Optional>(Kind::Optional, "optional"); }
const Sparse& Value::sparse() const { return other<Sparse>(Kind::Sparse, "sparse tensor"); }

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
