#include "napi/image_job.h"

#include <array>
#include <cstring>

#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/wire.h"
#include "ops/image/prepare_image.h"

namespace infernode::napi {

namespace {

using ops::ImagePreparation;

/// The numbers of src/native.ts's ImageNumbers, in their order.
class Numbers {
 public:
  explicit Numbers(const Napi::Value& array) : array_(array.As<Napi::Float64Array>()) {}

  double next() {
    if (place_ == array_.ElementLength()) fail(ErrorCode::InvalidArgument, "an image's description is too short");
    return array_[place_++];
  }
  std::size_t size() {
    const double number = next();
    if (!(number >= 0 && number <= 1e9)) fail(ErrorCode::InvalidArgument, "an image's size is out of range");
    return static_cast<std::size_t>(number);
  }

 private:
  Napi::Float64Array array_;
  std::size_t place_ = 0;
};

ImagePreparation read_preparation(Numbers numbers, bool& bytes) {
  ImagePreparation how;
  for (std::size_t* size : {&how.width, &how.height, &how.channels, &how.left, &how.top, &how.part_width,
                            &how.part_height, &how.to_width, &how.to_height, &how.to_channels}) {
    *size = numbers.size();
  }
  for (std::size_t& channel : how.order) channel = numbers.size();
  for (float& factor : how.factor) factor = static_cast<float>(numbers.next());
  for (float& shift : how.shift) shift = static_cast<float>(numbers.next());
  how.nearest = numbers.next() != 0;
  how.planar = numbers.next() != 0;
  bytes = numbers.next() != 0;
  return how;
}

class ImageJob final : public Job {
 public:
  ImageJob(Napi::Env env, const Napi::Function& done, const Napi::Value& pixels, const Napi::Value& numbers)
      : Job(done), how_(read_preparation(Numbers(numbers), bytes_)) {
    const std::span<std::byte> all = typed_array_bytes(env, pixels);
    elements_ = checked_elements(how_, all.size());
    const std::size_t row = how_.width * how_.channels;
    pixels_.resize(row * how_.part_height);
    std::memcpy(pixels_.data(), all.data() + row * how_.top, pixels_.size());
    how_.top = 0;  // of the rows that were copied
    how_.height = how_.part_height;
    kernels_ = &Environment::of(env).engine()->kernels(microkernels::Float32Precision::kHighest);
    const std::size_t size = bytes_ ? elements_ : elements_ * sizeof(float);
    result_ = Napi::Persistent(Napi::Object(env, make_array_buffer(env, size, data_)));
  }

 private:
  void execute() override {
    kernel::RunContext run;
    run.cancel = &cancel();
    if (bytes_) {
      ops::prepare_image<std::uint8_t>(how_, pixels_, {static_cast<std::uint8_t*>(data_), elements_}, *kernels_, run);
    } else {
      ops::prepare_image<float>(how_, pixels_, {static_cast<float*>(data_), elements_}, *kernels_, run);
    }
  }
  Napi::Value result(Napi::Env) override { return result_.Value(); }

  bool bytes_ = false;  ///< else floats
  ImagePreparation how_;
  std::size_t elements_ = 0;
  const microkernels::KernelSet* kernels_ = nullptr;
  std::vector<std::uint8_t> pixels_;
  Napi::ObjectReference result_;  ///< the ArrayBuffer whose bytes data_ are; JavaScript has it when the job is over
  void* data_ = nullptr;
};

}  // namespace

Napi::Value prepare_image(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return Napi::Number::New(
        info.Env(), Environment::of(info.Env())
                        .start(std::make_shared<ImageJob>(info.Env(), info[2].As<Napi::Function>(), info[0], info[1])));
  });
}

}  // namespace infernode::napi
