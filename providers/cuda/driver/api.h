#pragma once

#include <memory>
#include <string>

#include "providers/cuda/driver/types.h"

#if defined(_WIN32)
#define INFERNODE_CUDA_CALL __stdcall
#else
#define INFERNODE_CUDA_CALL
#endif

namespace infernode::provider {
class DynamicLibrary;
}

namespace infernode::cuda::driver {

/// X(member, name in the driver, parameter types): all return Result. Every driver that runs this build's kernels
/// (kOldestDriver) has them.
#define INFERNODE_CUDA_FUNCTIONS(X)                                                                                \
  X(init, cuInit, (unsigned))                                                                                      \
  X(driver_version, cuDriverGetVersion, (int*))                                                                    \
  X(error_name, cuGetErrorName, (Result, const char**))                                                            \
  X(error_string, cuGetErrorString, (Result, const char**))                                                        \
  X(device_count, cuDeviceGetCount, (int*))                                                                        \
  X(device_get, cuDeviceGet, (DeviceId*, int))                                                                     \
  X(device_name, cuDeviceGetName, (char*, int, DeviceId))                                                          \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceId))                                                 \
  X(device_total_memory, cuDeviceTotalMem, (std::size_t*, DeviceId))                                               \
  X(primary_context_retain, cuDevicePrimaryCtxRetain, (Context*, DeviceId))                                        \
  X(primary_context_release, cuDevicePrimaryCtxRelease, (DeviceId))                                                \
  X(set_context, cuCtxSetCurrent, (Context))                                                                       \
  X(memory_info, cuMemGetInfo, (std::size_t*, std::size_t*))                                                       \
  X(memory_allocate, cuMemAlloc, (DeviceAddress*, std::size_t))                                                    \
  X(memory_free, cuMemFree, (DeviceAddress))                                                                       \
  X(host_allocate, cuMemHostAlloc, (void**, std::size_t, unsigned))                                                \
  X(host_free, cuMemFreeHost, (void*))                                                                             \
  X(copy_to_device, cuMemcpyHtoDAsync, (DeviceAddress, const void*, std::size_t, StreamHandle))                    \
  X(copy_to_host, cuMemcpyDtoHAsync, (void*, DeviceAddress, std::size_t, StreamHandle))                            \
  X(copy_on_device, cuMemcpyDtoDAsync, (DeviceAddress, DeviceAddress, std::size_t, StreamHandle))                  \
  X(fill_bytes, cuMemsetD8Async, (DeviceAddress, unsigned char, std::size_t, StreamHandle))                        \
  X(stream_create, cuStreamCreateWithPriority, (StreamHandle*, unsigned, int))                                     \
  X(stream_destroy, cuStreamDestroy, (StreamHandle))                                                               \
  X(stream_synchronize, cuStreamSynchronize, (StreamHandle))                                                       \
  X(event_create, cuEventCreate, (EventHandle*, unsigned))                                                         \
  X(event_destroy, cuEventDestroy, (EventHandle))                                                                  \
  X(event_record, cuEventRecord, (EventHandle, StreamHandle))                                                      \
  X(event_synchronize, cuEventSynchronize, (EventHandle))                                                          \
  X(event_elapsed, cuEventElapsedTime, (float*, EventHandle, EventHandle))                                         \
  X(module_load, cuModuleLoadData, (Module*, const void*))                                                         \
  X(module_unload, cuModuleUnload, (Module))                                                                       \
  X(module_function, cuModuleGetFunction, (Function*, Module, const char*))                                        \
  X(function_set_attribute, cuFuncSetAttribute, (Function, int, int))                                              \
  X(launch, cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**))                                     \
  X(capture_begin, cuStreamBeginCapture, (StreamHandle, int))                                                      \
  X(capture_end, cuStreamEndCapture, (StreamHandle, Graph*))                                                       \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                       \
  X(graph_upload, cuGraphUpload, (GraphExec, StreamHandle))                                                        \
  X(graph_launch, cuGraphLaunch, (GraphExec, StreamHandle))                                                        \
  X(graph_destroy, cuGraphDestroy, (Graph))                                                                        \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec))                                                           \
  X(encode_tiled, cuTensorMapEncodeTiled,                                                                          \
    (TensorMapBytes*, int type, std::uint32_t rank, void* address, const std::uint64_t* dims,                      \
     const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* element_strides, int interleave, \
     int swizzle, int l2_promotion, int oob_fill))                                                                 \
  X(encode_im2col, cuTensorMapEncodeIm2col,                                                                        \
    (TensorMapBytes*, int type, std::uint32_t rank, void* address, const std::uint64_t* dims,                      \
     const std::uint64_t* strides, const int* lower_corner, const int* upper_corner, std::uint32_t channels,       \
     std::uint32_t pixels, const std::uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,    \
     int oob_fill))

/// The functions of an opened driver; all are set.
struct Api {
#define INFERNODE_CUDA_MEMBER(member, name, parameters) Result(INFERNODE_CUDA_CALL* member) parameters = nullptr;
  INFERNODE_CUDA_FUNCTIONS(INFERNODE_CUDA_MEMBER)
#undef INFERNODE_CUDA_MEMBER
  int version = 0;  ///< 13000 for CUDA 13.0
  int devices = 0;  ///< at least 1
  std::shared_ptr<provider::DynamicLibrary> library;
};

/// Machine code made by this build's compiler needs a driver of this CUDA version or a later one.
inline constexpr int kOldestDriver = 13000;

/// Opens and initialises the driver. Throws Error(ProviderUnavailable) that says which of these it is: no driver, one
/// too old, no device, or none that CUDA_VISIBLE_DEVICES lets through.
std::shared_ptr<const Api> open();

}  // namespace infernode::cuda::driver
