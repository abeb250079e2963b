#include "tensor/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "base/error.h"
#include "tensor/texts.h"
#include "tensor/value.h"

using namespace infernode;
using namespace infernode::tensor;

TEST_CASE("a block that was too small once is larger than needed for a while") {
  Buffer block;
  grow_host_buffer(block, 800);
  CHECK(block.size() == 800);
  grow_host_buffer(block, 80);
  CHECK(block.size() == 800);
  grow_host_buffer(block, 808);
  CHECK(block.size() == 909);
  const std::byte* data = block.data();
  grow_host_buffer(block, 909);
  CHECK(block.data() == data);
}

TEST_CASE("host memory is aligned, writable at its ends, and zero bytes are a valid buffer") {
  for (size_t bytes :
       {size_t{1}, size_t{63}, size_t{4096}, (size_t{1} << 20) - 1, size_t{1} << 20, (size_t{3} << 20) + 5}) {
    const Buffer b = host_allocator().allocate(bytes);
    REQUIRE(b.data() != nullptr);
    CHECK(b.size() == bytes);
    CHECK(reinterpret_cast<uintptr_t>(b.data()) % 64 == 0);
    b.data()[0] = b.data()[bytes - 1] = std::byte{7};
    CHECK(b.use_count() == 1);
  }
  const Buffer none = host_allocator().allocate(0);
  CHECK(none);
  CHECK(none.size() == 0);
}

TEST_CASE("impossible sizes are refused as out of memory") {
  for (size_t bytes : {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() / 2, size_t{1} << 62}) {
    try {
      (void)host_allocator().allocate(bytes);
      FAIL("memory was given");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::OutOfMemory);
      CHECK(e.message().find(std::to_string(bytes)) != std::string::npos);
    }
  }
}

TEST_CASE("a buffer is held alone until another shares its owner") {
  Buffer block = host_allocator().allocate(16);
  CHECK(block.held_alone());
  {
    const Buffer part = block.slice(4, 8);
    CHECK_FALSE(block.held_alone());
    CHECK_FALSE(part.held_alone());
  }
  CHECK(block.held_alone());
  CHECK(block.use_count() == 1);
  CHECK_FALSE(Buffer().held_alone());
  std::byte fixed[4]{};
  CHECK_FALSE(Buffer(fixed, 4, nullptr).held_alone());  // nobody counts who reads static data
}

TEST_CASE("slices share the owner and stay inside") {
  auto held = std::make_shared<int>(0);
  std::byte bytes[16]{};
  Buffer b(bytes, 16, held, {}, false);
  const Buffer s = b.slice(4, 8);
  CHECK(s.data() == bytes + 4);
  CHECK(s.owner() == b.owner());
  CHECK_FALSE(s.writable());
  CHECK(held.use_count() == 3);
  CHECK_THROWS_AS(b.slice(9, 8), Error);
  CHECK_THROWS_AS(b.slice(17, 0), Error);
  CHECK_THROWS_AS(b.slice(4, SIZE_MAX), Error);
}

TEST_CASE("tensors hold typed values") {
  const Tensor t = Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4});
  CHECK(t.to_string() == "int32[2,2]");
  CHECK(t.bytes() == 16);
  CHECK(t.data<int32_t>()[3] == 4);
  CHECK_THROWS_AS(t.data<float>(), Error);
  CHECK(t.reshaped({4}).raw() == t.raw());
  CHECK_THROWS_AS(t.reshaped({3}), Error);
  CHECK(t.reinterpreted(DType::Float32).dtype() == DType::Float32);
  CHECK_THROWS_AS(t.reinterpreted(DType::Int64), Error);
  const Tensor copy = t.clone();
  CHECK(copy.raw() != t.raw());
  CHECK(std::memcmp(copy.raw(), t.raw(), 16) == 0);
  CHECK_THROWS_AS(Tensor(DType::Float64, {4}, t.buffer()), Error);
  CHECK_THROWS_AS(Tensor::of<float>({3}, {1.f, 2.f}), Error);
  CHECK_FALSE(Tensor());
  CHECK_FALSE(Tensor().clone());
}

TEST_CASE("strings live and die with their tensor") {
  Tensor view;
  {
    const Tensor t = Tensor::make(DType::String, {3});
    CHECK(t.data<std::string>()[2].empty());
    t.mutable_data<std::string>()[1] = std::string(100, 'x');
    view = t.reshaped({1, 3});
  }
  CHECK(view.data<std::string>()[1].size() == 100);
  const Tensor copy = view.clone();
  view = {};
  CHECK(copy.data<std::string>()[1][99] == 'x');
  CHECK(Tensor::of<std::string>({2}, {"a", "b"}).data<std::string>()[1] == "b");
}

