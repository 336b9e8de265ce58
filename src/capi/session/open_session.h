// Creates sessions with the providers and operators of this library.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "capi/options/session_options.h"
#include "capi/session/session_handle.h"
#include "ir/model.h"

namespace tenon::capi {

// Reads a model with the initializers and files from the options.
Result<Model> LoadModel(const std::string& path, const OrtSessionOptions& options);
// `bytes` may be freed afterwards.
Result<Model> LoadModel(std::span<const std::byte> bytes, const OrtSessionOptions& options);

// Begins the trace that `options` ask for, in the session of a handle that has its environment, and
// calls `load` in it. Errors: those of `load`; a bad value of an entry tenon.profiling.*.
Result<Model> LoadInTrace(OrtSession& handle, const OrtSessionOptions& options,
                          FunctionRef<Result<Model>()> load);

// Reads a session's model again.
using ModelLoader = std::function<Result<Model>()>;

// Reads `model` again: for a fallback, or for runs that feed axes of equal names with different
// sizes. Null if neither can follow, or if the model's bytes are not to be kept. The loader keeps
// the source of the model.
ModelLoader LoaderFor(const std::string& path, const OrtSessionOptions& options,
                      const Model& model);
ModelLoader LoaderFor(std::span<const std::byte> bytes, const OrtSessionOptions& options,
                      const Model& model);

// Creates the session of a handle that has its environment. Without `reload` no other session can
// replace it. If its providers cannot be made, `model` does not change.
Status StartSession(OrtSession& handle, Model&& model, const OrtSessionOptions& options,
                    ModelLoader reload = nullptr);

}  // namespace tenon::capi
