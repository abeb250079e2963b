#pragma once
// Sessions over models in text form.

#include "fusions/graph_test.h"
#include "onnx/writer.h"
#include "session/prepared_run.h"
#include "session/session.h"
#include "temporary_folder.h"

namespace infernode::test {

using session::Session;
using session::SessionOptions;

/// One engine for all tests, with two threads.
inline const std::shared_ptr<session::Engine>& engine() {
  static const auto one = session::Engine::create(2);
  return one;
}

/// A constant of noise, in text form.
inline std::string weight(const char* name, const Shape& shape, std::uint32_t seed) {
  std::string out = "float[";
  for (std::size_t i = 0; i < shape.rank(); ++i) out += cat(i == 0 ? "" : ",", shape[i]);
  out += cat("] ", name, " = {");
  const Tensor values = noise(DType::Float32, shape, seed);
  for (std::int64_t i = 0; i < values.numel(); ++i) out += cat(i == 0 ? "" : ", ", values.data<float>()[i]);
  return out + "}";
}

inline std::vector<std::byte> model_bytes(std::string_view text, std::int64_t opset = 17) {
  return onnx::write_model_bytes(graph::parse_model(text, opset));
}

inline session::ModelSource source_of(const std::vector<std::byte>& bytes) {
  const tensor::Buffer buffer = tensor::host_allocator().allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  return {.bytes = buffer};
}

inline std::shared_ptr<Session> open(std::string_view text, SessionOptions options = {}, std::int64_t opset = 17) {
  return Session::create(engine(), source_of(model_bytes(text, opset)), std::move(options));
}

inline std::vector<std::size_t> all_outputs(const Session& session) {
  std::vector<std::size_t> wanted(session.outputs().size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  return wanted;
}

/// A run of these outputs, into `targets` as far as there are some.
inline session::PreparedRun prepare(Session& session, const std::vector<Value>& inputs,
                                    const std::vector<std::size_t>& wanted, const std::vector<Value>& targets = {},
                                    session::RunOptions options = {}) {
  session::PreparedRun prepared = session.prepare(inputs, std::move(options));
  for (const std::size_t output : wanted) prepared.want(output);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].is_tensor()) prepared.write_into(i, targets[i].tensor());
  }
  return prepared;
}

/// All outputs.
inline std::vector<Value> run(Session& session, const std::vector<Value>& inputs, session::RunOptions options = {},
                              const kernel::CancelToken* cancel = nullptr) {
  return prepare(session, inputs, all_outputs(session), {}, std::move(options)).execute(cancel);
}

/// How long a run of all outputs is expected to take.
inline std::optional<double> expected_us(Session& session, const std::vector<Value>& inputs) {
  return prepare(session, inputs, all_outputs(session)).expected_us();
}

/// The Error that `f` ends in.
template <class F>
Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error came");
  return {ErrorCode::Internal, ""};
}

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace infernode::test
