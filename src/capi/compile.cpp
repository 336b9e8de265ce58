// OrtCompileApi: models made ready ahead of time. The CPU compiles no nodes, so what comes out is
// the model, rewritten as far as the options say.
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "capi/allocator.h"
#include "capi/arguments.h"
#include "capi/env.h"
#include "capi/external_initializer.h"
#include "capi/handles.h"
#include "capi/made_model.h"
#include "capi/open_session.h"
#include "capi/session_handle.h"
#include "capi/session_options.h"
#include "capi/slots.h"
#include "capi/status.h"
#include "ir/onnx_writer.h"

struct OrtModelCompilationOptions {
  OrtSessionOptions session;

  // Where the model comes from: one of these.
  std::string input_path;
  std::optional<std::span<const std::byte>> input_bytes;
  const OrtModel* input_model = nullptr;

  // Where it goes: one of these.
  std::string output_path;
  OrtAllocator* output_allocator = nullptr;
  void** output_buffer = nullptr;
  size_t* output_buffer_size = nullptr;
  OrtWriteBufferFunc write = nullptr;
  void* write_state = nullptr;

  std::string external_file;
  size_t external_threshold = 0;
  OrtGetInitializerLocationFunc place = nullptr;
  void* place_state = nullptr;

  uint32_t flags = OrtCompileApiFlags_NONE;
};

namespace tenon::capi {
namespace {

template <class Body>
OrtStatus* Change(OrtModelCompilationOptions* model_compile_options, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_compile_options);
    return body(*model_compile_options);
  });
}

void ClearInput(OrtModelCompilationOptions& options) {
  options.input_path.clear();
  options.input_bytes.reset();
  options.input_model = nullptr;
}

void ClearOutput(OrtModelCompilationOptions& options) {
  options.output_path.clear();
  options.output_allocator = nullptr;
  options.write = nullptr;
}

Result<Model> LoadInput(const OrtModelCompilationOptions& options) {
  if (options.input_bytes) return LoadModel(*options.input_bytes, options.session);
  if (!options.input_path.empty()) return LoadModel(options.input_path, options.session);
  if (options.input_model == nullptr) return InvalidArgument("there is no model to compile");
  if (options.input_model->graph == nullptr) return InvalidArgument("the model has no graph");
  return ModelOf(*options.input_model->graph->made, options.input_model->opsets);
}

// "model.onnx" becomes "model_ctx.onnx".
std::string DefaultOutput(const std::string& input) {
  constexpr std::string_view kExtension = ".onnx";
  const bool has_extension = input.ends_with(kExtension);
  return input.substr(0, input.size() - (has_extension ? kExtension.size() : 0)) + "_ctx.onnx";
}

Result<std::string> OutputPath(const OrtModelCompilationOptions& options) {
  const std::string path =
      options.output_path.empty() ? DefaultOutput(options.input_path) : options.output_path;
  if (options.output_path.empty() && options.input_path.empty()) {
    return InvalidArgument("there is no place for the compiled model");
  }
  struct stat existing;
  const bool must_be_new = (options.flags & OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS) != 0;
  if (must_be_new && stat(path.c_str(), &existing) == 0) {
    return Fail("file '{}' exists already", path);
  }
  return path;
}

// What the client's function says of an initializer; nothing for those that go into the model.
Result<std::optional<ExternalLocation>> Place(const OrtModelCompilationOptions& options,
                                              const std::string& name, const Tensor& tensor) {
  const Value value = tensor;
  OrtExternalInitializerInfo* info = nullptr;
  TENON_RETURN_IF_ERROR(TakeOrtStatus(
      options.place(options.place_state, name.c_str(), Wrap<OrtValue>(&value), nullptr, &info)));
  if (info == nullptr) return std::optional<ExternalLocation>();
  const std::unique_ptr<OrtExternalInitializerInfo> owned(info);
  if (owned->bytes != tensor.bytes()) {
    return InvalidArgument("initializer '{}' has {} bytes, got a place of {}", name, tensor.bytes(),
                           owned->bytes);
  }
  return std::optional(
      ExternalLocation{owned->path, static_cast<uint64_t>(owned->offset), owned->bytes});
}

WriteOptions WriteOptionsOf(const OrtModelCompilationOptions& options) {
  WriteOptions write;
  write.external_data_file = options.external_file.substr(options.external_file.rfind('/') + 1);
  write.external_data_threshold = options.external_threshold;
  if (options.place != nullptr) {
    write.place_initializer = [&options](const std::string& name, const Tensor& tensor) {
      return Place(options, name, tensor);
    };
  }
  return write;
}

Status HandOver(const OrtModelCompilationOptions& options, const std::string& bytes) {
  if (options.write != nullptr) {
    return TakeOrtStatus(options.write(options.write_state, bytes.data(), bytes.size()));
  }
  TENON_ASSIGN_OR_RETURN(void* const buffer, AllocateFrom(options.output_allocator, bytes.size()));
  std::memcpy(buffer, bytes.data(), bytes.size());
  *options.output_buffer = buffer;
  *options.output_buffer_size = bytes.size();
  return OkStatus();
}

Status WriteOutput(const OrtModelCompilationOptions& options, const Model& model) {
  const WriteOptions write = WriteOptionsOf(options);
  if (options.write == nullptr && options.output_allocator == nullptr) {
    TENON_ASSIGN_OR_RETURN(const std::string path, OutputPath(options));
    return WriteModelFile(model, path, write);
  }
  const std::string folder = options.external_file.substr(0, options.external_file.rfind('/') + 1);
  TENON_ASSIGN_OR_RETURN(const std::string bytes, WriteModel(model, write, folder));
  return HandOver(options, bytes);
}

}  // namespace

