#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/log.h"

namespace infernode::runtime {

/// The methods that loads of a model have measured, in a file: for each node's key the method's name.
///
///   infernode methods 1
///   <check sum of all that follows>
///   <facts: what else the measurement depends on, such as the CPU>
///   <key> <method>                one line each
class ChoiceFile {
 public:
  /// Reads the file. One that is not there is empty; one that is damaged or tells of other facts counts as such and is
  /// warned of. `facts` is one line. `logger` outlives this.
  ChoiceFile(std::string path, std::string facts, const Logger& logger);

  /// The method that the file gives; "" where it lacks the key.
  std::string_view find(std::string_view key) const;
  /// What the file is to hold when it is saved. `method` is one word.
  void keep(std::string_view key, std::string_view method);
  /// Replaces the file where it would change. What goes wrong is logged.
  void save() const;

 private:
  using Methods = std::map<std::string, std::string, std::less<>>;
  void read(std::string_view text);
  std::string text() const;

  std::string path_, facts_;
  const Logger& logger_;
  Methods read_, kept_;
};

}  // namespace infernode::runtime
