// Libraries with execution providers from the command line.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

// Registers the libraries under their paths. Throws Error for one that cannot be registered, or
// that finds no device.
void RegisterPlugins(Ort::Env& env, const std::vector<std::string>& libraries);

// Adds one device of each of the libraries' providers to a session, the first library's first: the
// one with that index among the provider's devices, otherwise a GPU, an NPU, or the first device.
// Throws Error for an index that no device has.
void UsePlugins(Ort::Env& env, const std::vector<std::string>& libraries,
                std::optional<size_t> place, Ort::SessionOptions& options);

// The names of the libraries' providers, in the order in which UsePlugins adds them.
std::vector<std::string> ProvidersOf(const Ort::Env& env,
                                     const std::vector<std::string>& libraries);

}  // namespace tenon::cli
