#include "runtime/weights/weight_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "temporary_folder.h"

using namespace infernode;
using runtime::WeightCache;
using runtime::WeightStore;
using tensor::Tensor;
using test::TemporaryFolder;

namespace {

constexpr std::size_t kSumAt = 16, kPackingAt = 32, kHeaderBytes = 120;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, std::string_view text) {
  std::filesystem::remove(path);  // the old file may be mapped
  std::ofstream(path, std::ios::binary) << text;
}

/// Makes the check sum of the table right again.
void mend(std::string& file) {
  std::uint64_t data_begin = 0;
  std::memcpy(&data_begin, file.data() + kPackingAt + 64 + 8, sizeof data_begin);
  const auto summed =
      std::as_bytes(std::span(file)).first(std::clamp<std::size_t>(data_begin, kPackingAt, file.size()));
  const ContentHash sum = content_hash(summed.subspan(kPackingAt));
  std::memcpy(file.data() + kSumAt, &sum, sizeof sum);
}

struct Packing {
  std::size_t hits = 0, misses = 0;  // weights that the file gave, that were packed
  std::vector<tensor::Buffer> packed;
  std::string log;
};

tensor::Buffer reversed(const Tensor& weight) {
  const Tensor copy = weight.clone();
  auto* const begin = static_cast<std::byte*>(copy.mutable_raw());
  std::reverse(begin, begin + copy.bytes());
  return copy.buffer();
}

/// What one load does.
Packing load(const std::string& path, const std::vector<Tensor>& weights, std::string_view format = "f",
             WeightStore* of = nullptr) {
  static ThreadPool pool(3);
  WeightStore own;
  Packing result;
  const Logger logger(LogSeverity::Info, "", [&](LogSeverity severity, std::string_view, std::string_view message) {
    result.log += cat(to_string(severity), ": ", message, "\n");
  });
  WeightCache cache(path, of != nullptr ? *of : own, pool, 3, logger);
  for (const Tensor& weight : weights)
    result.packed.push_back(cache.pack(weight, format, [&](const Tensor& plain) {
      ++result.misses;
      return reversed(plain);
    }));
  cache.save();
  result.hits = weights.size() - result.misses;
  return result;
}

void check_right(const Packing& packing, const std::vector<Tensor>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const tensor::Buffer expected = reversed(weights[i]), &packed = packing.packed.at(i);
    REQUIRE(packed.size() == expected.size());
    CHECK(std::memcmp(packed.data(), expected.data(), packed.size()) == 0);
  }
}

std::vector<Tensor> some_weights() {
  return {Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<std::int8_t>({2, 2}, {4, 5, 6, 7}), Tensor::of<float>({0}, {})};
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("what one load packs the next finds") {
  const TemporaryFolder folder;
  const std::string path = folder / "deep/er/w.infernode";
  const std::vector<Tensor> weights = some_weights();
  const Packing first = load(path, weights);
  CHECK(first.misses == 3);
  CHECK(has(first.log, "info: packed weights were written to"));
  check_right(first, weights);
  const Packing second = load(path, weights);
  CHECK(second.hits == 3);
  CHECK(second.misses == 0);
  CHECK(has(second.log, "info: 3 packed weights come from"));
  check_right(second, weights);
  for (const tensor::Buffer& packed : second.packed) {
    CHECK(reinterpret_cast<std::uintptr_t>(packed.data()) % 64 == 0);
    CHECK(!packed.writable());
  }
}

TEST_CASE("other weights, shapes, types and formats are packed, and the file then has them") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  const Tensor weight = Tensor::of<float>({4}, {1, 2, 3, 4});
  load(path, {weight});
  for (const Tensor& other :
       {Tensor::of<float>({4}, {1, 2, 3, 5}), weight.reshaped({2, 2}), weight.reinterpreted(tensor::DType::Int32)}) {
    const Packing packing = load(path, {weight, other});
    CHECK(packing.hits == 1);
    CHECK(packing.misses == 1);
    check_right(packing, {weight, other});
    CHECK(load(path, {weight, other}).hits == 2);
  }
  CHECK(load(path, {weight}, "g").misses == 1);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a weight in a file is known by its place, until the file changes") {
  const TemporaryFolder folder;
  const std::string path = folder / "w", model = folder / "model";
  const auto with_model = [&](std::string_view text) {
    put(model, text);
    WeightStore store;
    const auto file = store.map(model);
    std::vector<Tensor> weights;
    for (std::size_t i = 0; i < 2; ++i)
      weights.emplace_back(tensor::DType::UInt8, tensor::Shape{4},
                           tensor::Buffer(const_cast<std::byte*>(file->data() + 4 * i), 4, file, {}, false));
    const Packing packing = load(path, weights, "f", &store);
    check_right(packing, weights);
    return packing.hits;
  };
  CHECK(with_model("abcdabcd") == 0);
  CHECK(with_model("abcdabcd") == 2);
  CHECK(with_model("abcdabce") == 0);
  CHECK(with_model("abcdabce") == 2);
}

