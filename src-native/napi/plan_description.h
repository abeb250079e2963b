#pragma once

#include <napi.h>

#include "session/session.h"

namespace infernode::napi {

/// NativeGraph of src/native.ts.
Napi::Value describe_plan(Napi::Env env, const runtime::ExecutionPlan& plan, const session::Session::Memory& memory);

}  // namespace infernode::napi
