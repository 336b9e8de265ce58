// The devices and memories of a session's inputs and outputs.
#include "capi/session/value_places.h"

#include <algorithm>

#include "base/function_ref.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"
#include "capi/session/session_handle.h"

namespace tenon::capi {
namespace {

// The provider that owns a node; null if there is none.
const ExecutionProvider* OwnerOf(const Session& session, NodeId id) {
  if (id == NodeId::kNone) return nullptr;
  const Node* const node = session.model().graph->FindNode(id);
  if (node == nullptr || node->provider < 0) return nullptr;
  return session.providers()[static_cast<size_t>(node->provider)].get();
}

// The first reader of the i-th input; null if there is none.
const ExecutionProvider* ReaderOf(const Session& session, size_t i) {
  const Graph& graph = *session.model().graph;
  const ValueId id = graph.FindValue(session.inputs()[i].name);
  if (id == ValueId::kNone || graph.value(id).consumers.empty()) return nullptr;
  return OwnerOf(session, graph.value(id).consumers.front());
}

// The producer of the i-th output; null for an input that is an output, and for a constant.
const ExecutionProvider* MakerOf(const Session& session, size_t i) {
  const Graph& graph = *session.model().graph;
  return OwnerOf(session, graph.value(graph.outputs()[i].value).producer);
}

// The session's providers for which `owns` is true.
std::vector<ExecutionProvider*> Select(const Session& session,
                                       FunctionRef<bool(const ExecutionProvider*)> owns) {
  std::vector<ExecutionProvider*> selected;
  for (const auto& provider : session.providers()) {
    if (owns(provider.get())) selected.push_back(provider.get());
  }
  return selected;
}

// The device of the provider; null if there is no provider or its library was unregistered. For
// built-in ones it is the CPU.
const OrtEpDevice* DeviceOf(const OrtSession& session, const ExecutionProvider* provider) {
  if (provider == nullptr) return nullptr;
  const auto* const on_device = dynamic_cast<const DeviceProvider*>(provider);
  if (on_device == nullptr) return &CpuEpDevice();
  const OrtEpDevice* const device = on_device->device();
  return session.environment->eps.HasDevice(device, &on_device->source()) ? device : nullptr;
}

const OrtMemoryInfo* MemoryOfProvider(const OrtSession&, const ExecutionProvider* provider) {
  return Wrap<OrtMemoryInfo>(provider == nullptr ? &CpuMemory() : &provider->memory());
}

// One entry for each of the values: `describe` for the provider that `find` returns.
template <class Entry>
OrtStatus* List(const OrtSession* session,
                const std::vector<SessionValue>& (OrtSession::*values)() const,
                const ExecutionProvider* (*find)(const Session&, size_t),
                const Entry* (*describe)(const OrtSession&, const ExecutionProvider*),
                const Entry** entries, size_t count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL_ARRAY(entries, count);
    const std::vector<SessionValue>& listed = (session->*values)();
    if (count != listed.size()) {
      return InvalidArgument("expected room for {}, got {}", listed.size(), count);
    }
    const Session& current = session->session->current();
    for (size_t i = 0; i < count; ++i) {
      entries[i] = describe(*session, find(current, i));
    }
    return OkStatus();
  });
}

}  // namespace

std::vector<ExecutionProvider*> ReadersOf(const Session& session,
                                          std::span<const std::string_view> inputs) {
  const Graph& graph = *session.model().graph;
  const auto reads = [&](const ExecutionProvider* provider, std::string_view input) {
    const ValueId id = graph.FindValue(input);
    if (id == ValueId::kNone) return false;
    const auto& consumers = graph.value(id).consumers;
    return std::any_of(consumers.begin(), consumers.end(),
                       [&](NodeId consumer) { return OwnerOf(session, consumer) == provider; });
  };
  return Select(session, [&](const ExecutionProvider* provider) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](std::string_view input) { return reads(provider, input); });
  });
}

std::vector<ExecutionProvider*> MakersOf(const Session& session,
                                         std::span<const std::string_view> outputs) {
  return Select(session, [&](const ExecutionProvider* provider) {
    return std::any_of(outputs.begin(), outputs.end(), [&](std::string_view output) {
      const Result<size_t> place = session.interface().FindOutput(output);
      return place && MakerOf(session, *place) == provider;
    });
  });
}

OrtStatus* SessionGetEpDeviceForInputs(const OrtSession* session,
                                       const OrtEpDevice** inputs_ep_devices,
                                       size_t num_inputs) noexcept {
  return List(session, &OrtSession::inputs, ReaderOf, DeviceOf, inputs_ep_devices, num_inputs);
}

OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession* session,
                                        const OrtEpDevice** outputs_ep_devices,
                                        size_t num_outputs) noexcept {
  return List(session, &OrtSession::outputs, MakerOf, DeviceOf, outputs_ep_devices, num_outputs);
}

OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession* session,
                                         const OrtMemoryInfo** inputs_memory_info,
                                         size_t num_inputs) noexcept {
  return List(session, &OrtSession::inputs, ReaderOf, MemoryOfProvider, inputs_memory_info,
              num_inputs);
}

OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession* session,
                                          const OrtMemoryInfo** outputs_memory_info,
                                          size_t num_outputs) noexcept {
  return List(session, &OrtSession::outputs, MakerOf, MemoryOfProvider, outputs_memory_info,
              num_outputs);
}

}  // namespace tenon::capi
