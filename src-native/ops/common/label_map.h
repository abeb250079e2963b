#pragma once
// What LabelEncoder and its like share: keys found by value, and the lists that say them.

#include <bit>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/attributes.h"
#include "kernel/run_context.h"
#include "ops/common/long_text.h"
#include "tensor/dispatch.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// Finds keys by value: strings as they are; numbers by bits, all NaN alike and -0 as 0.
class KeyIndex {
 public:
  KeyIndex() = default;
  /// `keep_last`: of equal keys, the last one counts instead of the first.
  explicit KeyIndex(const tensor::Tensor& keys, bool keep_last = false) : dtype_(keys.dtype()) {
    const auto count = static_cast<std::uint32_t>(keys.numel());
    if (dtype_ == tensor::DType::String) {
      strings_.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto [place, fresh] = strings_.emplace(keys.data<std::string>()[i], i);
        if (!fresh && keep_last) *place = i;
      }
      return;
    }
    numbers_.reserve(count);
    dispatch_numbers(dtype_, [&]<class T>(tensor::TypeTag<T>) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto [place, fresh] = numbers_.try_emplace(code(keys.data<T>()[i]), i);
        if (!fresh && keep_last) place->second = i;
      }
    });
  }

  tensor::DType dtype() const { return dtype_; }
  std::size_t size() const { return strings_.size() + numbers_.size(); }

  /// Calls hit(element, index of its key) or, where there is none, hit(element, -1), over all of x; `look` between.
  template <class F>
  void look_up(const tensor::Tensor& x, Look look, F hit) const {
    constexpr std::size_t kElements = 1 << 15;  // between two looks
    const auto each = [&](auto&& index_at) {
      for (std::size_t i = 0, count = static_cast<std::size_t>(x.numel()); i < count; ++i) {
        if (i % kElements == kElements - 1) look();
        hit(i, index_at(i));
      }
    };
    if (x.dtype() == tensor::DType::String) {
      return each([&, text = x.data<std::string>()](std::size_t i) -> std::int64_t {
        const std::uint32_t* at = strings_.find(text[i]);
        return at == nullptr ? -1 : static_cast<std::int64_t>(*at);
      });
    }
    dispatch_numbers(x.dtype(), [&]<class T>(tensor::TypeTag<T>) {
      each([&, number = x.data<T>()](std::size_t i) -> std::int64_t {
        const auto at = numbers_.find(code(number[i]));
        return at == numbers_.end() ? -1 : static_cast<std::int64_t>(at->second);
      });
    });
  }

  template <class F>
  static void dispatch_numbers(tensor::DType type, F&& f) {
    tensor::dispatch<std::int64_t, float, double, std::int32_t, std::int16_t>(type, "LabelEncoder", f);
  }

 private:
  template <class T>
  static std::uint64_t code(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) return UINT64_MAX;
      return std::bit_cast<std::uint64_t>(static_cast<double>(value) + 0.0);
    } else {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }
  }

  tensor::DType dtype_ = tensor::DType::Undefined;
  TextMap<std::uint32_t> strings_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

/// out[i] = values[index of x[i]], or the only element of `fallback`.
void map_labels(const KeyIndex& keys, const tensor::Tensor& x, const tensor::Tensor& values,
                const tensor::Tensor& fallback, const tensor::Tensor& out, const kernel::RunContext& run = {});

template <class T>
tensor::Tensor list_tensor(const std::vector<T>& list) {
  return tensor::Tensor::of<T>(tensor::Shape{static_cast<std::int64_t>(list.size())}, std::span<const T>(list));
}

/// The one list among `name`_tensor, `name`_strings, `name`_int64s and `name`_floats. Throws InvalidModel unless
/// exactly one is given.
tensor::Tensor label_list(const graph::Attributes& attributes, const std::string& name);
/// What stands for keys that are not known: a tensor of one element of type `type`.
tensor::Tensor label_default(const graph::Attributes& attributes, tensor::DType type);

}  // namespace infernode::ops
