#include "onnx/external_data.h"

#include <doctest/doctest.h>

#include "protos.h"

using namespace infernode;
using namespace protos;

namespace {
Error file_error(const std::string& path, const onnx::ReadOptions& options = {}) {
  return error_of([&] { (void)onnx::read_model_file(path, options); });
}
tensor::Buffer unowned(const std::string& bytes) {
  return tensor::Buffer(const_cast<char*>(bytes.data()), bytes.size(), nullptr, {}, false);
}
const std::string kWeights = bytes_of<float>({1, 2, 3, 4});
}  // namespace

TEST_CASE("external data lies next to the model, at an offset") {
  const TemporaryFolder folder;
  folder.write("sub/w.bin", kWeights);
  const std::string path = folder.write("m.onnx", model_of({external("w", 1, {2}, "sub/w.bin", "8", "8")}));
  const graph::Model m = onnx::read_model_file(path);
  CHECK(to_float_vector(constant(m, "w")) == std::vector<float>{3, 4});
  CHECK(m.files.size() == 2);
  const std::string whole = folder.write("n.onnx", model_of({external("w", 1, {4}, "./sub/w.bin")}));
  CHECK(to_float_vector(constant(onnx::read_model_file(whole), "w")).size() == 4);
}

TEST_CASE("large external data is a view of the mapped file") {
  const TemporaryFolder folder;
  folder.write("w.bin", std::string(1 << 20, '\3'));
  const std::string path = folder.write("m.onnx", model_of({external("w", 1, {1 << 17}, "w.bin", "4096")}));
  const tensor::Tensor w = constant(onnx::read_model_file(path), "w");
  CHECK_FALSE(w.buffer().writable());
  CHECK(w.buffer().size() == 1 << 19);
  CHECK(w.byte_span().back() == std::byte{3});
}

TEST_CASE("missing and short files name the initializer") {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.onnx", model_of({external("w", 1, {4}, "w.bin")}));
  const Error missing = file_error(path);
  CHECK(missing.code() == ErrorCode::Io);
  CHECK(contains(missing, "External data path validation failed for initializer: w"));
  folder.write("w.bin", kWeights.substr(0, 15));
  const Error tooShort = file_error(path);
  CHECK(tooShort.code() == ErrorCode::InvalidModel);
  CHECK(contains(tooShort, "out of bounds or can not be read in full"));
  folder.write("w.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 16\n");
  const std::string large = folder.write("n.onnx", model_of({external("w", 1, {64}, "w.bin")}));
  CHECK(contains(file_error(large), "git lfs pull"));
}

TEST_CASE("no path leads out of the model's folder") {
  const TemporaryFolder folder;
  folder.write("secret.bin", kWeights);
  std::filesystem::create_symlink(folder.path("secret.bin"),
                                  std::filesystem::path(folder.write("models/x", "")).replace_filename("link.bin"));
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("a/../../secret.bin"), folder.path("secret.bin"),
        std::string("link.bin"), std::string("C:\\secret.bin"), std::string("\\secret.bin")}) {
    const Error e = file_error(folder.write("models/m.onnx", model_of({external("w", 1, {4}, location)})));
    CAPTURE(e.message());
    CHECK(e.code() == ErrorCode::InvalidModel);
    CHECK(contains(e, "escapes model directory"));
    CHECK(contains(e, "initializer: w"));
  }
  CHECK(contains(file_error(folder.write("models/m.onnx", model_of({external("w", 1, {4}, std::string("a\0b", 3))}))),
                 "null character"));
  CHECK(contains(file_error(folder.write("models/m.onnx", model_of({external("w", 1, {4}, "")}))), "location"));
}

TEST_CASE("links of a download cache, model and data to one folder, are followed") {
  const TemporaryFolder folder;
  folder.write("blobs/1", model_of({external("w", 1, {4}, "w.bin")}));
  folder.write("blobs/2", kWeights);
  std::filesystem::create_directories(folder.path("snapshot"));
  std::filesystem::create_symlink("../blobs/1", folder.path("snapshot/m.onnx"));
  std::filesystem::create_symlink("../blobs/2", folder.path("snapshot/w.bin"));
  CHECK(to_float_vector(constant(onnx::read_model_file(folder.path("snapshot/m.onnx")), "w"))[3] == 4);
}

TEST_CASE("offsets and lengths are checked numbers") {
  const TemporaryFolder folder;
  folder.write("w.bin", kWeights);
  const auto error = [&](const char* offset, const char* length) {
    return file_error(folder.write("m.onnx", model_of({external("w", 1, {4}, "w.bin", offset, length)})));
  };
  CHECK(contains(error("-1", ""), "no number"));
  CHECK(contains(error("0x10", ""), "no number"));
  CHECK(contains(error("99999999999999999999", ""), "no number"));
  CHECK(contains(error("18446744073709551615", ""), "out of bounds"));
  CHECK(contains(error("4", ""), "out of bounds"));
  CHECK(contains(error("", "15"), "does not fit"));
}

TEST_CASE("data given by the caller is used instead of files") {
  onnx::ReadOptions options;
  options.external_data.emplace("w.bin", unowned(kWeights));
  const std::string bytes = model_of({external("w", 1, {2}, "./w.bin", "4")});
  CHECK(to_float_vector(constant(read(bytes, options), "w")) == std::vector<float>{2, 3});
  const Error shortData = read_error(model_of({external("w", 1, {5}, "w.bin")}), options);
  CHECK(shortData.code() == ErrorCode::InvalidArgument);
  CHECK(contains(shortData, "out of bounds or can not be read in full"));
  const Error absent = read_error(model_of({external("w", 1, {4}, "other.bin")}), options);
  CHECK(absent.code() == ErrorCode::InvalidArgument);
  CHECK(contains(absent, "not found from the table user provided"));
  CHECK(contains(absent, "The paths in externalData are 'w.bin'."));
}

TEST_CASE("a file of data that is not there is set against those that are") {
  const TemporaryFolder folder;
  folder.write("weights.bin", kWeights);
  const std::string path = folder.write("m.onnx", model_of({external("w", 1, {4}, "weight.bin")}));
  CHECK(contains(file_error(path), "does not exist"));
  CHECK(contains(file_error(path), "The folder holds 'm.onnx', 'weights.bin'."));
  for (int i = 10; i < 20; ++i) folder.write(cat("part", i), kWeights);
  CHECK(contains(file_error(path), "'part18' and 2 more."));
}

TEST_CASE("a model in memory finds its data in the folder that is named") {
  const TemporaryFolder folder;
  folder.write("w.bin", kWeights);
  onnx::ReadOptions options;
  options.external_folder = folder.path("");
  const std::string bytes = model_of({external("w", 1, {4}, "w.bin")});
  CHECK(to_float_vector(constant(read(bytes, options), "w"))[0] == 1);
  CHECK(contains(read_error(model_of({external("w", 1, {4}, "no-such-file.bin")})), "does not exist"));
}
