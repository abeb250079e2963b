#include "session/shared_sessions.h"

#include <doctest/doctest.h>

#include <thread>

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr const char* kModel = "m(float[n] x) => (float[n] y) { y = Neg(x) }";

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

}  // namespace

TEST_CASE("a session is found by its text until its last user releases it") {
  const auto session = open(kModel);
  auto& shared = engine()->shared_sessions();
  const std::string text = shared.add(session);
  CHECK(shared.add(session) == text);
  const auto other = shared.find(text);
  CHECK(other == session);
  CHECK(session->release());
  CHECK_FALSE(session->released());
  CHECK(shared.find(text) == session);
  CHECK(other->release());
  CHECK(other->release());
  CHECK(session->released());
  CHECK_FALSE(session->release());
  CHECK(code_of([&] { shared.find(text); }) == ErrorCode::Disposed);
}

TEST_CASE("a user who leaves does not end the session for others") {
  const auto session = open(kModel);
  session->add_user();
  session->leave();
  CHECK_FALSE(session->released());
  CHECK(session->release());
  CHECK(session->released());
}

TEST_CASE("the last user may leave in place of a release, and all is freed") {
  const auto session = open(kModel);
  session->add_user();
  CHECK(session->release());
  CHECK_FALSE(session->released());
  session->leave();
  CHECK(session->released());
  CHECK(session->memory_bytes() == 0);
  CHECK(code_of([&] { session->prepare({}); }) == ErrorCode::Disposed);
  CHECK_FALSE(session->release());
}

TEST_CASE("a text of a session that is gone, and one that never was") {
  session::SharedSessions shared;
  auto session = open(kModel);
  const std::string text = shared.add(session);
  session.reset();
  CHECK(code_of([&] { shared.find(text); }) == ErrorCode::Disposed);
  for (const std::string& wrong :
       {std::string(), std::string("x"), text + "1", text + " ", engine()->shared_sessions().add(open(kModel))})
    CHECK(code_of([&] { shared.find(wrong); }) == ErrorCode::InvalidArgument);
}

TEST_CASE("threads open and release one session at once") {
  const auto session = open(kModel);
  const std::string text = engine()->shared_sessions().add(session);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&text] {
      for (int i = 0; i < 200; ++i) engine()->shared_sessions().find(text)->release();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(session->released());
  CHECK(session->release());
  CHECK(session->released());
}
