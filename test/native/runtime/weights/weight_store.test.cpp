#include "runtime/weights/weight_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/system.h"

using namespace infernode;
using runtime::WeightStore;
using tensor::Tensor;

namespace {

struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / cat("infernode-weights-", std::random_device{}())).string();
  explicit TemporaryFile(std::size_t bytes) { std::ofstream(path, std::ios::binary) << std::string(bytes, 'w'); }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

Tensor weight_of(const std::shared_ptr<const MappedFile>& file) {
  return {tensor::DType::Float32,
          {4, 4},
          tensor::Buffer(const_cast<std::byte*>(file->bytes().data()), 64, file, {}, false)};
}

tensor::Buffer pack(WeightStore& store, const Tensor& weight, std::string_view format, int& made) {
  return store.pack(weight, format, [&](const Tensor& w) {
    ++made;
    return w.clone().buffer();
  });
}

}  // namespace

TEST_CASE("sessions over one file share its mapping while one of them lives") {
  const TemporaryFile file(64);
  WeightStore store;
  auto first = store.map(file.path);
  CHECK(store.map(file.path) == first);
  const std::weak_ptr<const MappedFile> watch = first;
  first = nullptr;
  CHECK(watch.expired());
}

TEST_CASE("a file that was replaced is mapped anew") {
  const TemporaryFile file(64);
  WeightStore store;
  const auto before = store.map(file.path);
  std::filesystem::remove(file.path);
  std::ofstream(file.path, std::ios::binary) << std::string(128, 'v');
  CHECK(store.map(file.path) != before);
}

TEST_CASE("a weight whose pages are let go of is read again from its file") {
  const TemporaryFile file(4 * page_size());
  WeightStore store;
  const auto mapped = store.map(file.path);
  const auto count = static_cast<std::int64_t>(mapped->size());
  const Tensor weight(tensor::DType::Int8, {count},
                      tensor::Buffer(const_cast<std::byte*>(mapped->data()), mapped->size(), mapped, {}, false));
  store.release_pages(weight, 1, mapped->size() - 1);
  store.release_pages(weight, 0, mapped->size());
  for (const std::byte byte : weight.byte_span()) REQUIRE(byte == std::byte{'w'});
  const Tensor own = weight.clone();  // lies in no file: nothing to let go of
  store.release_pages(own, 0, own.bytes());
  for (const std::byte byte : own.byte_span()) REQUIRE(byte == std::byte{'w'});
}

TEST_CASE("a mapped weight is packed once for each format, as long as somebody holds it") {
  const TemporaryFile file(64);
  WeightStore store;
  const Tensor weight = weight_of(store.map(file.path));
  int made = 0;
  tensor::Buffer a = pack(store, weight, "f", made), b = pack(store, weight, "f", made);
  CHECK(made == 1);
  CHECK(a.data() == b.data());
  const tensor::Buffer other = pack(store, weight, "g", made);
  CHECK(made == 2);
  CHECK(other.data() != a.data());
  const tensor::Buffer view = pack(store, weight.reshaped({2, 8}), "f", made);
  CHECK(made == 3);
  a = b = {};
  (void)pack(store, weight, "f", made);
  CHECK(made == 4);
}

#ifdef __linux__
TEST_CASE("the pages of a mapped weight that was packed are let go of") {
  const TemporaryFile file(64 * page_size());
  WeightStore store;
  const auto mapping = store.map(file.path);
  std::ifstream pages;
  pages.rdbuf()->pubsetbuf(nullptr, 0);  // this file is read in eights
  pages.open("/proc/self/pagemap", std::ios::binary);
  if (!pages) {
    MESSAGE("not run: this system shows no page tables");
    return;
  }
  const auto resident = [&] {
    std::uint64_t entry = 0;
    pages.seekg(static_cast<std::streamoff>(reinterpret_cast<std::uintptr_t>(mapping->data()) / page_size() * 8));
    pages.read(reinterpret_cast<char*>(&entry), sizeof entry);
    REQUIRE(pages.good());
    return (entry >> 63) != 0;
  };
  const Tensor weight(tensor::DType::UInt8, {static_cast<std::int64_t>(mapping->size())},
                      tensor::Buffer(const_cast<std::byte*>(mapping->data()), mapping->size(), mapping, {}, false));
  CHECK(weight.data<std::uint8_t>()[0] == 'w');
  CHECK(resident());
  int made = 0;
  const tensor::Buffer packed = pack(store, weight, "f", made);
  CHECK(!resident());
  CHECK(weight.data<std::uint8_t>()[0] == 'w');
}
#endif

