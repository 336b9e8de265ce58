// The providers that use the inputs of a session and make its outputs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tenon {
class ExecutionProvider;
class Session;
}  // namespace tenon

namespace tenon::capi {

// The providers whose nodes read these inputs, and those whose nodes make these outputs; each once,
// in the session's order.
std::vector<ExecutionProvider*> ReadersOf(const Session& session,
                                          std::span<const std::string_view> inputs);
std::vector<ExecutionProvider*> MakersOf(const Session& session,
                                         std::span<const std::string_view> outputs);

}  // namespace tenon::capi
