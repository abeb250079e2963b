#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace infernode {

/// A vector that holds up to N elements in place and moves to the heap beyond. For small trivially copyable values
/// (dims, strides, axes, ids). Iterators are plain pointers and die on growth, as with std::vector.
template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && N > 0);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() noexcept = default;
  explicit InlineVector(size_t count, T value = T{}) { resize(count, value); }
  InlineVector(std::initializer_list<T> items) { append({items.begin(), items.size()}); }
  InlineVector(std::span<const T> items) { append(items); }
  InlineVector(const T* first, const T* last) { append({first, last}); }
  InlineVector(const InlineVector& other) { append(other); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  ~InlineVector() = default;

  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  InlineVector& operator=(std::initializer_list<T> items) {
    assign({items.begin(), items.size()});
    return *this;
  }

  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ ? heap_.get() : inline_; }
  const T* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](size_t i) noexcept { return data()[i]; }
  const T& operator[](size_t i) const noexcept { return data()[i]; }
  T& front() noexcept { return data()[0]; }
  const T& front() const noexcept { return data()[0]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }

  std::span<T> span() noexcept { return {data(), size_}; }
  std::span<const T> span() const noexcept { return {data(), size_}; }
  operator std::span<const T>() const noexcept { return span(); }

  void clear() noexcept { size_ = 0; }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow_to(capacity);
  }
  void resize(size_t count, T value = T{}) {
    reserve(count);
    if (count > size_) std::fill(data() + size_, data() + count, value);
    size_ = count;
  }
  /// `items` may be a part of this vector.
  void assign(std::span<const T> items) {
    if (items.size() > capacity_) {
      InlineVector fresh(items);
      take(fresh);
      return;
    }
    std::copy_n(items.data(), items.size(), data());
    size_ = items.size();
  }
  void assign(size_t count, T value) {
    clear();
    resize(count, value);
  }
  void push_back(T value) {
    if (size_ == capacity_) grow_to(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  /// `items` must not be a part of this vector.
  void append(std::span<const T> items) {
    if (items.size() > capacity_ - size_) grow_to(size_ + items.size());
    std::copy_n(items.data(), items.size(), data() + size_);
    size_ += items.size();
  }

  iterator insert(const_iterator position, T value) { return insert(position, std::span<const T>(&value, 1)); }
  /// `items` must not be a part of this vector.
  iterator insert(const_iterator position, std::span<const T> items) {
    const size_t at = static_cast<size_t>(position - begin());
    if (items.size() > capacity_ - size_) grow_to(size_ + items.size());
    T* const where = data() + at;
    std::copy_backward(where, data() + size_, data() + size_ + items.size());
    std::copy_n(items.data(), items.size(), where);
    size_ += items.size();
    return where;
  }
  iterator insert(const_iterator position, const T* first, const T* last) { return insert(position, {first, last}); }
  iterator erase(const_iterator position) { return erase(position, position + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    T* const where = begin() + (first - begin());
    std::copy(last, static_cast<const T*>(end()), where);
    size_ -= static_cast<size_t>(last - first);
    return where;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) { return a == b.span(); }
  friend bool operator==(const InlineVector& a, std::span<const T> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const InlineVector& a, std::initializer_list<T> b) {
    return a == std::span<const T>(b.begin(), b.size());
  }

 private:
  void grow_to(size_t needed) {
    const size_t capacity = std::max(needed, capacity_ * 2);
    auto heap = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(data(), size_, heap.get());
    heap_ = std::move(heap);
    capacity_ = capacity;
  }
  void take(InlineVector& other) noexcept {
    heap_ = std::move(other.heap_);
    if (!heap_) std::copy_n(other.inline_, other.size_, inline_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, N);
  }

  std::unique_ptr<T[]> heap_;
  size_t size_ = 0;
  size_t capacity_ = N;
  T inline_[N];
};

}  // namespace infernode
