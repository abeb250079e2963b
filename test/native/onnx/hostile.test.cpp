// Whatever a file holds, reading it ends in a graph or in an Error.
#include <doctest/doctest.h>

#include <random>

#include "graph/text.h"
#include "onnx/writer.h"
#include "protos.h"

using namespace infernode;
using namespace protos;

namespace {
std::string sample() {
  graph::Model m = graph::parse_model(R"(
    <ir_version: 9, opset_import: ["" : 18, "l": 1], producer_name: "p", metadata_props: ["k": "v"]>
    g (float[N,4] x, bool c, seq(float[2]) s, int64[1] i = {3}) => (float[N,M] y, z)
    <float[2,2] w = {1, 2, 3, 4}, string[2] names = {"a", "b"}, int4[3] q = {1, -2, 3}>
    {
      t = MatMul <alpha = 0.5, k = [1, 2], l = [1.5], str = "v", ty = optional(float[2])> (x, w)
      u = Constant <value = float[3] {1, 2, 3}> ()
      y = If <then_branch = a () => (p) { p = Add(t, u) }, else_branch = b () => (r) <float[1] e = {1}> { r = Mul(t, e) }> (c)
      z = Gather(names, i)
    })");
  const auto bytes = onnx::write_model_bytes(m);
  std::string out(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  out += message([](pbf_writer& w) {
    w.add_message(onnx::model_field::kFunctions, message([](pbf_writer& f) {
                    f.add_string(1, "F");
                    f.add_string(10, "l");
                    f.add_string(4, "a");
                    f.add_string(5, "b");
                    f.add_message(7, node("Neg", {"a"}, {"b"}));
                  }));
  });
  return out;
}

bool survives(const std::string& bytes) {
  try {
    (void)read(bytes);
  } catch (const Error& e) {
    return !e.message().empty();
  }
  return true;
}
}  // namespace

TEST_CASE("the sample itself is read") {
  const graph::Model m = read(sample());
  CHECK(m.graph->node_count() == 4);
}

TEST_CASE("cut anywhere, a model is refused") {
  const std::string bytes = sample();
  size_t refused = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    REQUIRE(survives(bytes.substr(0, n)));
    refused += !read_error(bytes.substr(0, n)).message().empty();
  }
  // All cuts but those between the fields that follow the graph.
  CHECK(refused > bytes.size() * 9 / 10);
}

TEST_CASE("any byte changed to any of its neighbours ends in a graph or an error") {
  const std::string bytes = sample();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x08, 0x7f, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      REQUIRE(survives(damaged));
    }
  }
}

TEST_CASE("random edits and random bytes") {
  const std::string bytes = sample();
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(damaged.size());
      switch (below(4)) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + below(8));
          break;
        case 2:
          damaged.insert(at, std::string(1 + below(8), static_cast<char>(random())));
          break;
        default: {
          const std::string part = damaged.substr(below(damaged.size()), below(40));
          damaged.insert(at, part);
        }
      }
    }
    REQUIRE(survives(damaged));
    std::string noise(below(200), '\0');
    for (char& c : noise) c = static_cast<char>(random());
    REQUIRE(survives(noise));
  }
}
