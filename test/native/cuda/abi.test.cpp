// The declarations that are written by hand, against NVIDIA's own where those are found.

#include <doctest/doctest.h>

#include "providers/cuda/driver/types.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

using namespace infernode::cuda::driver;

static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig) && sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(sizeof(KernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS) && sizeof(Uuid) == sizeof(CUuuid));
static_assert(sizeof(TensorMapBytes) == sizeof(CUtensorMap) && alignof(TensorMapBytes) <= alignof(CUtensorMap));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));

TEST_CASE("numbers are those of cuda.h") {
  CHECK(kNoDevice == CUDA_ERROR_NO_DEVICE);
  CHECK(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
  CHECK(kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(kNotFound == CUDA_ERROR_NOT_FOUND);
  CHECK(kNotReady == CUDA_ERROR_NOT_READY);
  CHECK(kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(kLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT);
  CHECK(kAssert == CUDA_ERROR_ASSERT);
  CHECK(kHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR);
  CHECK(kIllegalInstruction == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CHECK(kMisalignedAddress == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(kInvalidAddressSpace == CUDA_ERROR_INVALID_ADDRESS_SPACE);
  CHECK(kInvalidPc == CUDA_ERROR_INVALID_PC);
  CHECK(kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(kSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  CHECK(kMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CHECK(kL2CacheSize == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  CHECK(kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CHECK(kMaxSharedMemoryPerBlockOptin == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  CHECK(kMaxDynamicSharedSizeBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  CHECK(kPreferredSharedMemoryCarveout == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  CHECK(kNonPortableClusterSizeAllowed == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  CHECK(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
  CHECK(kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(kAttributeClusterDimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(kAttributeProgrammaticStreamSerialization == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}
#endif
