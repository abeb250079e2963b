#pragma once
// Types of the CUDA driver's interface, written by hand from its public documentation (test/native/cuda/ holds them
// against cuda.h where that is found). Names are the driver's without their prefix.

#include <cstddef>
#include <cstdint>

namespace infernode::cuda::driver {

using Result = int;  ///< CUresult
using DeviceId = int;
using DeviceAddress = std::uint64_t;  ///< CUdeviceptr
using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using Graph = struct CUgraph_st*;
using GraphExec = struct CUgraphExec_st*;

inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4,
                        kStubLibrary = 34, kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200,
                        kNoBinaryForGpu = 209, kUnsupportedPtxVersion = 222, kNotFound = 500, kNotReady = 600,
                        kIllegalAddress = 700, kLaunchOutOfResources = 701, kLaunchTimeout = 702, kAssert = 710,
                        kHardwareStackError = 714, kIllegalInstruction = 715, kMisalignedAddress = 716,
                        kInvalidAddressSpace = 717, kInvalidPc = 718, kLaunchFailed = 719, kSystemDriverMismatch = 803,
                        kUnknown = 999;

/// CUdevice_attribute
inline constexpr int kMultiprocessorCount = 16, kEccEnabled = 32, kL2CacheSize = 38, kComputeCapabilityMajor = 75,
                     kComputeCapabilityMinor = 76, kMaxSharedMemoryPerBlockOptin = 97;
/// CUfunction_attribute
inline constexpr int kMaxDynamicSharedSizeBytes = 8, kPreferredSharedMemoryCarveout = 9,
                     kNonPortableClusterSizeAllowed = 14;
/// CUstream_flags, CUevent_flags, CUstreamCaptureMode
inline constexpr unsigned kStreamNonBlocking = 1, kEventDefault = 0, kEventDisableTiming = 2;
inline constexpr int kCaptureThreadLocal = 1;
/// CUmemhostalloc flags
inline constexpr unsigned kHostPortable = 1;

struct Uuid {
  unsigned char bytes[16];
};

/// CUlaunchAttributeID
inline constexpr int kAttributeClusterDimension = 4, kAttributeProgrammaticStreamSerialization = 6;

union LaunchAttributeValue {
  char pad[64];
  struct {
    unsigned x, y, z;
  } cluster;
  int programmatic;  ///< programmaticStreamSerializationAllowed
};

struct LaunchAttribute {
  int id;
  char pad[4];
  LaunchAttributeValue value;
};

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct KernelNodeParams {
  Function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
  struct CUkern_st* kernel;
  Context context;
};

/// CUtensorMap: how the bulk-copy engine walks a tensor.
struct alignas(64) TensorMapBytes {
  unsigned char bytes[128];
};

static_assert(sizeof(void*) != 8 || sizeof(LaunchConfig) == 56);
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);
static_assert(sizeof(TensorMapBytes) == 128 && alignof(TensorMapBytes) == 64);
static_assert(sizeof(void*) != 8 || sizeof(KernelNodeParams) == 72);
static_assert(sizeof(Uuid) == 16);

}  // namespace infernode::cuda::driver
