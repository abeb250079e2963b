#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace infernode::session {

class Session;

/// Sessions that others of this process may find by a text. Holds none of them alive. Thread-safe.
class SharedSessions {
 public:
  SharedSessions();
  /// The session's text, the same each time. Anyone who knows it can find the session.
  std::string add(const std::shared_ptr<Session>& session);
  /// The session, with one user more. Throws InvalidArgument for a text that is none, or is of another process, and
  /// Disposed where the session has been released.
  std::shared_ptr<Session> find(std::string_view text);

 private:
  const std::string process_;  ///< a random prefix
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::weak_ptr<Session>> sessions_;
};

}  // namespace infernode::session
