// OrtCompileApi: compilation of models ahead of time. The parts that plugins compile become
// EPContext nodes. The rest is the model, rewritten as far as the options say.
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/experimental.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/graph/context_model.h"
#include "capi/graph/external_initializer.h"
#include "capi/graph/made_model.h"
#include "capi/options/session_options.h"
#include "capi/session/open_session.h"
#include "capi/session/session_handle.h"
#include "capi/value/allocator.h"
#include "ir/onnx_writer.h"
#include "ops/framework/registry.h"

struct OrtModelCompilationOptions {
  OrtSessionOptions session;

  // The source of the model: one of these.
  std::string input_path;
  std::optional<std::span<const std::byte>> input_bytes;
  const OrtModel* input_model = nullptr;

  // The destination: one of these.
  std::string output_path;
  OrtAllocator* output_allocator = nullptr;
  void** output_buffer = nullptr;
  size_t* output_buffer_size = nullptr;
  OrtWriteBufferFunc write = nullptr;
  void* write_state = nullptr;

  // The path whose folder providers use for their compiled files if the model is not written to a
  // file.
  std::string binary_path;

  std::string external_file;
  size_t external_threshold = 0;
  OrtGetInitializerLocationFunc place = nullptr;
  void* place_state = nullptr;

  uint32_t flags = OrtCompileApiFlags_NONE;
};

namespace tenon::capi {
namespace {

constexpr const char* kContextPath = "ep.context_file_path";

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

bool HasOutputFile(const OrtModelCompilationOptions& options) {
  return options.write == nullptr && options.output_allocator == nullptr;
}

Result<std::string> OutputPath(const OrtModelCompilationOptions& options) {
  const std::string path =
      options.output_path.empty() ? DefaultContextPath(options.input_path) : options.output_path;
  if (options.output_path.empty() && options.input_path.empty()) {
    return InvalidArgument("the compiled model has no output path or buffer");
  }
  struct stat existing;
  const bool must_be_new = (options.flags & OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS) != 0;
  if (must_be_new && stat(path.c_str(), &existing) == 0) {
    return Fail("file '{}' exists already", path);
  }
  return path;
}

// The place that the client's function chooses for an initializer; nothing if it goes into the
// model.
Result<std::optional<ExternalLocation>> Place(const OrtModelCompilationOptions& options,
                                              const Model& model, const std::string& name,
                                              const Tensor& tensor) {
  const Value value = tensor;
  const std::unique_ptr<OrtExternalInitializerInfo> present =
      NewExternalInitializerInfo(model, tensor);
  OrtExternalInitializerInfo* info = nullptr;
  TENON_RETURN_IF_ERROR(TakeOrtStatus(options.place(options.place_state, name.c_str(),
                                                    Wrap<OrtValue>(&value), present.get(), &info)));
  if (info == nullptr) return std::optional<ExternalLocation>();
  const std::unique_ptr<OrtExternalInitializerInfo> owned(info);
  if (owned->bytes != tensor.bytes()) {
    return InvalidArgument("initializer '{}' has {} bytes, got a place of {}", name, tensor.bytes(),
                           owned->bytes);
  }
  return std::optional(
      ExternalLocation{owned->path, static_cast<uint64_t>(owned->offset), owned->bytes});
}

WriteOptions WriteOptionsOf(const OrtModelCompilationOptions& options, const Model& model) {
  WriteOptions write;
  write.shape_functions = &OpShapeFunctions();
  write.external_data_file = options.external_file.substr(options.external_file.rfind('/') + 1);
  write.external_data_threshold = options.external_threshold;
  if (options.place != nullptr) {
    write.place_initializer = [&](const std::string& name, const Tensor& tensor) {
      return Place(options, model, name, tensor);
    };
  }
  return write;
}

void SetFlag(OrtModelCompilationOptions& options, const char* entry, bool value) {
  options.session.session.config.insert_or_assign(entry, std::string(1, value ? '1' : '0'));
}

// The entries that tell providers that they compile for a model, and its destination.
Status TellProviders(const OrtModelCompilationOptions& options, StringMap& config) {
  config.insert_or_assign("ep.context_enable", std::string(1, '1'));
  config.erase(kContextPath);
  std::string path = options.binary_path;
  if (HasOutputFile(options)) {
    TENON_ASSIGN_OR_RETURN(path, OutputPath(options));
  }
  if (!path.empty()) config.insert_or_assign(kContextPath, path);
  return OkStatus();
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
  const WriteOptions write = WriteOptionsOf(options, model);
  if (HasOutputFile(options)) {
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
    const StringMap& config = session_options->session.config;
    const auto path = config.find(kContextPath);
    if (path != config.end()) options->output_path = path->second;
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

OrtStatus* ModelCompilationOptions_SetEpContextEmbedMode(
    OrtModelCompilationOptions* model_compile_options, bool embed_ep_context_in_model) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) {
    SetFlag(options, "ep.context_embed_mode", embed_ep_context_in_model);
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetEpContextBinaryInformation(
    OrtModelCompilationOptions* model_compile_options, const ORTCHAR_T* output_directory,
    const ORTCHAR_T* model_name) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) -> Status {
    TENON_RETURN_IF_NULL(output_directory);
    TENON_RETURN_IF_NULL(model_name);
    if (*model_name == '\0') return InvalidArgument("model_name must not be empty");
    const std::string folder = output_directory;
    const bool needs_separator = !folder.empty() && !folder.ends_with('/');
    options.binary_path = folder + (needs_separator ? "/" : "") + model_name;
    return OkStatus();
  });
}

OrtStatus* ModelCompilationOptions_SetWeightlessEnabled(
    OrtModelCompilationOptions* model_compile_options, bool use_weightless) noexcept {
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) {
    SetFlag(options, "ep.enable_weightless", use_weightless);
    return OkStatus();
  });
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
  return Change(model_compile_options, [&](OrtModelCompilationOptions& options) {
    return SetOptimizationLevel(graph_optimization_level, options.session);
  });
}

OrtStatus* OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc(
    OrtModelCompilationOptions* model_compile_options, OrtWriteNamedBufferFunc write_func,
    void* state) noexcept {
  return AtBoundary([&]() -> Status {
    if (model_compile_options == nullptr) {
      return InvalidArgument("OrtModelCompilationOptions is NULL");
    }
    OrtModelCompilationOptions& options = *model_compile_options;
    options.session.context_data.write = write_func;
    options.session.context_data.write_state = write_func == nullptr ? nullptr : state;
    return OkStatus();
  });
}

OrtStatus* CompileModel(const OrtEnv* env,
                        const OrtModelCompilationOptions* model_options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(model_options);
    TENON_ASSIGN_OR_RETURN(Model model, LoadInput(*model_options));
    if (model.graph->outputs().empty()) {
      return InvalidArgument("the model to compile must have at least one output");
    }
    OrtSessionOptions options = model_options->session;
    TENON_RETURN_IF_ERROR(TellProviders(*model_options, options.session.config));
    options.write_context_model = [&](const Model& compiled, bool is_compiled) -> Status {
      const bool must_compile =
          (model_options->flags & OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED) != 0;
      if (!is_compiled && must_compile) {
        return Fail(
            "Unable to compile any nodes: no provider of the session compiles any of the model");
      }
      return WriteOutput(*model_options, compiled);
    };
    // Creating a session shows whether the model can run at all.
    OrtSession handle;
    handle.environment = env->shared;
    return StartSession(handle, std::move(model), options);
  });
}

}  // namespace tenon::capi
