// Limits that Linux control groups set. Sources: the kernel's cgroup-v1 and cgroup-v2 documentation, proc(5).
#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/system.h"

namespace infernode {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Takes the text up to `separator` off the front of `rest`.
std::string_view take(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return part;
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> quota_over_period(std::string_view quota, std::string_view period) {
  const auto used = parse_number<int64_t>(quota), of = parse_number<int64_t>(period);
  if (!used || !of || *used <= 0 || *of <= 0) return std::nullopt;
  return static_cast<double>(*used) / static_cast<double>(*of);
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (take(list, ',') == word) return true;
  return false;
}

/// mountinfo writes blanks and backslashes as three octal digits.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t k) { return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= '7'; };
    if (text[i] == '\\' && octal(1) && octal(2) && octal(3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  std::string root, point;
};

/// Where a hierarchy is mounted: the v2 one for an empty controller, else the v1 one that has the controller.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view controller) {
  while (!mountinfo.empty()) {
    std::string_view line = take(mountinfo, '\n');
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view tail = line.substr(dash + 3);
    const std::string_view type = take(tail, ' ');
    take(tail, ' ');
    if (controller.empty() ? type != "cgroup2" : type != "cgroup" || !has_word(trim(tail), controller)) continue;
    for (int skipped = 0; skipped < 3; ++skipped) take(line, ' ');
    const std::string_view root = take(line, ' ');
    return Mount{unescape(root), unescape(take(line, ' '))};
  }
  return std::nullopt;
}

/// This process's path in a hierarchy, from /proc/self/cgroup lines "id:controllers:path".
std::optional<std::string> find_path(std::string_view membership, std::string_view controller) {
  while (!membership.empty()) {
    std::string_view line = take(membership, '\n');
    const std::string_view id = take(line, ':');
    const std::string_view controllers = take(line, ':');
    if (controller.empty() ? id == "0" && controllers.empty() : has_word(controllers, controller))
      return std::string(line);
  }
  return std::nullopt;
}

/// Folders from this process's group up to the hierarchy's visible root, innermost first.
std::vector<std::string> group_folders(std::string_view mountinfo, std::string_view membership,
                                       std::string_view controller) {
  const auto mount = find_mount(mountinfo, controller);
  auto path = find_path(membership, controller);
  if (!mount || !path) return {};
  // The path counts from the hierarchy's root, of which the mount may show a part only.
  std::string_view inside = *path;
  if (mount->root != "/") {
    const bool below =
        inside.starts_with(mount->root) && (inside.size() == mount->root.size() || inside[mount->root.size()] == '/');
    inside = below ? inside.substr(mount->root.size()) : std::string_view{};
  }
  if (inside.find("/..") != std::string_view::npos) inside = {};
  std::vector<std::string> folders;
  while (!inside.empty() && inside != "/") {
    folders.push_back(mount->point + std::string(inside));
    inside = inside.substr(0, inside.rfind('/'));
  }
  folders.push_back(mount->point);
  return folders;
}

/// The number in the line "<key> <number>" of memory.stat; 0 where it is missing.
uint64_t stat_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    if (take(line, ' ') == key) return parse_number<uint64_t>(trim(line)).value_or(0);
  }
  return 0;
}

template <class T>
void lower_to(std::optional<T>& limit, std::optional<T> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

}  // namespace

std::optional<size_t> parse_cpu_list(std::string_view text) {
  text = trim(text);
  size_t count = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::string_view range = trim(take(text, ','));
    const size_t dash = range.find('-');
    const auto first = parse_number<uint32_t>(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<uint32_t>(range.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    count += size_t{*last} - *first + 1;
  }
  return count;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  text = trim(text);
  const std::string_view quota = take(text, ' ');
  return quota_over_period(quota, text.empty() ? "100000" : trim(text));
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
  return quota_over_period(trim(quota), trim(period));
}

std::optional<uint64_t> parse_memory_limit(std::string_view text) {
  // v1 writes "no limit" as the largest int64 rounded down to a page.
  constexpr uint64_t kUnlimited = uint64_t{1} << 62;
  const auto bytes = parse_number<uint64_t>(trim(text));
  if (!bytes || *bytes >= kUnlimited) return std::nullopt;
  return bytes;
}

CgroupLimits read_cgroup_limits(TextFileReader read) {
  CgroupLimits limits;
  const std::string mountinfo = read("/proc/self/mountinfo").value_or("");
  const std::string membership = read("/proc/self/cgroup").value_or("");
  const auto file = [&](const std::string& path) { return read(path).value_or(""); };

  for (const std::string& folder : group_folders(mountinfo, membership, "")) {
    lower_to(limits.cpu_quota, parse_cpu_max(file(folder + "/cpu.max")));
    lower_to(limits.cpuset, parse_cpu_list(file(folder + "/cpuset.cpus.effective")));
    lower_to(limits.memory, parse_memory_limit(file(folder + "/memory.max")));
  }
  for (const std::string& folder : group_folders(mountinfo, membership, "cpu"))
    lower_to(limits.cpu_quota,
             parse_cfs_quota(file(folder + "/cpu.cfs_quota_us"), file(folder + "/cpu.cfs_period_us")));
  for (const std::string& folder : group_folders(mountinfo, membership, "cpuset")) {
    lower_to(limits.cpuset, parse_cpu_list(file(folder + "/cpuset.effective_cpus")));
    lower_to(limits.cpuset, parse_cpu_list(file(folder + "/cpuset.cpus")));
  }
  for (const std::string& folder : group_folders(mountinfo, membership, "memory"))
    lower_to(limits.memory, parse_memory_limit(file(folder + "/memory.limit_in_bytes")));
  return limits;
}

std::optional<uint64_t> read_cgroup_headroom(TextFileReader read) {
  std::optional<uint64_t> least;
  const std::string mountinfo = read("/proc/self/mountinfo").value_or("");
  const std::string membership = read("/proc/self/cgroup").value_or("");
  const auto look = [&](std::string_view controller, const char* limit_file, const char* usage_file,
                        std::initializer_list<std::string_view> caches) {
    for (const std::string& folder : group_folders(mountinfo, membership, controller)) {
      const auto limit = parse_memory_limit(read(folder + limit_file).value_or(""));
      const auto usage = parse_number<uint64_t>(trim(read(folder + usage_file).value_or("")));
      if (!limit || !usage) continue;
      const std::string stat = read(folder + "/memory.stat").value_or("");
      uint64_t used = *usage;
      for (const std::string_view cache : caches) used -= std::min(used, stat_of(stat, cache));
      lower_to(least, std::optional(*limit > used ? *limit - used : 0));
    }
  };
  look("", "/memory.max", "/memory.current", {"inactive_file", "active_file"});
  look("memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", {"total_inactive_file", "total_active_file"});
  return least;
}

std::optional<uint64_t> parse_meminfo(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    if (take(line, ':') != key) continue;
    std::string_view value = trim(line);
    const auto kilobytes = parse_number<uint64_t>(take(value, ' '));
    if (!kilobytes || *kilobytes > UINT64_MAX >> 10) return std::nullopt;
    return *kilobytes << 10;
  }
  return std::nullopt;
}

}  // namespace infernode
