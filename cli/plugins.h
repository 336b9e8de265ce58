// Libraries with execution providers that the command line names.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <string>
#include <vector>

namespace tenon::cli {

// Registers the libraries under their paths. Throws Error for one that cannot be registered, or
// that finds no device.
void RegisterPlugins(Ort::Env& env, const std::vector<std::string>& libraries);

// Gives the devices of the libraries to a session, the first library's first.
void UsePlugins(Ort::Env& env, const std::vector<std::string>& libraries,
                Ort::SessionOptions& options);

// The names of the libraries' providers, in the order that UsePlugins gives them in.
std::vector<std::string> ProvidersOf(const Ort::Env& env,
                                     const std::vector<std::string>& libraries);

}  // namespace tenon::cli