OrtStatus* CreateModelCompilationOptionsFromSessionOptions(
    const OrtEnv* env, const OrtSessionOptions* session_options,
    OrtModelCompilationOptions** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(session_options);
    TENON_RETURN_IF_NULL(out);
    auto options = std::make_unique<OrtModelCompilationOptions>();
    options->session = *session_options;
    options->session.session.optimization_level = OptimizationLevel::kNone;
    options->session.session.optimized_model_path.clear();
    *out = options.release();
    return OkStatus();
  });
}

void ReleaseModelCompilationOptions(OrtModelCompilationOptions* input) noexcept { delete input; }

OrtStatus* ModelCompilationOptions_SetInputModelPath(
    OrtModelCompilationOptions* model_compile_options, const ORTCHAR_T* input_model_path) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(input_model_path);
    if (*input_model_path == '\0') return InvalidArgument("input_model_path must not be empty");
    ClearInput(options);
    options.input_path = input_model_path;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetInputModelFromBuffer(
    OrtModelCompilationOptions* model_compile_options, const void* input_model_data,
    size_t input_model_data_size) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(input_model_data);
    if (input_model_data_size == 0) return InvalidArgument("the model has no bytes");
    ClearInput(options);
    options.input_bytes.emplace(static_cast<const std::byte*>(input_model_data),
                                input_model_data_size);
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetInputModel(OrtModelCompilationOptions* model_compile_options,
                                                 const OrtModel* model) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(model);
    ClearInput(options);
    options.input_model = model;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelPath(
    OrtModelCompilationOptions* model_compile_options,
    const ORTCHAR_T* output_model_path) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(output_model_path);
    if (*output_model_path == '\0') return InvalidArgument("output_model_path must not be empty");
    ClearOutput(options);
    options.output_path = output_model_path;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelExternalInitializersFile(
    OrtModelCompilationOptions* model_compile_options,
    const ORTCHAR_T* external_initializers_file_path,
    size_t external_initializers_size_threshold) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(external_initializers_file_path);
    if (*external_initializers_file_path == '\0') {
      return InvalidArgument("external_initializers_file_path must not be empty");
    }
    options.external_file = external_initializers_file_path;
    options.external_threshold = external_initializers_size_threshold;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelBuffer(
    OrtModelCompilationOptions* model_compile_options, OrtAllocator* allocator,
    void** output_model_buffer_ptr, size_t* output_model_buffer_size_ptr) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(output_model_buffer_ptr);
    TENON_RETURN_IF_NULL(output_model_buffer_size_ptr);
    ClearOutput(options);
    options.output_allocator = allocator;
    options.output_buffer = output_model_buffer_ptr;
    options.output_buffer_size = output_model_buffer_size_ptr;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelWriteFunc(
    OrtModelCompilationOptions* model_compile_options, OrtWriteBufferFunc write_func,
    void* state) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(write_func);
    ClearOutput(options);
    options.write = write_func;
    options.write_state = state;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
    OrtModelCompilationOptions* model_compile_options,
    OrtGetInitializerLocationFunc get_initializer_location_func, void* state) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(get_initializer_location_func);
    options.place = get_initializer_location_func;
    options.place_state = state;
    return OkStatus();
  });
}

// There are no compiled parts, which these are about.
OrtStatus* ModelCompilationOptions_SetEpContextEmbedMode(
    OrtModelCompilationOptions* model_compile_options, bool) noexcept {
  return Change(model_compile_options, [](OrtModelCompilationOptions&) { return OkStatus(); });
}

OrtStatus* ModelCompilationOptions_SetEpContextBinaryInformation(
    OrtModelCompilationOptions* model_compile_options, const ORTCHAR_T* output_directory,
    const ORTCHAR_T* model_name) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions&) -> Status {
    TENON_RETURN_IF_NULL(output_directory);
    TENON_RETURN_IF_NULL(model_name);
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetWeightlessEnabled(
    OrtModelCompilationOptions* model_compile_options, bool) noexcept {
  return Change(model_compile_options, [](OrtModelCompilationOptions&) { return OkStatus(); });
}

OrtStatus* ModelCompilationOptions_SetFlags(OrtModelCompilationOptions* model_compile_options,
                                            uint32_t flags) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    constexpr uint32_t kKnown = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED |
                                OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS;
    if ((flags & ~kKnown) != 0) return InvalidArgument("there are no flags {}", flags & ~kKnown);
    options.flags = flags;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetGraphOptimizationLevel(
    OrtModelCompilationOptions* model_compile_options,
    GraphOptimizationLevel graph_optimization_level) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    return TakeOrtStatus(
        SetSessionGraphOptimizationLevel(&options.session, graph_optimization_level));
  });
}

OrtStatus* CompileModel(const OrtEnv* env,
                        const OrtModelCompilationOptions* model_options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(model_options);
    TENON_ASSIGN_OR_RETURN(Model model, LoadInput(*model_options));
    if ((model_options->flags & OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED) != 0) {
      return Fail("no node was compiled: the CPU compiles none ahead of time");
    }
    OrtSessionOptions options = model_options->session;
    options.session.on_optimized_model = [&](const Model& optimized) {
      return WriteOutput(*model_options, optimized);
    };
    // Making a session finds out whether the model runs at all.
    OrtSession handle;
    handle.environment = env->shared;
    return StartSession(handle, std::move(model), options);
  });
}

}  // namespace tenon::capi
