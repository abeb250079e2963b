#include "provider/absent.h"

#include <algorithm>

#include "provider/dynamic_library.h"

namespace infernode::provider {

namespace {

#if defined(_WIN32)
constexpr const char* kPlatform = "Windows";
constexpr const char* kCuda[] = {"nvcuda.dll"};
constexpr const char* kTensorRt[] = {"nvinfer_10.dll", "nvinfer.dll"};
constexpr const char* kDirectMl[] = {"DirectML.dll"};
#elif defined(__APPLE__)
constexpr const char* kPlatform = "macOS";
constexpr const char* kCoreMl[] = {"/System/Library/Frameworks/CoreML.framework/CoreML"};
#elif defined(__ANDROID__)
constexpr const char* kPlatform = "Android";
constexpr const char* kNnapi[] = {"libneuralnetworks.so"};
#else
constexpr const char* kPlatform = "Linux";
constexpr const char* kCuda[] = {"libcuda.so.1"};
constexpr const char* kTensorRt[] = {"libnvinfer.so.10", "libnvinfer.so"};
#endif

[[noreturn]] void fail_elsewhere(const char* name, const char* where) {
  fail(ErrorCode::ProviderUnavailable,
       cat("provider '", name, "' exists only on ", where, "; this is ", kPlatform, ". Use 'cpu'."));
}

[[maybe_unused]] [[noreturn]] void fail_absent(const char* name, std::span<const char* const> libraries) {
  std::string why;
  const bool here = DynamicLibrary::open(libraries, why) != nullptr;
  fail(ErrorCode::ProviderUnavailable,
       cat("provider '", name, "' cannot start: this build of infernode has no kernels for it. Use 'cpu'. ",
           here ? cat("(", libraries[0], " is here.)") : cat("(Failed to load shared library: ", why, ")")));
}

using Made = std::shared_ptr<Provider>;

Made make_cuda(const ProviderOptions&, const Logger&) {
#if defined(_WIN32) || (defined(__linux__) && !defined(__ANDROID__))
  fail_absent("cuda", kCuda);
#else
  fail_elsewhere("cuda", "Linux and Windows");
#endif
}

Made make_tensorrt(const ProviderOptions&, const Logger&) {
#if defined(_WIN32) || (defined(__linux__) && !defined(__ANDROID__))
  fail_absent("tensorrt", kTensorRt);
#else
  fail_elsewhere("tensorrt", "Linux and Windows");
#endif
}

Made make_directml(const ProviderOptions&, const Logger&) {
#if defined(_WIN32)
  fail_absent("dml", kDirectMl);
#else
  fail_elsewhere("dml", "Windows");
#endif
}

Made make_coreml(const ProviderOptions&, const Logger&) {
#if defined(__APPLE__)
  fail_absent("coreml", kCoreMl);
#else
  fail_elsewhere("coreml", "macOS");
#endif
}

Made make_nnapi(const ProviderOptions&, const Logger&) {
#if defined(__ANDROID__)
  fail_absent("nnapi", kNnapi);
#else
  fail_elsewhere("nnapi", "Android");
#endif
}

/// Names that the peer's typings know and that have no counterpart in this engine.
template <const char* const& Name>
Made refuse(const ProviderOptions&, const Logger&) {
  fail(ErrorCode::ProviderUnavailable,
       cat("no available backend found. ERR: [", Name, "] infernode has no provider '", Name, "'. Use 'cpu'."));
}
constexpr const char* kWebGpu = "webgpu";
constexpr const char* kQnn = "qnn";
constexpr const char* kXnnpack = "xnnpack";
constexpr const char* kWasm = "wasm";
constexpr const char* kWebGl = "webgl";
constexpr const char* kWebNn = "webnn";

}  // namespace

void add_absent(std::vector<ProviderFactory>& factories) {
  const ProviderFactory absent[] = {
      {"cuda", false, make_cuda},       {"tensorrt", false, make_tensorrt},   {"dml", false, make_directml},
      {"coreml", false, make_coreml},   {"nnapi", false, make_nnapi},         {"webgpu", false, refuse<kWebGpu>},
      {"qnn", false, refuse<kQnn>},     {"xnnpack", false, refuse<kXnnpack>}, {"wasm", false, refuse<kWasm>},
      {"webgl", false, refuse<kWebGl>}, {"webnn", false, refuse<kWebNn>},
  };
  for (const ProviderFactory& factory : absent) {
    const bool known = std::any_of(factories.begin(), factories.end(),
                                   [&](const ProviderFactory& f) { return f.name == factory.name; });
    if (!known) factories.push_back(factory);
  }
}

}  // namespace infernode::provider
