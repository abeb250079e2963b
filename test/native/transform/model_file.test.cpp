#include "transform/model_file.h"

#include <filesystem>

#include "onnx/reader.h"
#include "onnx/writer.h"
#include "temporary_folder.h"
#include "transform/transform_test.h"

using namespace infernode;
using namespace infernode::test;
using transform::FileRequest;
using transform::Report;

namespace {

FileRequest request(const std::string& path, const std::string& output, bool external = false) {
  return {.path = path,
          .bytes = {},
          .output = output,
          .transformation = "quantizeWeights",
          .settings = {{"bits", 4.0},
                       {"blockSize", 16.0},
                       {"isSymmetric", true},
                       {"accuracyLevel", 0.0},
                       {"opTypesToQuantize", Texts{"MatMul"}},
                       {"nodesToExclude", Texts{}},
                       {"nodesToInclude", Texts{}},
                       {"useExternalDataFormat", external}}};
}

Report transform_file(const FileRequest& request, const kernel::CancelToken* cancel = nullptr) {
  kernel::RunContext run;
  run.cancel = cancel;
  return transform::transform_file(request, {.run = run, .registry = registry()});
}

graph::Model product() {
  return model_with(
      "g (float[2,48] x, w, bool c) => (y) { a = MatMul(x, w) y = If <then_branch = t () => (p) "
      "{ p = MatMul(a, w) }, else_branch = e () => (q) { q = Neg(a) }>(c) }",
      {{"w", quarters({48, 48})}});
}

/// The model as m.onnx, with its weight in m.onnx.data where `external` says so.
struct Place {
  explicit Place(bool external = false) {
    onnx::write_model_file(product(), model, {.external_threshold = external ? 1024 : SIZE_MAX});
  }
  TemporaryFolder folder;
  std::string model = folder / "m.onnx";
};

void check_answers(const std::string& path) {
  graph::Model before = product(), after = onnx::read_model_file(path);
  kernel::infer_graph(*before.graph, registry());
  kernel::infer_graph(*after.graph, registry());
  const std::vector<Value> inputs = feeds(*before.graph);
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs));
}

}  // namespace

TEST_CASE("the result is a file of its own, which names what it takes") {
  for (const bool external : {false, true}) {
    const Place place(external);
    const std::string output = place.folder / "q.onnx";
    const Report report = transform_file(request(place.model, output));
    CHECK(report.files == Texts{output});
    CHECK(report.bytes_before > 48 * 48 * 4);
    CHECK(std::filesystem::file_size(output) < 48 * 48 * 4 / 2);
    CHECK(place.folder.entries() == (external ? 3 : 2));
    check_answers(output);
    CHECK(onnx::read_model_file(output).info.opsets.at("com.microsoft") == 1);
  }
}

TEST_CASE("large tensors go to a file beside the model where that is asked for") {
  const Place place;
  const std::string output = place.folder / "q.onnx";
  CHECK(transform_file(request(place.model, output, true)).files == Texts{output, output + ".data"});
  check_answers(output);
}

TEST_CASE("a model may be bytes") {
  const Place place;
  const MappedFile file(place.model);
  FileRequest given = request("", place.folder / "q.onnx");
  given.bytes = tensor::Buffer(const_cast<std::byte*>(file.data()), file.size(), nullptr, {}, false);
  CHECK(transform_file(given).bytes_before == file.size());
  check_answers(given.output);
}

TEST_CASE("the model's own files are never written to") {
  const Place place(true);
  const FileIdentity model = file_identity(place.model), data = file_identity(place.model + ".data");
  const std::string link = place.folder / "link.onnx";
  std::filesystem::create_hard_link(place.model, link);
  // Its data would be the file that the model's weights are in.
  const std::string taken = place.folder / "other.onnx";
  std::filesystem::create_hard_link(place.model + ".data", taken + ".data");
  for (const std::string& output : {place.model, link, place.model + ".data", taken}) {
    CAPTURE(output);
    CHECK_THROWS_WITH_AS(transform_file(request(place.model, output, true)),
                         doctest::Contains("is a file of the model that is read"), Error);
  }
  CHECK(file_identity(place.model).size == model.size);
  CHECK(file_identity(place.model + ".data").modified_ns >= data.modified_ns);
  CHECK(place.folder.entries() == 4);
  check_answers(place.model);
}

TEST_CASE("what cannot be written leaves nothing behind") {
  const Place place;
  std::filesystem::create_directory(place.folder / "taken");
  CHECK_THROWS_AS(transform_file(request(place.model, place.folder / "taken", true)), Error);
  CHECK_THROWS_AS(transform_file(request(place.model, place.folder / "no/q.onnx")), Error);
  CHECK_THROWS_AS(transform_file(request(place.model, place.folder / "no/q.onnx", true)), Error);
  CHECK_THROWS_WITH_AS(transform_file(request(place.model, place.folder / "q.ort")),
                       doctest::Contains("let its name say so"), Error);
  CHECK_THROWS_WITH_AS(transform_file(request(place.model, "")), "the output needs the path of a file", Error);
  CHECK_THROWS_AS(transform_file(request(place.folder / "none.onnx", place.folder / "q.onnx")), Error);
#if defined(__linux__)
  CHECK_THROWS_WITH_AS(transform_file(request(place.model, "/dev/full")), doctest::Contains("No space left"), Error);
#endif
  kernel::CancelToken token;
  token.cancel();
  CHECK_THROWS_AS(transform_file(request(place.model, place.folder / "q.onnx", true), &token), Error);
  CHECK(place.folder.entries() == 2);  // the model and "taken"
}
