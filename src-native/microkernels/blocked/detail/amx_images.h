#pragma once

// Included by blocked.amx.cpp only: the operands that come of inputs.

#include "microkernels/blocked/detail/amx_plan.h"
#include "microkernels/common/bf16_pairs.h"

namespace infernode::microkernels {
namespace {

// ---- Images: for each pair of blocks the pieces of all places ----

template <int kPieces>
class ImageSplit {
 public:
  ImageSplit() = default;
  // Of rows [begin, end) of the grid.
  ImageSplit(const Plan& plan, const BlockedConvArgs& args, std::size_t begin, std::size_t end, std::size_t strip,
             std::uint8_t* out) noexcept
      : s_(&plan.s),
        input_(args.input),
        rounded_(args.input_bf16),
        out_(out),
        plane_(plan.s.in_h * plan.s.in_w * (plan.planar ? 1 : kChannelBlock)),
        place_bytes_(plan.steps.place_bytes),
        piece_bytes_(plan.piece_bytes(end - begin)),
        planar_(plan.planar),
        flat_(plan.flat),
        seen_(plan.s, end - begin),
        lines_(plan.flat ? 1 : seen_.count),
        length_(plan.flat ? plan.position(end) - plan.position(begin) : plan.pitch),
        left_(plan.pairs * lines_ * length_),
        first_(static_cast<std::ptrdiff_t>(plan.flat ? plan.position(begin) : begin * plan.s.stride_h) -
               (plan.flat ? 0 : plan.s.pad_top)),
        first_column_(static_cast<std::ptrdiff_t>(strip * plan.strip * plan.s.stride_w) - plan.s.pad_left) {
    enter();
  }

  std::size_t left() const noexcept { return left_; }
  bool splits() const noexcept { return watch_.splits(); }

  // Splits `count` more places, or all that are left.
  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0;) {
      const std::size_t n = smaller(count, length_ - column_);
      std::uint8_t* const to = out_ + (line_ * length_ + column_) * place_bytes_;
      if (flat_) {
        split_positions(static_cast<std::size_t>(first_) + column_, n, to);
      } else {
        split_columns(first_ + static_cast<std::ptrdiff_t>(seen_.row(line_)), n, to);
      }
      count -= n;
      if ((column_ += n) < length_) continue;
      column_ = 0;
      if (++line_ < lines_) continue;
      line_ = 0;
      ++pair_;
      out_ += kPieces * piece_bytes_;
      if (left_ > 0 || count > 0) enter();
    }
  }

 private:
  // Begins a pair of blocks.
  void enter() noexcept {
    const std::size_t first = pair_ * 2 * kChannelBlock, second = first + kChannelBlock;
    even_ = odd_ = 2 * pair_ * plane_;
    even_lanes_ = first_lanes(s_->in_channels - smaller(first, s_->in_channels));
    odd_lanes_ = 0;
    if (second >= s_->in_channels) return;
    odd_lanes_ = first_lanes(s_->in_channels - second);
    odd_ += plane_;
  }

  // What a kernel of one point sees at `n` positions.
  void split_positions(std::size_t position, std::size_t n, std::uint8_t* to) noexcept {
    if (s_->stride_h == 1 && s_->stride_w == 1 && s_->in_w == s_->out_w) return split(position, 1, n, to);
    for (std::size_t some; n > 0; n -= some, position += some, to += some * kPlaceBytes) {
      const std::size_t column = position % s_->out_w;
      some = smaller(n, s_->out_w - column);
      split(position / s_->out_w * s_->stride_h * s_->in_w + column * s_->stride_w, s_->stride_w, some, to);
    }
  }
  // `n` places of a padded row of the input.
  void split_columns(std::ptrdiff_t row, std::size_t n, std::uint8_t* to) noexcept {
    const auto width = static_cast<std::ptrdiff_t>(s_->in_w);
    const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(column_) + first_column_,
                         end = begin + static_cast<std::ptrdiff_t>(n);
    if (row < 0 || row >= static_cast<std::ptrdiff_t>(s_->in_h) || begin >= width || end <= 0) return clear(n, to);
    const auto before = static_cast<std::size_t>(begin < 0 ? -begin : 0),
               behind = static_cast<std::size_t>(end > width ? end - width : 0);
    clear(before, to);
    to += before * place_bytes_;
    const std::size_t some = n - before - behind;
    const std::size_t place = static_cast<std::size_t>(row) * s_->in_w +
                              static_cast<std::size_t>(begin + static_cast<std::ptrdiff_t>(before));
    if (planar_) {
      split_planes(place, some, to);
    } else {
      split(place, 1, some, to);
    }
    clear(behind, to + some * place_bytes_);
  }

  void clear(std::size_t n, std::uint8_t* to) noexcept {
    for (std::size_t words = n * (place_bytes_ / 4); words > 0; words -= smaller(words, std::size_t{16}), to += 64) {
      INFERNODE_UNROLL
      for (std::size_t piece = 0; piece < kPieces; ++piece)
        _mm512_mask_storeu_epi32(to + piece * piece_bytes_, first_lanes(words), _mm512_setzero_si512());
    }
  }

