#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "session/session.h"

namespace infernode::session {

/// Inputs and outputs bound beforehand, so that runs move nothing that need not move. Not thread-safe; one binding
/// serves one run at a time.
class IoBinding {
 public:
  explicit IoBinding(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  /// Binds a value (host or device) to an input or overridable initializer. Throws InvalidArgument naming the nearest
  /// input for an unknown name, and as check_feed does.
  void bind_input(std::string_view name, tensor::Value value);
  /// The output is written into this tensor; its dtype and shape must be what the run gives.
  void bind_output(std::string_view name, tensor::Tensor target);
  /// The output is left on this device, in memory of the engine.
  void bind_output(std::string_view name, tensor::Device device);
  void clear_inputs() { inputs_.clear(); }
  void clear_outputs() { outputs_.clear(); }
  const std::shared_ptr<Session>& session() const { return session_; }

  /// Runs with what is bound; results in the order of the model's outputs that are bound (all on the host where none
  /// is). Their indices go to `wanted`. A bound tensor whose dtype or shape does not fit gives ShapeMismatch naming the
  /// output.
  std::vector<tensor::Value> run(const RunOptions& options, const kernel::CancelToken* cancel,
                                 std::vector<std::size_t>& wanted);

 private:
  using Target = std::variant<tensor::Tensor, tensor::Device>;
  std::size_t input_index(std::string_view name) const;
  std::size_t output_index(std::string_view name) const;

  std::shared_ptr<Session> session_;
  std::map<std::size_t, tensor::Value> inputs_;
  std::map<std::size_t, Target> outputs_;
};

}  // namespace infernode::session
