// Domains of custom operators, and the libraries that register them.
#include <algorithm>
#include <memory>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/client_api.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/kernel/custom_ops.h"
#include "capi/options/session_options.h"

namespace tenon::capi {
namespace {

using RegisterFunction = OrtStatus*(OrtSessionOptions*, const OrtApiBase*);

constexpr const char* kRegisterName = "RegisterCustomOps";
// The inputs or outputs that an operator declares; a variadic one counts once.
constexpr size_t kMostFormals = 1 << 16;

// Loads the library and lets it register its operators with `options`.
Result<DynamicLibrary> LoadAndRegister(OrtSessionOptions& options, const char* path) {
  TENON_ASSIGN_OR_RETURN(DynamicLibrary library, DynamicLibrary::Load(path));
  TENON_ASSIGN_OR_RETURN(RegisterFunction* const add,
                         library.Function<RegisterFunction>(kRegisterName));
  TENON_RETURN_IF_ERROR(TakeOrtStatus(add(&options, &ClientApi())));
  return library;
}

Status CheckOp(const OrtCustomOp& op) {
  // One of a later version has more slots behind those that are used here.
  if (op.version == 0) return InvalidArgument("a custom operator has version 0");
  constexpr uint32_t kFirstWithStatus = 16;
  // Those of the second form come first: operators in C++ leave the others uninitialized.
  const bool can_create = (op.version >= kFirstWithStatus && op.CreateKernelV2 != nullptr) ||
                          op.CreateKernel != nullptr;
  const bool can_run = (op.version >= kFirstWithStatus && op.KernelComputeV2 != nullptr) ||
                       op.KernelCompute != nullptr;
  const char* const name = op.GetName != nullptr ? op.GetName(&op) : nullptr;
  if (name == nullptr) return InvalidArgument("a custom operator has no name");
  const std::pair<const char*, bool> slots[] = {
      {"CreateKernel", can_create},
      {"KernelCompute", can_run},
      {"KernelDestroy", op.KernelDestroy != nullptr},
      {"GetInputType", op.GetInputType != nullptr},
      {"GetInputTypeCount", op.GetInputTypeCount != nullptr},
      {"GetOutputType", op.GetOutputType != nullptr},
      {"GetOutputTypeCount", op.GetOutputTypeCount != nullptr}};
  for (const auto& [slot, is_there] : slots) {
    if (!is_there) return InvalidArgument("custom operator '{}' lacks {}", name, slot);
  }
  const std::pair<const char*, size_t> counts[] = {{"inputs", op.GetInputTypeCount(&op)},
                                                   {"outputs", op.GetOutputTypeCount(&op)}};
  for (const auto& [what, count] : counts) {
    if (count <= kMostFormals) continue;
    return InvalidArgument("custom operator '{}': expected at most {} {}, got {}", name,
                           kMostFormals, what, count);
  }
  return OkStatus();
}

}  // namespace

OrtStatus* CreateCustomOpDomain(const char* domain, OrtCustomOpDomain** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(domain);
    TENON_RETURN_IF_NULL(out);
    const std::string name = domain;
    *out = new OrtCustomOpDomain{name == "ai.onnx" ? "" : name, {}};
    return OkStatus();
  });
}

OrtStatus* CustomOpDomain_Add(OrtCustomOpDomain* custom_op_domain, const OrtCustomOp* op) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(custom_op_domain);
    TENON_RETURN_IF_NULL(op);
    TENON_RETURN_IF_ERROR(CheckOp(*op));
    custom_op_domain->ops.push_back(op);
    return OkStatus();
  });
}

OrtStatus* AddCustomOpDomain(OrtSessionOptions* options,
                             OrtCustomOpDomain* custom_op_domain) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(custom_op_domain);
    options->custom_op_domains.push_back(custom_op_domain);
    return OkStatus();
  });
}

void ReleaseCustomOpDomain(OrtCustomOpDomain* input) noexcept { delete input; }

OrtStatus* RegisterCustomOpsLibrary(OrtSessionOptions* options, const char* library_path,
                                    void** library_handle) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(library_path);
    TENON_RETURN_IF_NULL(library_handle);
    TENON_ASSIGN_OR_RETURN(DynamicLibrary library, LoadAndRegister(*options, library_path));
    *library_handle = std::move(library).Release();
    return OkStatus();
  });
}

OrtStatus* RegisterCustomOpsLibrary_V2(OrtSessionOptions* options,
                                       const ORTCHAR_T* library_name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(library_name);
    TENON_ASSIGN_OR_RETURN(DynamicLibrary library, LoadAndRegister(*options, library_name));
    options->custom_op_libraries.push_back(std::make_shared<DynamicLibrary>(std::move(library)));
    return OkStatus();
  });
}

OrtStatus* RegisterCustomOpsUsingFunction(OrtSessionOptions* options,
                                          const char* registration_func_name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(registration_func_name);
    TENON_ASSIGN_OR_RETURN(void* const symbol,
                           DynamicLibrary::SymbolOfProgram(registration_func_name));
    return TakeOrtStatus(reinterpret_cast<RegisterFunction*>(symbol)(options, &ClientApi()));
  });
}

OrtStatus* EnableOrtCustomOps(OrtSessionOptions* options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    return Fail(
        "the operators of onnxruntime-extensions are not built in: register the library of that "
        "package with RegisterCustomOpsLibrary_V2");
  });
}

}  // namespace tenon::capi
