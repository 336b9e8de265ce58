// Sessions from models: the place where the rooms below come together.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/session.h"

namespace tenon::capi {

// A session over the model in a file, run by the CPU provider. Errors: those of ReadModel and
// Session::Create.
Result<std::unique_ptr<Session>> OpenSession(Environment& environment, const std::string& path,
                                             SessionOptions options);

// The same over a model in memory, of which nothing is needed afterwards.
Result<std::unique_ptr<Session>> OpenSession(Environment& environment,
                                             std::span<const std::byte> bytes,
                                             SessionOptions options);

}  // namespace tenon::capi
