#include "napi/tensor_wrap.h"

#include <cstring>

#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/wire.h"

namespace infernode::napi {

namespace {

constexpr napi_type_tag kTag{0x6a1f0e5b7c6d4a11, 0x8c1e9f20d4b35e77};

struct Parts {
  tensor::Tensor tensor;
  std::shared_ptr<session::Session> session;
};

}  // namespace

void TensorWrap::define(Napi::Env env) {
  const Napi::Function constructor = DefineClass(
      env, "NativeTensor",
      {InstanceAccessor<&TensorWrap::element_type>("elementType"), InstanceAccessor<&TensorWrap::dims>("dims"),
       InstanceAccessor<&TensorWrap::device>("device"), InstanceMethod<&TensorWrap::read>("read"),
       InstanceMethod<&TensorWrap::write>("write"), InstanceMethod<&TensorWrap::dispose>("dispose")});
  Environment::of(env).tensor_class = Napi::Persistent(constructor);
}

Napi::Object TensorWrap::make(Napi::Env env, tensor::Tensor tensor, std::shared_ptr<session::Session> session) {
  Environment& environment = Environment::of(env);
  Parts parts{std::move(tensor), std::move(session)};
  return environment.construct(environment.tensor_class, &parts);
}

TensorWrap::TensorWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  auto* parts = static_cast<Parts*>(Environment::of(info.Env()).constructing());
  if (parts == nullptr) throw Napi::TypeError::New(info.Env(), "Illegal constructor");
  if (napi_type_tag_object(info.Env(), info.This(), &kTag) != napi_ok) throw Napi::Error::New(info.Env());
  tensor_ = std::move(parts->tensor);
  session_ = std::move(parts->session);
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), static_cast<std::int64_t>(tensor_.bytes()));
}

TensorWrap::~TensorWrap() { drop(); }

void TensorWrap::drop() noexcept {
  if (!tensor_) return;
  std::int64_t now = 0;
  napi_adjust_external_memory(Env(), -static_cast<std::int64_t>(tensor_.bytes()), &now);
  tensor_ = {};
  session_.reset();
}

const tensor::Tensor& TensorWrap::tensor() const {
  if (!tensor_) fail(ErrorCode::Disposed, "The tensor is disposed.");
  return tensor_;
}

Napi::Value TensorWrap::element_type(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), static_cast<int>(tensor().dtype())); });
}

Napi::Value TensorWrap::dims(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Napi::Array dims = Napi::Array::New(info.Env(), tensor().rank());
    for (std::uint32_t i = 0; i < tensor().rank(); ++i) dims.Set(i, static_cast<double>(tensor().dim(i)));
    return dims;
  });
}

Napi::Value TensorWrap::device(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return Napi::String::New(info.Env(), tensor().device().to_string()); });
}

Napi::Value TensorWrap::read(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    tensor::Tensor host = tensor();
    if (!host.device().is_host()) {
      host = tensor::Tensor::make(tensor_.dtype(), tensor_.shape());
      session_->copy(tensor_, host);
    }
    return Napi::Value(info.Env(), copy_out(info.Env(), host));
  });
}

Napi::Value TensorWrap::write(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const tensor::Tensor source = view_data(info.Env(), tensor().dtype(), tensor().shape(), info[0], false);
    session_->copy(source, tensor_);
  });
}

Napi::Value TensorWrap::dispose(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { drop(); });
}

const tensor::Tensor& tensor_of(napi_env env, napi_value object) {
  napi_valuetype type{};
  bool tagged = false;
  check(env, napi_typeof(env, object, &type));
  if (type == napi_object) check(env, napi_check_object_type_tag(env, object, &kTag, &tagged));
  if (!tagged) fail(ErrorCode::InvalidArgument, "the handle of a tensor is not one of this engine");
  return TensorWrap::Unwrap(Napi::Object(env, object))->tensor();
}

}  // namespace infernode::napi
