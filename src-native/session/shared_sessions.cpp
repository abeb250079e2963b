#include "session/shared_sessions.h"

#include <charconv>
#include <random>

#include "base/error.h"
#include "session/session.h"

namespace infernode::session {

namespace {

std::string random_prefix() {
  std::random_device random;
  const auto word = [&] { return static_cast<std::uint64_t>(random()) << 32 | random(); };
  return cat("infernode:", word(), ":");
}

}  // namespace

SharedSessions::SharedSessions() : process_(random_prefix()) {}

std::string SharedSessions::add(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [](const auto& item) { return item.second.expired(); });
  for (const auto& [number, known] : sessions_) {
    if (known.lock() == session) return cat(process_, number);
  }
  sessions_.emplace(++last_, session);
  return cat(process_, last_);
}

std::shared_ptr<Session> SharedSessions::find(std::string_view text) {
  if (!text.starts_with("infernode:")) fail(ErrorCode::InvalidArgument, "This is no handle of a shared session.");
  if (!text.starts_with(process_)) {
    fail(ErrorCode::InvalidArgument,
         "This handle is of another process or another copy of the package: threads of one process can share a "
         "session, processes cannot. Create a "
         "session from the model's file there; the file's memory is shared.");
  }
  std::uint64_t number = 0;
  const std::string_view digits = text.substr(process_.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    if (error != std::errc() || end != digits.data() + digits.size() || number == 0 || number > last_)
      fail(ErrorCode::InvalidArgument, "This is no handle of a shared session.");
    const auto found = sessions_.find(number);
    if (found != sessions_.end()) session = found->second.lock();
  }
  if (!session || !session->add_user())
    fail(ErrorCode::Disposed, "The shared session has been released by all who used it.");
  return session;
}

}  // namespace infernode::session
