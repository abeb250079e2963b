#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace infernode::transform {

using Setting = std::variant<bool, double, std::string, std::vector<std::string>, std::vector<double>>;

/// The options of one transformation, by name. Who calls gives all of them: defaults stand in the TypeScript layer's
/// tables. Getters throw InvalidArgument naming an option that is missing or of another type.
class Settings {
 public:
  Settings() = default;
  Settings(std::initializer_list<std::pair<const std::string, Setting>> all) : all_(all) {}

  void set(std::string name, Setting value) { all_.insert_or_assign(std::move(name), std::move(value)); }
  bool flag(std::string_view name) const { return get<bool>(name, "true or false"); }
  /// A whole number from `least` to `most`.
  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most) const;
  double number(std::string_view name) const { return get<double>(name, "a number"); }
  const std::vector<double>& numbers(std::string_view name) const {
    return get<std::vector<double>>(name, "a list of numbers");
  }
  const std::string& text(std::string_view name) const { return get<std::string>(name, "a text"); }
  const std::vector<std::string>& texts(std::string_view name) const {
    return get<std::vector<std::string>>(name, "a list of texts");
  }
  /// Whether the list `name` has `text`.
  bool lists(std::string_view name, std::string_view text) const;

 private:
  const Setting& find(std::string_view name) const;
  [[noreturn]] static void fail_type(std::string_view name, std::string_view expected);

  template <class T>
  const T& get(std::string_view name, std::string_view expected) const {
    const T* value = std::get_if<T>(&find(name));
    if (value == nullptr) fail_type(name, expected);
    return *value;
  }

  std::map<std::string, Setting, std::less<>> all_;
};

}  // namespace infernode::transform
