// Makes sessions with the providers and operators of this library.
#pragma once

#include <cstddef>
#include <functional>
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

// Reads a session's model again.
using ModelLoader = std::function<Result<Model>()>;

// What reads the model again for a fallback; null if the options want none, or the model's bytes
// are not to be kept. The loader keeps whatever it reads from.
ModelLoader LoaderFor(const std::string& path, const OrtSessionOptions& options);
ModelLoader LoaderFor(std::span<const std::byte> bytes, const OrtSessionOptions& options);

// Makes the session of a handle that has its environment. Without `reload` it has no fallback. If
// its providers cannot be had, `model` stays as it is.
Status StartSession(OrtSession& handle, Model&& model, const OrtSessionOptions& options,
                    ModelLoader reload = nullptr);

}  // namespace tenon::capi