  // Places of all planes that follow each other.
  void split_planes(std::size_t place, std::size_t n, std::uint8_t* to) noexcept {
    const std::size_t words = place_bytes_ / 4;
    for (; n > 0; n -= smaller(n, std::size_t{16}), place += 16, to += 16 * place_bytes_) {
      const __mmask16 lanes = first_lanes(n);
      __m512i word[kPieces][kMostPlanes / 2];
      for (std::size_t i = 0; i < words; ++i) {
        __m512 even = load_plane(2 * i, place, lanes), odd = load_plane(2 * i + 1, place, lanes);
        watch_.see(_mm512_castps_si512(even));
        watch_.see(_mm512_castps_si512(odd));
        if constexpr (kPieces == 1) {
          word[0][i] = round_pairs(even, odd);
        } else {
          INFERNODE_UNROLL
          for (int piece = 0; piece < kPieces; ++piece) {
            const __m512i low = _mm512_srli_epi32(next_piece(even, piece), 16), high = next_piece(odd, piece);
            word[piece][i] = _mm512_or_si512(low, high);
          }
        }
      }
      INFERNODE_UNROLL
      for (std::size_t piece = 0; piece < kPieces; ++piece)
        store_words(words, word[piece], smaller(n, std::size_t{16}), to + piece * piece_bytes_);
    }
  }
  __m512 load_plane(std::size_t plane, std::size_t place, __mmask16 lanes) const noexcept {
    if (plane >= s_->in_channels) return _mm512_setzero_ps();
    return _mm512_maskz_loadu_ps(lanes, input_ + plane * plane_ + place);
  }
  // Words [i][place] as [place][i].
  static void store_words(std::size_t count, const __m512i* word, std::size_t n, std::uint8_t* to) noexcept {
    const auto put = [&](std::size_t vector, __m512i x) {
      const std::size_t before = vector * 16, all = n * count;
      if (before < all) _mm512_mask_storeu_epi32(to + vector * 64, first_lanes(all - before), x);
    };
    if (count == 1) return put(0, word[0]);
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                  high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const __m512i first[2] = {_mm512_permutex2var_epi32(word[0], low, word[1]),
                              _mm512_permutex2var_epi32(word[0], high, word[1])};
    if (count == 2) {
      put(0, first[0]);
      return put(1, first[1]);
    }
    const __m512i second[2] = {_mm512_permutex2var_epi32(word[2], low, word[3]),
                               _mm512_permutex2var_epi32(word[2], high, word[3])};
    const __m512i low_pairs = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high_pairs = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    INFERNODE_UNROLL
    for (std::size_t half = 0; half < 2; ++half) {
      put(2 * half, _mm512_permutex2var_epi64(first[half], low_pairs, second[half]));
      put(2 * half + 1, _mm512_permutex2var_epi64(first[half], high_pairs, second[half]));
    }
  }

  // Places from `place` of the input on, every `step`th.
  void split(std::size_t place, std::size_t step, std::size_t n, std::uint8_t* to) noexcept {
    const std::size_t even_at = even_ + place * kChannelBlock, odd_at = odd_ + place * kChannelBlock;
    const __mmask16 even_lanes = even_lanes_, odd_lanes = odd_lanes_;
    const std::size_t piece_bytes = piece_bytes_;
    step *= kChannelBlock;
    if constexpr (kPieces == 1) {
      if (rounded_ != nullptr) {
        const std::uint16_t *even = rounded_ + even_at, *odd = rounded_ + odd_at;
        for (; n > 0; --n, even += step, odd += step, to += kPlaceBytes) {
          const __m256i x = _mm256_maskz_loadu_epi16(even_lanes, even), y = _mm256_maskz_loadu_epi16(odd_lanes, odd);
          _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1));
        }
        return;
      }
    }
    const float *even = input_ + even_at, *odd = input_ + odd_at;
    if constexpr (kPieces == 1) {
      for (; n > 0; --n, even += step, odd += step, to += kPlaceBytes) {
        const __m512 x = _mm512_maskz_loadu_ps(even_lanes, even), y = _mm512_maskz_loadu_ps(odd_lanes, odd);
        _mm512_storeu_si512(to, round_in_order(x, y));
      }
    } else {
      RangeWatch watch = watch_;
      for (; n > 0; --n, even += step, odd += step, to += kPlaceBytes) {
        __m512 x = _mm512_maskz_loadu_ps(even_lanes, even), y = _mm512_maskz_loadu_ps(odd_lanes, odd);
        watch.see(_mm512_castps_si512(x));
        watch.see(_mm512_castps_si512(y));
        INFERNODE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece) {
          const __m512i low = _mm512_srli_epi32(next_piece(x, piece), 16), high = next_piece(y, piece);
          _mm512_storeu_si512(to + static_cast<std::size_t>(piece) * piece_bytes, _mm512_or_si512(low, high));
        }
      }
      watch_ = watch;
    }
  }

  const ConvShape* s_ = nullptr;
  const float* input_ = nullptr;
  const std::uint16_t* rounded_ = nullptr;  // in its place
  std::uint8_t* out_ = nullptr;             // of the pair
  std::size_t plane_ = 0, place_bytes_ = 0, piece_bytes_ = 0;
  bool planar_ = false;
  std::size_t even_ = 0, odd_ = 0;  // where the pair's blocks begin
  bool flat_ = false;
  SeenLines seen_{ConvShape(), 1};
  std::size_t lines_ = 0, length_ = 0, left_ = 0;
  std::ptrdiff_t first_ = 0, first_column_ = 0;  // position, or row and column of the input
  std::size_t pair_ = 0, line_ = 0, column_ = 0;
  __mmask16 even_lanes_ = 0, odd_lanes_ = 0;  // channels that exist
  RangeWatch watch_;
};

}  // namespace
}  // namespace infernode::microkernels
