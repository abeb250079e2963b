#include "base/packed.h"

#include <doctest/doctest.h>

#include <vector>

using namespace infernode;

TEST_CASE("packed elements lie low bits first") {
  const uint8_t row[] = {0x21, 0xf3};
  CHECK(get_packed<4>(row, 0) == 1);
  CHECK(get_packed<4>(row, 1) == 2);
  CHECK(get_packed_signed<4>(row, 2) == 3);
  CHECK(get_packed_signed<4>(row, 3) == -1);
  CHECK(get_packed<2>(row, 0) == 1);
  CHECK(get_packed<2>(row, 1) == 0);
  CHECK(get_packed<2>(row, 2) == 2);
  CHECK(get_packed_signed<2>(row, 2) == -2);
  CHECK(get_packed_signed<2>(row, 7) == -1);
}

TEST_CASE("four elements of 6 bits share three bytes") {
  uint8_t row[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  const uint8_t codes[] = {1, 0x2a, 0x15, 0x3e, 7, 0};
  pack_6(codes, 6, row);
  CHECK(row[0] == (1 | (0x2a & 3) << 6));
  CHECK(row[1] == (0x2a >> 2 | (0x15 & 15) << 4));
  CHECK(row[2] == (0x15 >> 4 | 0x3e << 2));
  CHECK(row[3] == 7);
  CHECK(row[4] == 0xf0);  // elements that were not written stay
  CHECK(row[5] == 0xff);
  uint8_t back[5];
  unpack_u6(row, 1, 5, back);
  for (size_t i = 0; i < 5; ++i) CHECK(back[i] == codes[i + 1]);
}

TEST_CASE("setting an element leaves its neighbours alone") {
  uint8_t row[] = {0xff, 0xff};
  set_packed<4>(row, 1, 0);
  set_packed<2>(row, 5, -3);
  CHECK(row[0] == 0x0f);
  CHECK(row[1] == 0xf7);
}

TEST_CASE("rows unpack and pack at any offset and length") {
  std::vector<uint8_t> packed(16);
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<uint8_t>(i * 73 + 29);
  size_t wrong = 0;
  for (size_t first = 0; first < 9; ++first) {
    for (size_t count = 0; count <= 19; ++count) {
      std::vector<uint8_t> u4(count), u2(count);
      unpack_u4(packed.data(), first, count, u4.data());
      unpack_u2(packed.data(), first, count, u2.data());
      for (size_t i = 0; i < count; ++i) {
        wrong += u4[i] != get_packed<4>(packed.data(), first + i);
        wrong += u2[i] != get_packed<2>(packed.data(), first + i);
      }
      // Writing back what was read, into inverted bytes, must give the same bits inside the range and none outside.
      std::vector<uint8_t> four(16), two(16);
      for (size_t i = 0; i < 16; ++i) four[i] = two[i] = static_cast<uint8_t>(~packed[i]);
      pack_4(u4.data(), count, four.data(), first);
      pack_2(u2.data(), count, two.data(), first);
      for (size_t i = 0; i < 32; ++i) {
        const bool inside = i >= first && i < first + count;
        wrong += (get_packed<4>(four.data(), i) == get_packed<4>(packed.data(), i)) != inside;
        wrong += (get_packed<2>(two.data(), i) == get_packed<2>(packed.data(), i)) != inside;
      }
    }
  }
  CHECK(wrong == 0);
}
