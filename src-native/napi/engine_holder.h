#pragma once

#include <memory>

#include "session/engine.h"

namespace infernode::napi {

/// The process's Engine, made and prepared for loads at the first call and shared by all environments; it ends when the
/// last of them, and the last session, lets go of it. Throws Error.
std::shared_ptr<session::Engine> acquire_engine();

/// Keeps this library in memory for the life of the process: Node unloads an addon when the last worker that loaded it
/// ends, and code may still be running on engine threads then.
void pin_library() noexcept;

}  // namespace infernode::napi