TEST_CASE("conversion to numbers covers packed, narrow and extreme values") {
  Buffer packed = host_allocator().allocate(2);
  packed.data()[0] = std::byte{0xF7};
  packed.data()[1] = std::byte{0x08};
  CHECK(to_int64_vector(Tensor(DType::Int4, {3}, packed)) == std::vector<int64_t>{7, -1, -8});
  CHECK(to_int64_vector(Tensor(DType::UInt4, {3}, packed)) == std::vector<int64_t>{7, 15, 8});
  CHECK(to_int64_vector(Tensor(DType::Int2, {4}, packed)) == std::vector<int64_t>{-1, 1, -1, -1});
  CHECK(to_float_vector(Tensor(DType::Float4E2M1, {2}, packed)) == std::vector<float>{6.f, -6.f});
  CHECK(to_int64_vector(Tensor::of<float>({4}, {-1.9f, 1e30f, -1e30f, NAN})) ==
        std::vector<int64_t>{-1, INT64_MAX, INT64_MIN, 0});
  CHECK(to_float_vector(Tensor::of<Float16>({1}, {Float16(1.5f)}))[0] == 1.5f);
  CHECK(to_int64_scalar(Tensor::scalar(true)) == 1);
  CHECK(to_float_scalar(Tensor::scalar<int64_t>(-3)) == -3.f);
  CHECK_THROWS_AS(to_int64_scalar(Tensor::of<int64_t>({2}, {1, 2})), Error);
  CHECK_THROWS_AS(to_int64_vector(Tensor::of<std::string>({1}, {"1"})), Error);
}

TEST_CASE("values know their kind") {
  const Tensor t = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  Value v = t;
  CHECK(v.is_tensor());
  CHECK(v.bytes() == 24);
  CHECK(v.to_string() == "float32[2,3]");
  CHECK_THROWS_AS(v.sequence(), Error);
  const Value seq = Sequence{DType::Float32, {t, t}};
  CHECK(seq.sequence().items.size() == 2);
  CHECK(seq.bytes() == 48);
  CHECK_THROWS_AS(seq.tensor(), Error);
  const Value map = Map{Tensor::of<int64_t>({1}, {5}), {t}};
  CHECK(map.map().values[0].tensor().numel() == 6);
  CHECK(map.bytes() == 32);
  const Value some = Optional{std::make_shared<const Value>(t)};
  CHECK(some.optional().item->is_tensor());
  CHECK(Value(Optional{}).is_optional());
  CHECK_FALSE(Value(Optional{}).empty());
  CHECK(Value().empty());
  const Value sparse = Sparse{Tensor::of<float>({1}, {2}), Tensor::of<int64_t>({1}, {3}), Shape{8}};
  CHECK(sparse.sparse().shape == Shape{8});
  CHECK(sparse.bytes() == 12);
}

#ifdef __linux__
TEST_CASE("large blocks of the host begin where huge pages do, and all of their bytes are there") {
  for (const std::size_t bytes : {std::size_t{2} << 20, (std::size_t{2} << 20) + 1, (std::size_t{9} << 20) + 4097}) {
    const tensor::Buffer block = tensor::host_allocator().allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % (std::size_t{2} << 20) == 0);
    std::memset(block.data(), 7, bytes);
    CHECK(block.data()[bytes - 1] == std::byte{7});
  }
}
#endif

TEST_CASE("very many strings are made within looks, which may end it") {
  const Shape shape{200'000};
  int looks = 0;
  const Tensor made = Tensor::make_strings(shape, host_allocator(), [&] { ++looks; });
  CHECK(looks == 3);
  CHECK(made.numel() == 200'000);
  CHECK(made.data<std::string>()[199'999].empty());
  const auto give_up = [&] { fail(ErrorCode::Aborted, "ended"); };
  CHECK_THROWS_WITH_AS(Tensor::make_strings(shape, host_allocator(), give_up), "ended", Error);
}

TEST_CASE("very many strings are freed within looks, which may end it") {
  const std::string long_text(100, 'x');
  const auto made = [&] {
    const Tensor out = Tensor::make(DType::String, {200'000});
    std::ranges::fill(out.mutable_span<std::string>(), long_text);
    return out;
  };
  int looks = 0;
  const auto look = [&] { ++looks; };
  const Tensor own = made();
  free_texts(own, look);
  CHECK(looks == 12);
  CHECK(own.data<std::string>()[199'999].empty());
  CHECK(outside_bytes(own, [] {}) == 0);

  const Tensor shared = made(), other = shared;
  free_texts(shared, look);
  CHECK(shared.data<std::string>()[0] == long_text);
  CHECK(looks == 12);
  const Tensor kept = made();
  CHECK_THROWS_WITH_AS(free_texts(kept, [] { fail(ErrorCode::Aborted, "ended"); }), "ended", Error);
  CHECK(kept.data<std::string>()[199'999] == long_text);
}

TEST_CASE("the longest text of a tensor") {
  CHECK(longest_text(Tensor::of<std::string>({3}, {"ab", "", "abcd"})) == 4);
  CHECK(longest_text(Tensor::of<std::string>({0}, std::span<const std::string>())) == 0);
  CHECK(longest_text(Tensor::of<float>({1}, {1})) == 0);
}

TEST_CASE("a value of another kind than is asked for is the model's fault") {
  const Value list{Sequence{}};
  try {
    static_cast<void>(list.tensor());
    FAIL("it is a tensor");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidModel);
    CHECK(error.message() == "a tensor was expected where the value is sequence(0)");
  }
}
