#include "kernel/numbers.h"

#include <algorithm>
#include <type_traits>

namespace infernode::kernel {
namespace {

using tensor::Shape;
using tensor::Tensor;

template <class T>
std::vector<T> converted(const Tensor& t) {
  if constexpr (std::is_same_v<T, float>) {
    return tensor::to_float_vector(t);
  } else {
    const std::vector<std::int64_t> wide = tensor::to_int64_vector(t);
    std::vector<T> out(wide.size());
    std::transform(wide.begin(), wide.end(), out.begin(), [](std::int64_t v) { return static_cast<T>(v); });
    return out;
  }
}

}  // namespace

template <class T>
Numbers<T>::Numbers(const RunContext& run, const Tensor& t) : count_(static_cast<std::size_t>(t.numel())) {
  constexpr std::size_t kPiece = 4096;  // whole bytes of elements of any size
  if (std::is_floating_point_v<T> && t.dtype() == tensor::kDTypeOf<T>) {
    data_ = t.data<T>();
  } else if (count_ <= kPiece) {
    few_ = converted<T>(t);
    data_ = few_.data();
  } else {
    many_ = Scratch<T>(run, count_);
    data_ = many_.data();
    run.parallel_for(ceil_div(count_, kPiece), 2.0 * kPiece, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t first = begin * kPiece; first < std::min(end * kPiece, count_); first += kPiece) {
        const auto at = static_cast<std::int64_t>(first),
                   n = static_cast<std::int64_t>(std::min(kPiece, count_ - first));
        const tensor::Buffer bytes =
            t.buffer().slice(tensor::byte_size(t.dtype(), at), tensor::byte_size(t.dtype(), n));
        std::ranges::copy(converted<T>(Tensor(t.dtype(), Shape{n}, bytes)), many_.data() + first);
      }
    });
  }
}

template class Numbers<std::int64_t>;
template class Numbers<std::int32_t>;
template class Numbers<float>;

}  // namespace infernode::kernel
