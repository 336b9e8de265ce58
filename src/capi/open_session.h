// Makes sessions with the providers and operators of this library.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "capi/session_handle.h"
#include "capi/session_options.h"
#include "ir/model.h"

namespace tenon::capi {

// Reads a model with the initializers and files that the options give.
Result<Model> LoadModel(const std::string& path, const OrtSessionOptions& options);
// `bytes` may go away afterwards.
Result<Model> LoadModel(std::span<const std::byte> bytes, const OrtSessionOptions& options);

// Makes the session of a handle that has its environment.
Status StartSession(OrtSession& handle, Model model, const OrtSessionOptions& options);

}  // namespace tenon::capi
