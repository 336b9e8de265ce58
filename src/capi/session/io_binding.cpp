// OrtIoBinding: inputs and outputs that are set once.
#include "runtime/io_binding.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/session/session_handle.h"
#include "capi/session/value_places.h"
#include "capi/value/allocator.h"

struct OrtIoBinding {
  const OrtSession* session;
  // A run changes the contents of a binding, although the ABI calls it const.
  mutable tenon::IoBinding binding;
};

namespace tenon::capi {
namespace {

// Values of `binding` as handles in memory of `allocator`, null for none.
Result<OrtValue**> CopyValues(std::span<const Value> values, OrtAllocator* allocator) {
  if (values.empty()) return nullptr;
  std::vector<std::unique_ptr<Value>> copies;
  for (const Value& value : values) copies.push_back(std::make_unique<Value>(value));
  TENON_ASSIGN_OR_RETURN(void* const block,
                         AllocateFrom(allocator, values.size() * sizeof(OrtValue*)));
  auto* const handles = static_cast<OrtValue**>(block);
  std::transform(copies.begin(), copies.end(), handles,
                 [](auto& copy) { return Wrap<OrtValue>(copy.release()); });
  return handles;
}

bool HasMemory(const FallbackSession& session, const MemoryInfo& memory) {
  const auto providers = session.providers();
  return std::any_of(providers.begin(), providers.end(),
                     [&](const auto& provider) { return provider->memory().SameDevice(memory); });
}

// Waits until these devices are idle: all copies and computations are then complete.
Status Await(std::span<ExecutionProvider* const> providers) {
  for (ExecutionProvider* const provider : providers) {
    TENON_RETURN_IF_ERROR(provider->Synchronize());
  }
  return OkStatus();
}

}  // namespace

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(out);
    *out = new OrtIoBinding{session, IoBinding(session->session->first())};
    return OkStatus();
  });
}

void ReleaseIoBinding(OrtIoBinding* input) noexcept { delete input; }

OrtStatus* BindInput(OrtIoBinding* binding_ptr, const char* name,
                     const OrtValue* val_ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(val_ptr);
    return binding_ptr->binding.BindInput(name, *Unwrap(val_ptr));
  });
}

OrtStatus* BindOutput(OrtIoBinding* binding_ptr, const char* name,
                      const OrtValue* val_ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(val_ptr);
    return binding_ptr->binding.BindOutput(name, *Unwrap(val_ptr));
  });
}

OrtStatus* BindOutputToDevice(OrtIoBinding* binding_ptr, const char* name,
                              const OrtMemoryInfo* mem_info_ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(mem_info_ptr);
    const MemoryInfo& memory = InternMemoryInfo(*Unwrap(mem_info_ptr));
    if (!HasMemory(*binding_ptr->session->session, memory)) {
      return InvalidArgument(
          "output '{}': no provider of the session has memory of '{}', device {}", name,
          memory.name, memory.device_id);
    }
    return binding_ptr->binding.BindOutputTo(name, memory);
  });
}

OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                               char** buffer, size_t** lengths, size_t* count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(buffer);
    TENON_RETURN_IF_NULL(lengths);
    TENON_RETURN_IF_NULL(count);
    const std::vector<std::string_view> names = binding_ptr->binding.output_names();
    *count = 0;
    *buffer = nullptr;
    *lengths = nullptr;
    if (names.empty()) return OkStatus();
    std::string joined;
    for (const std::string_view name : names) joined += name;
    TENON_ASSIGN_OR_RETURN(void* const block,
                           AllocateFrom(allocator, names.size() * sizeof(size_t)));
    Result<char*> text = CopyString(allocator, joined);
    if (!text) {
      allocator->Free(allocator, block);
      return Error(std::move(text.error()));
    }
    *buffer = *text;
    *lengths = static_cast<size_t*>(block);
    *count = names.size();
    std::transform(names.begin(), names.end(), *lengths, [](auto name) { return name.size(); });
    return OkStatus();
  });
}

OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                                OrtValue*** output, size_t* output_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(output);
    TENON_RETURN_IF_NULL(output_count);
    const std::vector<Value> results = binding_ptr->binding.results();
    TENON_ASSIGN_OR_RETURN(*output, CopyValues(results, allocator));
    *output_count = results.size();
    return OkStatus();
  });
}

void ClearBoundInputs(OrtIoBinding* binding_ptr) noexcept { binding_ptr->binding.ClearInputs(); }

void ClearBoundOutputs(OrtIoBinding* binding_ptr) noexcept { binding_ptr->binding.ClearOutputs(); }

OrtStatus* SynchronizeBoundInputs(OrtIoBinding* binding_ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    const Session& session = binding_ptr->session->session->current();
    return Await(ReadersOf(session, binding_ptr->binding.input_names()));
  });
}

OrtStatus* SynchronizeBoundOutputs(OrtIoBinding* binding_ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(binding_ptr);
    const Session& session = binding_ptr->session->session->current();
    return Await(MakersOf(session, binding_ptr->binding.output_names()));
  });
}

OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* run_options,
                          const OrtIoBinding* binding_ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(binding_ptr);
    if (binding_ptr->session != session) {
      return InvalidArgument("the binding belongs to another session");
    }
    const RunOptions defaults;
    return binding_ptr->binding.RunOn(*session->session,
                                      run_options == nullptr ? defaults : run_options->run);
  });
}

}  // namespace tenon::capi
