#include "transform/settings.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace infernode::transform {

std::int64_t Settings::whole(std::string_view name, std::int64_t least, std::int64_t most) const {
  const double value = number(name);
  if (std::trunc(value) != value || value < static_cast<double>(least) || value > static_cast<double>(most))
    fail_type(name, cat("a whole number from ", least, " to ", most));
  return static_cast<std::int64_t>(value);
}

bool Settings::lists(std::string_view name, std::string_view text) const {
  const std::vector<std::string>& all = texts(name);
  return std::ranges::find(all, text) != all.end();
}

const Setting& Settings::find(std::string_view name) const {
  const auto at = all_.find(name);
  if (at == all_.end()) fail(ErrorCode::InvalidArgument, cat("the option '", name, "' is missing"));
  return at->second;
}

void Settings::fail_type(std::string_view name, std::string_view expected) {
  fail(ErrorCode::InvalidArgument, cat("the option '", name, "' must be ", expected),
       {.expected = std::string(expected)});
}

}  // namespace infernode::transform