TEST_CASE("of a large file samples and the time of its last change are looked at") {
  const TemporaryFolder folder;
  const std::string path = folder / "w", model = folder / "model";
  std::string text(std::size_t{17} << 20, 'm');
  const auto hits = [&] {
    WeightStore store;
    const auto file = store.map(model);
    const Tensor weight(tensor::DType::UInt8, {4},
                        tensor::Buffer(const_cast<std::byte*>(file->data() + 5000), 4, file, {}, false));
    const Packing packing = load(path, {weight}, "f", &store);
    check_right(packing, {weight});
    return packing.hits;
  };
  put(model, text);
  CHECK(hits() == 0);
  CHECK(hits() == 1);
  const auto time = std::filesystem::last_write_time(model);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  text[5001] = 'n';  // between samples
  {
    std::fstream in_place(model, std::ios::binary | std::ios::in | std::ios::out);
    in_place.seekp(5001).put('n');
  }
#ifndef _WIN32
  std::filesystem::last_write_time(model, time);
#endif
  CHECK(hits() == 0);
  CHECK(hits() == 1);
}

TEST_CASE("a file with a damaged byte changes no answer, wherever the byte is, and is replaced") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  const std::vector<Tensor> weights = some_weights();
  load(path, weights);
  const std::string good = contents(path);
  REQUIRE(good.size() > 4096);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    put(path, bad);
    const Packing packing = load(path, weights);
    check_right(packing, weights);
    if (packing.hits == 0) {
      CHECK(packing.misses == 3);
      CHECK(contents(path) == good);
      const bool other_build = at >= kPackingAt && at < kPackingAt + 64;
      CHECK_MESSAGE(has(packing.log, other_build ? "info: " : "warning: packed weights in"), packing.log);
    } else {
      CHECK(at >= 4096);  // between two entries
    }
  }
}

TEST_CASE("a file that ends anywhere changes no answer") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  const std::vector<Tensor> weights = some_weights();
  load(path, weights);
  const std::string good = contents(path);
  for (std::size_t size = 0; size < good.size(); size += size < 300 || size > 4000 ? 1 : 100) {
    put(path, good.substr(0, size));
    const Packing packing = load(path, weights);
    CHECK(packing.hits == 0);
    check_right(packing, weights);
  }
  put(path, good + '\0');
  CHECK(load(path, weights).hits == 0);
}

TEST_CASE("no number in a file that has its check sum right leads outside of it") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  const std::vector<Tensor> weights = some_weights();
  load(path, weights);
  const std::string good = contents(path);
  const std::uint64_t values[] = {0,
                                  1,
                                  64,
                                  119,
                                  4095,
                                  4096,
                                  8192,
                                  good.size(),
                                  std::uint64_t{1} << 32,
                                  std::uint64_t{1} << 63,
                                  UINT64_MAX - 63,
                                  UINT64_MAX};
  for (std::size_t at = kPackingAt + 64; at < kHeaderBytes + 24; at += 8) {
    for (const std::uint64_t value : values) {
      std::string bad = good;
      std::memcpy(bad.data() + at, &value, sizeof value);
      mend(bad);
      put(path, bad);
      check_right(load(path, weights), weights);
    }
  }
}

TEST_CASE("every part of a large entry is looked at") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  const Tensor weight = Tensor::make(tensor::DType::UInt8, {(5 << 20) + 3});
  for (std::int64_t i = 0; i < weight.numel(); ++i)
    weight.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * i);
  load(path, {weight});
  CHECK(load(path, {weight}).hits == 1);
  const std::string good = contents(path);
  for (std::size_t back = 1; back < (5 << 20); back += 999'983) {
    std::string bad = good;
    bad[bad.size() - back] ^= 1;
    put(path, bad);
    const Packing packing = load(path, {weight});
    CHECK(packing.hits == 0);
    CHECK(has(packing.log, "it is damaged"));
    check_right(packing, {weight});
  }
}

TEST_CASE("a folder that cannot be written to is warned of") {
  const TemporaryFolder folder;
  put(folder / "file", "text");
  for (const std::string& path : {folder / "file/w", std::string("nul\0l/w", 7)}) {
    const Packing packing = load(path, some_weights());
    CHECK(has(packing.log, "warning: packed weights cannot be written to"));
    check_right(packing, some_weights());
  }
  std::filesystem::create_directory(folder / "w");
  const Packing packing = load(folder / "w", some_weights());
  CHECK(has(packing.log, "warning: packed weights in"));
  CHECK(has(packing.log, "warning: packed weights cannot be written to"));
  check_right(packing, some_weights());
  CHECK(folder.entries() == 2);
}

TEST_CASE("loads that write at the same time leave one whole file") {
  const TemporaryFolder folder;
  const std::string path = folder / "w";
  std::vector<Tensor> weights = some_weights();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) load(path, weights, round % 2 == 0 ? "f" : "g");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(folder.entries() == 1);
  CHECK(!has(load(path, weights).log, "warning"));
}

TEST_CASE("a load that packs nothing writes nothing") {
  const TemporaryFolder folder;
  CHECK(load(folder / "w", {}).log.empty());
  CHECK(folder.entries() == 0);
}
