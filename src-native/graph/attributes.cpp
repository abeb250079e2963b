#include "graph/attributes.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace infernode::graph {
namespace {

using tensor::Tensor;

constexpr const char* kKinds[] = {
    "an int",   "a float",         "a string",          "a list of ints", "a list of floats", "a list of strings",
    "a tensor", "a sparse tensor", "a list of tensors", "a graph",        "a list of graphs", "a type"};
static_assert(std::variant_size_v<Attribute> == std::size(kKinds));

[[noreturn]] void fail_kind(std::string_view name, const Attribute& value, const char* expected) {
  ErrorContext context;
  context.expected = expected;
  context.actual = kKinds[value.index()];
  fail(ErrorCode::InvalidModel,
       cat("attribute '", name, "' is ", kKinds[value.index()], " where ", expected, " is expected"),
       std::move(context));
}

[[noreturn]] void fail_missing(std::string_view name) {
  fail(ErrorCode::InvalidModel, cat("required attribute '", name, "' is missing"));
}

const Attribute& required(const Attributes& attributes, std::string_view name) {
  const Attribute* found = attributes.find(name);
  if (!found) fail_missing(name);
  return *found;
}

int64_t as_int(std::string_view name, const Attribute& a) {
  if (const auto* v = std::get_if<int64_t>(&a)) return *v;
  fail_kind(name, a, "an int");
}

float as_float(std::string_view name, const Attribute& a) {
  if (const auto* v = std::get_if<float>(&a)) return *v;
  if (const auto* v = std::get_if<int64_t>(&a)) return static_cast<float>(*v);
  fail_kind(name, a, "a float");
}

const std::string& as_string(std::string_view name, const Attribute& a) {
  if (const auto* v = std::get_if<std::string>(&a)) return *v;
  fail_kind(name, a, "a string");
}

/// An empty list in a file has no element type: any empty list is an empty list of anything.
bool is_empty_list(const Attribute& a) {
  const auto empty = [](const auto* list) { return list && list->empty(); };
  return empty(std::get_if<std::vector<int64_t>>(&a)) || empty(std::get_if<std::vector<float>>(&a)) ||
         empty(std::get_if<std::vector<std::string>>(&a));
}

template <class T>
const T* get_if_present(const Attributes& attributes, std::string_view name, const char* expected) {
  const Attribute* a = attributes.find(name);
  if (!a) return nullptr;
  const T* v = std::get_if<T>(a);
  if (!v) fail_kind(name, *a, expected);
  return v;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.raw() == b.raw()) return true;
  if (a.dtype() == tensor::DType::String) return std::ranges::equal(a.span<std::string>(), b.span<std::string>());
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

bool same(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* t = std::get_if<Tensor>(&a)) return same_elements(*t, std::get<Tensor>(b));
  if (const auto* list = std::get_if<std::vector<Tensor>>(&a)) {
    return std::ranges::equal(*list, std::get<std::vector<Tensor>>(b), same_elements);
  }
  if (const auto* s = std::get_if<std::shared_ptr<const tensor::Sparse>>(&a)) {
    const auto& other = std::get<std::shared_ptr<const tensor::Sparse>>(b);
    return *s == other || ((*s)->shape == other->shape && same_elements((*s)->values, other->values) &&
                           same_elements((*s)->indices, other->indices));
  }
  return std::visit(
      [&]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, std::vector<Tensor>>)
          return false;
        else
          return v == std::get<T>(b);
      },
      a);
}

}  // namespace

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

void Attributes::set(std::string name, Attribute value) {
  for (auto& [key, old] : items_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

void Attributes::erase(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

int64_t Attributes::get_int(std::string_view name, int64_t fallback) const {
  const Attribute* a = find(name);
  return a ? as_int(name, *a) : fallback;
}
int64_t Attributes::get_int(std::string_view name) const { return as_int(name, required(*this, name)); }

float Attributes::get_float(std::string_view name, float fallback) const {
  const Attribute* a = find(name);
  return a ? as_float(name, *a) : fallback;
}
float Attributes::get_float(std::string_view name) const { return as_float(name, required(*this, name)); }

std::string Attributes::get_string(std::string_view name, std::string_view fallback) const {
  const Attribute* a = find(name);
  return a ? as_string(name, *a) : std::string(fallback);
}
std::string Attributes::get_string(std::string_view name) const { return as_string(name, required(*this, name)); }

std::vector<int64_t> Attributes::get_ints(std::string_view name, std::vector<int64_t> fallback) const {
  const Attribute* a = find(name);
  if (!a) return fallback;
  if (const auto* v = std::get_if<std::vector<int64_t>>(a)) return *v;
  if (const auto* v = std::get_if<int64_t>(a)) return {*v};
  if (is_empty_list(*a)) return {};
  fail_kind(name, *a, "a list of ints");
}

std::vector<float> Attributes::get_floats(std::string_view name, std::vector<float> fallback) const {
  const Attribute* a = find(name);
  if (!a) return fallback;
  if (const auto* v = std::get_if<std::vector<float>>(a)) return *v;
  if (const auto* v = std::get_if<std::vector<int64_t>>(a)) return std::vector<float>(v->begin(), v->end());
  if (std::holds_alternative<float>(*a) || std::holds_alternative<int64_t>(*a)) return {as_float(name, *a)};
  if (is_empty_list(*a)) return {};
  fail_kind(name, *a, "a list of floats");
}

std::vector<std::string> Attributes::get_strings(std::string_view name, std::vector<std::string> fallback) const {
  const Attribute* a = find(name);
  if (!a) return fallback;
  if (const auto* v = std::get_if<std::vector<std::string>>(a)) return *v;
  if (const auto* v = std::get_if<std::string>(a)) return {*v};
  if (is_empty_list(*a)) return {};
  fail_kind(name, *a, "a list of strings");
}

const Tensor* Attributes::get_tensor(std::string_view name) const {
  return get_if_present<Tensor>(*this, name, "a tensor");
}

std::shared_ptr<Graph> Attributes::get_graph(std::string_view name) const {
  const auto* g = get_if_present<std::shared_ptr<Graph>>(*this, name, "a graph");
  return g ? *g : nullptr;
}

const ValueType* Attributes::get_type(std::string_view name) const {
  return get_if_present<ValueType>(*this, name, "a type");
}

bool Attributes::operator==(const Attributes& other) const {
  return size() == other.size() && std::ranges::all_of(items_, [&](const auto& item) {
           const Attribute* found = other.find(item.first);
           return found && same(item.second, *found);
         });
}

}  // namespace infernode::graph