TEST_CASE("weights in memory are packed for each caller") {
  WeightStore store;
  const Tensor weight = Tensor::of<float>({2}, {1, 2});
  int made = 0;
  const tensor::Buffer a = pack(store, weight, "f", made), b = pack(store, weight, "f", made);
  CHECK(made == 2);
  CHECK(a.data() != b.data());
}

TEST_CASE("threads that pack at once end up with one") {
  const TemporaryFile file(64);
  WeightStore store;
  const Tensor weight = weight_of(store.map(file.path));
  std::vector<tensor::Buffer> packed(8);
  std::vector<std::thread> threads;
  for (tensor::Buffer& slot : packed) {
    threads.emplace_back([&] {
      int made = 0;
      slot = pack(store, weight, "f", made);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const tensor::Buffer& slot : packed) CHECK(slot.data() == packed[0].data());
}

namespace {

tensor::Buffer noise_of(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  const tensor::Buffer buffer = tensor::host_allocator().allocate(bytes);
  std::generate_n(buffer.data(), bytes, [&] { return static_cast<std::byte>(random()); });
  return buffer;
}

constexpr std::size_t kMuch = 100'000;

}  // namespace

TEST_CASE("equal bytes lie in one place while someone has them") {
  WeightStore store;
  auto first = store.share(noise_of(kMuch, 1));
  const auto second = store.share(noise_of(kMuch, 1));
  CHECK(second.data() == first.data());
  CHECK_FALSE(second.writable());
  CHECK(store.share(noise_of(kMuch, 2)).data() != first.data());
  CHECK(store.share(noise_of(kMuch + 1, 1)).data() != first.data());
  const auto own = noise_of(kMuch, 3);
  CHECK(store.share(own).data() == own.data());
  CHECK(store.share(own).data() == own.data());
}

TEST_CASE("bytes that differ in any one place lie apart") {
  WeightStore store;
  const auto first = store.share(noise_of(kMuch, 1));
  for (std::size_t at = 0; at < kMuch; at += 3333) {
    const auto other = noise_of(kMuch, 1);
    other.data()[at] ^= std::byte{1};
    CHECK(store.share(other).data() == other.data());
  }
}

TEST_CASE("shared bytes go with the last who has them") {
  WeightStore store;
  const auto buffer = noise_of(kMuch, 1);
  const long before = buffer.use_count();
  {
    const auto shared = store.share(buffer);
    CHECK(buffer.use_count() > before);
  }
  CHECK(buffer.use_count() == before);
}

TEST_CASE("weights in memory share their packed form by what is in it") {
  WeightStore store;
  const std::int64_t n = 200;
  const auto weight = [&](std::uint32_t seed) {
    return Tensor(tensor::DType::Float32, {n, n}, noise_of(4 * n * n, seed));
  };
  int made = 0;
  const auto first = pack(store, weight(1), "f", made);
  CHECK(pack(store, weight(1), "f", made).data() == first.data());
  CHECK(pack(store, weight(2), "f", made).data() != first.data());
  CHECK(made == 3);
}

TEST_CASE("threads share the same bytes") {
  WeightStore store;
  std::vector<tensor::Buffer> all(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < all.size(); ++t) {
    threads.emplace_back([&, t] { all[t] = store.share(noise_of(kMuch, static_cast<std::uint32_t>(t % 2))); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < all.size(); ++t) CHECK(all[t].data()[0] == noise_of(1, t % 2).data()[0]);
  CHECK(store.share(noise_of(kMuch, 0)).data() != store.share(noise_of(kMuch, 1)).data());
}
