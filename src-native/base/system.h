#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace infernode {

/// Cores that this process may keep busy: the least of the online cores, its affinity mask, its cpuset and the quota of
/// its cgroup and their parents, rounded up; at least 1.
size_t available_cores();
size_t page_size() noexcept;
/// Where the system can join pages: memory that begins at a multiple of this is faulted in and translated in a fraction
/// of the time once prefer_huge_pages() was asked for it.
inline constexpr size_t kHugePage = size_t{2} << 20;
/// A hint for the whole huge pages within writable memory; nothing where the system has none.
void prefer_huge_pages(void* data, size_t bytes) noexcept;
/// Bytes of physical memory that this process may use: the machine's, or its cgroup's limit where that is lower.
uint64_t memory_limit();
/// Bytes that this process can still take without the system ending processes to find them: what the machine has left
/// (swap included), or its cgroup where that is less; UINT64_MAX where the system does not tell or refuses by itself.
uint64_t available_memory();
/// Throws OutOfMemory where `bytes` are more than available_memory(). Systems that overcommit grant memory that is not
/// there and kill who uses it. Looks only for sizes that could matter, so it may be called for every large block.
void expect_available(uint64_t bytes);

/// Gives the system what was freed and the C library keeps for later: many small blocks may be far more than all large
/// ones.
void return_freed_memory() noexcept;

/// Reads a whole small text file; nullopt when it does not exist. The functions below are pure over it.
using TextFileReader = FunctionRef<std::optional<std::string>(const std::string& path)>;

/// Number of CPUs in a list such as "0-3,8,10-11"; nullopt if malformed or empty.
std::optional<size_t> parse_cpu_list(std::string_view text);
/// cgroup v2 `cpu.max`: "200000 100000" is 2.0 cores; nullopt for "max" or malformed text.
std::optional<double> parse_cpu_max(std::string_view text);
/// cgroup v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`; nullopt when the quota is -1 or malformed.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);
/// `memory.max` (v2) or `memory.limit_in_bytes` (v1); nullopt for "max", for v1's "unlimited" number or malformed text.
std::optional<uint64_t> parse_memory_limit(std::string_view text);

/// Limits found by walking from this process's cgroups to the root of each hierarchy, for /proc and /sys read through
/// `read`.
struct CgroupLimits {
  std::optional<double> cpu_quota;  ///< cores
  std::optional<size_t> cpuset;     ///< number of CPUs
  std::optional<uint64_t> memory;   ///< bytes
};
CgroupLimits read_cgroup_limits(TextFileReader read);
/// Least that a group around this process has left of its memory limit; page cache that can be dropped counts as left.
std::optional<uint64_t> read_cgroup_headroom(TextFileReader read);
/// Bytes of the line `key` ("MemAvailable") of /proc/meminfo; nullopt where it is missing.
std::optional<uint64_t> parse_meminfo(std::string_view text, std::string_view key);

}  // namespace infernode
