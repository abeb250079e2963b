// Encoded images (ops/image/samples.h), changed. Settings: INFERNODE_FUZZ_COUNT and INFERNODE_FUZZ_SEED of campaign.h.
#include <doctest/doctest.h>

#include "fuzz/models.h"
#include "fuzz/mutator.h"
#include "ops/image/image.h"
#include "ops/image/samples.h"

using namespace infernode;
using fuzz::setting;

namespace {

/// Bytes and runs of bytes change, the ends of all that a format says of its sizes among them.
std::vector<std::uint8_t> change(std::vector<std::uint8_t> file, fuzz::Mutator& random) {
  for (std::size_t changes = 1 + random.below(4); changes > 0 && !file.empty(); --changes) {
    const std::size_t at = random.below(file.size()),
                      most = std::min<std::size_t>(file.size() - at, 1 + random.below(8));
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at), end = begin + static_cast<std::ptrdiff_t>(most);
    switch (random.below(5)) {
      case 0:
        file.resize(at);
        break;
      case 1:
        file.erase(begin, end);
        break;
      case 2: {
        const std::vector<std::uint8_t> twice(begin, end);
        file.insert(begin, twice.begin(), twice.end());
        break;
      }
      case 3:
        std::fill(begin, end, static_cast<std::uint8_t>(random.once_in(2) ? 0xFF : 0));
        break;
      default:
        file[at] = static_cast<std::uint8_t>(random.below(256));
    }
  }
  return file;
}

}  // namespace

TEST_CASE("changed images end in pictures or in errors") {
  fuzz::Mutator random({}, static_cast<std::uint32_t>(std::stoul(setting("INFERNODE_FUZZ_SEED", "1"))));
  const long count = std::stol(setting("INFERNODE_FUZZ_COUNT", "5000"));
  long refused = 0, ran = 0;
  for (long i = 0; i < count; ++i) {
    const test::EncodedSample& sample = test::kSamples[random.below(std::size(test::kSamples))];
    try {
      const ops::image::Image image = ops::image::decode_image(change(test::from_hex(sample.hex), random), {});
      CHECK(image.pixels.size() == image.width * image.height * image.channels);
      ++ran;
    } catch (const Error& e) {
      const bool expected = e.code() == ErrorCode::InvalidArgument || e.code() == ErrorCode::UnsupportedOperator;
      if (!expected) FAIL_CHECK(sample.name, ": ", e.message());
      ++refused;
    }
  }
  MESSAGE("refused ", refused, ", failed ", 0, ", ran ", ran);
  CHECK(refused > 0);
  CHECK(ran > 0);
}
