// Libraries with execution providers that the command line names.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

// Registers the libraries under their paths. Throws Error for one that cannot be registered, or
// that finds no device.
void RegisterPlugins(Ort::Env& env, const std::vector<std::string>& libraries);

// Gives one device of each of the libraries' providers to a session, the first library's first: the
// one with that place among the provider's devices, else a GPU, else an NPU, else the first. Throws
// Error for a place that no device has.
void UsePlugins(Ort::Env& env, const std::vector<std::string>& libraries,
                std::optional<size_t> place, Ort::SessionOptions& options);

// The names of the libraries' providers, in the order that UsePlugins gives them in.
std::vector<std::string> ProvidersOf(const Ort::Env& env,
                                     const std::vector<std::string>& libraries);

}  // namespace tenon::cli
