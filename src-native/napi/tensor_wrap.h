#pragma once

#include <napi.h>

#include <memory>

#include "session/session.h"

namespace infernode::napi {

/// NativeTensor of src/native.ts: a tensor in the engine's memory.
class TensorWrap : public Napi::ObjectWrap<TensorWrap> {
 public:
  static void define(Napi::Env env);
  /// `session` copies to and from devices. The tensor must not be borrowed.
  static Napi::Object make(Napi::Env env, tensor::Tensor tensor, std::shared_ptr<session::Session> session);

  explicit TensorWrap(const Napi::CallbackInfo& info);
  ~TensorWrap() override;
  /// Throws Error(Disposed).
  const tensor::Tensor& tensor() const;

 private:
  Napi::Value element_type(const Napi::CallbackInfo& info);
  Napi::Value dims(const Napi::CallbackInfo& info);
  Napi::Value device(const Napi::CallbackInfo& info);
  Napi::Value read(const Napi::CallbackInfo& info);
  Napi::Value write(const Napi::CallbackInfo& info);
  Napi::Value dispose(const Napi::CallbackInfo& info);
  void drop() noexcept;

  tensor::Tensor tensor_;
  std::shared_ptr<session::Session> session_;
};

/// The tensor of a NativeTensor object; throws Error(InvalidArgument) for any other value and Error(Disposed).
const tensor::Tensor& tensor_of(napi_env env, napi_value object);

}  // namespace infernode::napi
