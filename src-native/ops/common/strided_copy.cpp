#include <algorithm>

#include "base/checked.h"
#include "base/packed.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/common/walk.h"

namespace infernode::ops {
namespace {

using kernel::RunContext;
using microkernels::TransposeTable;
using tensor::Bytes16;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

constexpr double kBytesPerNs = 8.0;
/// Long runs are cut into pieces of this size for the threads.
constexpr std::int64_t kRunBytes = 64 * 1024;
/// Planes narrower than this are copied row by row, unless their rows follow each other: blocks would not fill.
constexpr std::int64_t kNarrow = 4;

using Axis = WalkAxis;
using Axes = InlineVector<Axis, 8>;

/// Drops dims of 1 and merges neighbours that one stride walks through on both sides.
Axes collapse(const Shape& dims, const Shape& from, const Shape& to) {
  Axes axes;
  for (std::size_t i = 0; i < dims.rank(); ++i) {
    if (dims[i] == 1) continue;
    const Axis axis{dims[i], from[i], to[i]};
    if (!axes.empty() && axes.back().from == axis.from * axis.n && axes.back().to == axis.to * axis.n) {
      axes.back() = {axes.back().n * axis.n, axis.from, axis.to};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

/// Treats short innermost runs (2 x 4 bytes, ...) as one wider element where strides and addresses allow it.
std::size_t widen(Axes& axes, std::size_t size, const void* from, const void* to) {
  while (axes.size() > 1 && axes.back().from == 1 && axes.back().to == 1) {
    const std::int64_t n = axes.back().n;
    const std::size_t wide = size * static_cast<std::size_t>(n);
    if (n > 16 || (wide != 2 && wide != 4 && wide != 8 && wide != 16)) break;
    const std::size_t align = std::min<std::size_t>(wide, alignof(Bytes16));
    if (reinterpret_cast<std::uintptr_t>(from) % align != 0 || reinterpret_cast<std::uintptr_t>(to) % align != 0) break;
    const auto divides = [n](const Axis& a) { return a.from % n == 0 && a.to % n == 0; };
    if (!std::all_of(axes.begin(), axes.end() - 1, divides)) break;
    axes.pop_back();
    for (Axis& a : axes) a = {a.n, a.from / n, a.to / n};
    size = wide;
  }
  return size;
}

void copy_texts(const RunContext& run, const std::string* from, std::int64_t from_stride, std::string* to,
                std::int64_t to_stride, std::int64_t n) {
  Mover mover(run);
  for (std::int64_t i = 0; i < n; ++i) mover.set(to[i * to_stride], from[i * from_stride]);
}

template <class T>
void copy_row([[maybe_unused]] const RunContext& run, const T* from, std::int64_t from_stride, T* to,
              std::int64_t to_stride, std::int64_t n) {
  if constexpr (std::is_same_v<T, std::string>) {
    copy_texts(run, from, from_stride, to, to_stride, n);
  } else if (to_stride == 1 && from_stride == 1) {
    std::copy_n(from, n, to);
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <class T>
void copy_rows(const RunContext& run, Axes axes, const T* from, T* to) {
  Axis row = axes.empty() ? Axis{1, 1, 1} : axes.back();
  if (!axes.empty()) axes.pop_back();
  std::int64_t rows = 1;
  for (const Axis& a : axes) rows *= a.n;
  const std::int64_t piece = kRunBytes / static_cast<std::int64_t>(sizeof(T));
  const double cost_of_element = row.from == 1 ? sizeof(T) / kBytesPerNs : 1.0;
  if (row.n > piece) {
    // Pieces of long rows are the units of work.
    const std::int64_t pieces = ceil_div(row.n, piece);
    run.parallel_for(static_cast<std::size_t>(rows * pieces), static_cast<double>(piece) * cost_of_element,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       const auto last_unit = static_cast<std::int64_t>(end);
                       auto unit = static_cast<std::int64_t>(begin);
                       Walk walk(axes.data(), axes.size(), unit / pieces);
                       for (; unit < last_unit; walk.next()) {
                         const std::int64_t row_end = std::min(last_unit, (unit / pieces + 1) * pieces);
                         const std::int64_t first = unit % pieces * piece;
                         const std::int64_t count = std::min((row_end - unit) * piece, row.n - first);
                         copy_row(run, from + walk.from + first * row.from, row.from, to + walk.to + first * row.to,
                                  row.to, count);
                         unit = row_end;
                       }
                     });
    return;
  }
  const double cost = 2.0 + static_cast<double>(row.n) * cost_of_element;
  run.parallel_for(static_cast<std::size_t>(rows), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    Walk walk(axes.data(), axes.size(), static_cast<std::int64_t>(begin));
    for (std::size_t r = begin; r < end; ++r, walk.next()) {
      copy_row(run, from + walk.from, row.from, to + walk.to, row.to, row.n);
    }
  });
}

template <class T>
microkernels::Transpose2d<T> block_transpose(const TransposeTable& table) {
  if constexpr (sizeof(T) == 1) return table.bytes1;
  if constexpr (sizeof(T) == 2) return table.bytes2;
  if constexpr (sizeof(T) == 4) return table.bytes4;
  if constexpr (sizeof(T) == 8) return table.bytes8;
}

/// The innermost axis is written contiguously while axis `d` is read contiguously: tiles of that plane are transposed.
template <class T>
void copy_planes(const RunContext& run, Axes axes, std::size_t d, const T* from, T* to, const TransposeTable& table) {
  const Axis rows = axes.back(), cols = axes[d];
  const std::int64_t tile_c = std::min<std::int64_t>(cols.n, rows.n < kNarrow ? 4096 : 64);
  const std::int64_t tile_r = std::min(rows.n, std::max<std::int64_t>(64, 16384 / tile_c));
  // Outer axes, then the tiles along columns and rows, whose strides step by whole tiles.
  axes[d] = {ceil_div(cols.n, tile_c), 0, 0};
  axes.back() = {ceil_div(rows.n, tile_r), 0, 0};
  Axes outer;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != d && i + 1 != axes.size()) outer.push_back(axes[i]);
  }
  const std::int64_t tiles_c = axes[d].n, tiles_r = axes.back().n;
  outer.push_back({tiles_c, tile_c * cols.from, tile_c * cols.to});
  outer.push_back({tiles_r, tile_r * rows.from, tile_r * rows.to});
  std::int64_t count = 1;
  for (const Axis& a : outer) count *= a.n;
  const auto transpose = block_transpose<T>(table);
  const double cost = static_cast<double>(tile_c * tile_r) * sizeof(T) / (kBytesPerNs / 2);
  run.parallel_for(static_cast<std::size_t>(count), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    Walk walk(outer.data(), outer.size(), static_cast<std::int64_t>(begin));
    for (std::size_t i = begin; i < end; ++i, walk.next()) {
      const std::int64_t r = static_cast<std::int64_t>(i) % tiles_r,
                         c = static_cast<std::int64_t>(i) / tiles_r % tiles_c;
      transpose(from + walk.from, static_cast<std::size_t>(rows.from), to + walk.to, static_cast<std::size_t>(cols.to),
                static_cast<std::size_t>(std::min(tile_r, rows.n - r * tile_r)),
                static_cast<std::size_t>(std::min(tile_c, cols.n - c * tile_c)));
    }
  });
}

template <class T>
void copy_elements_of(const RunContext& run, const Axes& axes, const T* from, T* to, const TransposeTable* table) {
  if constexpr (sizeof(T) <= 8 && std::is_integral_v<T>) {
    if (table && axes.size() > 1 && axes.back().to == 1 && axes.back().from > 1) {
      for (std::size_t d = 0; d + 1 < axes.size(); ++d) {
        const bool wide = axes[d].n >= kNarrow && axes.back().n >= kNarrow;
        const bool close = axes[d].to == axes.back().n || axes.back().from == axes[d].n;
        if (axes[d].from == 1 && axes[d].to > 0 && (wide || close)) return copy_planes(run, axes, d, from, to, *table);
      }
    }
  }
  copy_rows(run, axes, from, to);
}

template <int Bits>
void copy_packed(const RunContext& run, const Axes& axes, const std::uint8_t* from, std::int64_t from_offset,
                 std::uint8_t* to, std::int64_t to_offset) {
  constexpr double kNsPerElement = 5;
  kernel::Watch watch(run);
  std::int64_t count = 1;
  for (const Axis& a : axes) count *= a.n;
  Walk walk(axes.data(), axes.size(), 0);
  for (std::int64_t i = 0; i < count; ++i, walk.next()) {
    const auto code = get_packed<Bits>(from, static_cast<std::size_t>(from_offset + walk.from));
    set_packed<Bits>(to, static_cast<std::size_t>(to_offset + walk.to), code);
    watch.did(kNsPerElement);
  }
}

}  // namespace

void strided_copy(const RunContext& run, const Shape& dims, const CopySide& from, const CopySide& to,
                  const TransposeTable* table) {
  if (dims.numel() == 0) return;
  const DType dtype = from.tensor.dtype();
  Axes axes = collapse(dims, from.strides, to.strides);
  if (tensor::is_sub_byte(dtype)) {
    const std::size_t bits = tensor::bit_size(dtype);
    const auto copy = bits == 6 ? copy_packed<6> : bits == 4 ? copy_packed<4> : copy_packed<2>;
    return copy(run, axes, static_cast<const std::uint8_t*>(from.tensor.raw()), from.offset,
                static_cast<std::uint8_t*>(to.tensor.mutable_raw()), to.offset);
  }
  std::size_t size = element_bytes(dtype);
  const std::byte* source =
      static_cast<const std::byte*>(from.tensor.raw()) + from.offset * static_cast<std::int64_t>(size);
  std::byte* target = static_cast<std::byte*>(to.tensor.mutable_raw()) + to.offset * static_cast<std::int64_t>(size);
  if (dtype == DType::String) {
    return copy_rows(run, axes, reinterpret_cast<const std::string*>(source), reinterpret_cast<std::string*>(target));
  }
  size = widen(axes, size, source, target);
  tensor::dispatch_size(size, "copy", [&]<class T>(TypeTag<T>) {
    copy_elements_of(run, axes, reinterpret_cast<const T*>(source), reinterpret_cast<T*>(target), table);
  });
}

/// Of bytes that are copied or filled in long runs.
constexpr double kNsPerByte = 0.1;

void copy_all(const RunContext& run, const Tensor& from, const Tensor& to) {
  if (from.numel() == 0 || from.raw() == to.raw()) return;
  if (tensor::is_sub_byte(from.dtype())) {
    const auto* source = static_cast<const char*>(from.raw());
    auto* target = static_cast<char*>(to.mutable_raw());
    run.parallel_for(from.bytes(), kNsPerByte, [&](std::size_t begin, std::size_t end, std::size_t) {
      std::copy_n(source + begin, end - begin, target + begin);
    });
  } else {
    strided_copy(run, Shape{from.numel()}, {from, 0, Shape{1}}, {to, 0, Shape{1}});
  }
}

void fill_bytes(const RunContext& run, const Tensor& to, unsigned char byte) {
  auto* target = static_cast<unsigned char*>(to.mutable_raw());
  run.parallel_for(to.bytes(), kNsPerByte, [&](std::size_t begin, std::size_t end, std::size_t) {
    std::fill(target + begin, target + end, byte);
  });
}

Tensor unpack_sub_byte(const RunContext& run, const Tensor& packed) {
  Tensor out = Tensor::make(DType::UInt8, packed.shape(), *run.allocator);
  const std::size_t bits = tensor::bit_size(packed.dtype());
  const auto unpack = bits == 6 ? unpack_u6 : bits == 4 ? unpack_u4 : unpack_u2;
  const auto* from = static_cast<const std::uint8_t*>(packed.raw());
  auto* to = out.mutable_data<std::uint8_t>();
  constexpr std::size_t kPiece = 1 << 14;
  const auto count = static_cast<std::size_t>(packed.numel());
  run.parallel_for(ceil_div(count, kPiece), 0.5 * kPiece, [&](std::size_t begin, std::size_t end, std::size_t) {
    const std::size_t first = begin * kPiece;
    unpack(from, first, std::min(end * kPiece, count) - first, to + first);
  });
  return out;
}

void pack_sub_byte(const RunContext& run, const Tensor& bytes, const Tensor& packed) {
  const std::size_t bits = tensor::bit_size(packed.dtype());
  const auto pack = bits == 6 ? pack_6 : bits == 4 ? pack_4 : pack_2;
  const auto* from = bytes.data<std::uint8_t>();
  auto* to = static_cast<std::uint8_t*>(packed.mutable_raw());
  const auto byte_at = [&](std::size_t i) { return tensor::byte_size(packed.dtype(), static_cast<std::int64_t>(i)); };
  constexpr std::size_t kPiece = 1 << 14;  // whole bytes, so that threads share none
  const auto count = static_cast<std::size_t>(bytes.numel());
  run.parallel_for(ceil_div(count, kPiece), 0.5 * kPiece, [&](std::size_t begin, std::size_t end, std::size_t) {
    const std::size_t first = begin * kPiece, last = std::min(end * kPiece, count);
    // The bits past the last element stay zero, as in ONNX's raw data.
    std::fill(to + byte_at(first), to + byte_at(last), std::uint8_t{0});
    pack(from + first, last - first, to + byte_at(first), 0);
  });
}

}  // namespace infernode::ops
