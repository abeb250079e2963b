#include "session/io_binding.h"

#include "base/text/edit_distance.h"
#include "session/feed_check.h"

namespace infernode::session {

namespace {

std::size_t find_by_name(const std::vector<ValueMetadata>& values, std::string_view name, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return i;
    names.push_back(values[i].name);
  }
  const std::string_view nearest = nearest_name(name, names);
  fail(ErrorCode::InvalidArgument, cat("the model has no ", what, " named '", name, "'",
                                       nearest.empty() ? std::string() : cat("; did you mean '", nearest, "'?")));
}

}  // namespace

std::size_t IoBinding::input_index(std::string_view name) const {
  return find_by_name(session_->feeds(), name, "input");
}
std::size_t IoBinding::output_index(std::string_view name) const {
  return find_by_name(session_->outputs(), name, "output");
}

void IoBinding::bind_input(std::string_view name, tensor::Value value) {
  const std::size_t index = input_index(name);
  check_feed(session_->feeds()[index], value);
  inputs_[index] = std::move(value);
}

void IoBinding::bind_output(std::string_view name, tensor::Tensor target) {
  outputs_[output_index(name)] = std::move(target);
}
void IoBinding::bind_output(std::string_view name, tensor::Device device) { outputs_[output_index(name)] = device; }

std::vector<tensor::Value> IoBinding::run(const RunOptions& options, const kernel::CancelToken* cancel,
                                          std::vector<std::size_t>& wanted) {
  std::vector<tensor::Value> feeds(session_->feeds().size());
  for (const auto& [index, value] : inputs_) feeds[index] = value;
  wanted.clear();
  std::vector<tensor::Value> preallocated;
  std::vector<tensor::Device> devices;
  for (const auto& [index, target] : outputs_) {
    const auto* bound = std::get_if<tensor::Tensor>(&target);
    wanted.push_back(index);
    preallocated.emplace_back(bound != nullptr ? tensor::Value(*bound) : tensor::Value());
    devices.push_back(bound != nullptr ? bound->device() : std::get<tensor::Device>(target));
  }
  if (outputs_.empty()) {
    for (std::size_t i = 0; i < session_->outputs().size(); ++i) wanted.push_back(i);
  }
  std::vector<tensor::Value> results = session_->run({.feeds = feeds,
                                                      .wanted = wanted,
                                                      .preallocated = preallocated,
                                                      .devices = devices,
                                                      .cancel = cancel,
                                                      .options = options});
  for (std::size_t i = 0; i < preallocated.size(); ++i) {
    if (!preallocated[i].is_tensor()) continue;
    const tensor::Tensor& target = preallocated[i].tensor();
    const bool same = results[i].is_tensor() && results[i].tensor().dtype() == target.dtype() &&
                      results[i].tensor().shape() == target.shape();
    if (!same) {
      const std::string& name = session_->outputs()[wanted[i]].name;
      fail(ErrorCode::ShapeMismatch,
           cat("the tensor bound to output '", name, "' is ", target.to_string(), ", the run gave ",
               results[i].to_string()),
           {.output = name, .expected = results[i].to_string(), .actual = target.to_string()});
    }
  }
  return results;
}

}  // namespace infernode::session
