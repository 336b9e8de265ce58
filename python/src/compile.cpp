#include "compile.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "gil.h"
#include "options.h"
#include "value.h"

namespace tenon::python {
namespace {

struct CompilationReleaser {
  void operator()(OrtModelCompilationOptions* options) const {
    Api().GetCompileApi()->ReleaseModelCompilationOptions(options);
  }
};
using CompilationHandle = std::unique_ptr<OrtModelCompilationOptions, CompilationReleaser>;

struct ExternalInitializerInfo {
  std::string filepath;
  int64_t file_offset;
  size_t byte_size;
};

// The exception that a Python function raised, as a status, with which the compilation fails.
OrtStatus* StatusOf(nb::python_error& error) { return Api().CreateStatus(ORT_FAIL, error.what()); }

OrtStatus* Write(void* state, const void* buffer, size_t bytes) noexcept {
  const WithGil lock;
  try {
    const nb::handle function(static_cast<PyObject*>(state));
    function(nb::bytes(static_cast<const char*>(buffer), bytes));
    return nullptr;
  } catch (nb::python_error& error) {
    return StatusOf(error);
  }
}

// A tensor over the memory of `value`, which the compiler still owns.
nb::object View(const OrtValue* value) {
  const TensorView view = ViewTensor(value);
  void* const data = Get<void*>(Api().GetTensorMutableData, const_cast<OrtValue*>(value));
  const auto bytes = Get<size_t>(Api().GetTensorSizeInBytes, value);
  return nb::cast(Value(Make<ValueHandle>(Api().CreateTensorWithDataAsOrtValue, CpuMemory(), data,
                                          bytes, view.shape, view.rank, view.type)));
}

OrtStatus* Place(void* state, const char* name, const OrtValue* value,
                 const OrtExternalInitializerInfo* info,
                 OrtExternalInitializerInfo** place) noexcept {
  const WithGil lock;
  *place = nullptr;
  try {
    nb::object present = nb::none();
    if (info != nullptr) {
      present = nb::cast(ExternalInitializerInfo{Api().ExternalInitializerInfo_GetFilePath(info),
                                                 Api().ExternalInitializerInfo_GetFileOffset(info),
                                                 Api().ExternalInitializerInfo_GetByteSize(info)});
    }
    const nb::handle function(static_cast<PyObject*>(state));
    const nb::object wanted = function(name, View(value), present);
    if (wanted.is_none()) return nullptr;
    const auto& there = nb::cast<ExternalInitializerInfo&>(wanted);
    return Api().CreateExternalInitializerInfo(there.filepath.c_str(), there.file_offset,
                                               there.byte_size, place);
  } catch (nb::python_error& error) {
    return StatusOf(error);
  } catch (const std::exception& error) {
    return Api().CreateStatus(ORT_INVALID_ARGUMENT, error.what());
  }
}

// The settings of a compilation, except its output.
struct Request {
  const SessionOptions& options;
  nb::handle model;  // a path or bytes
  bool embeds;
  const std::optional<std::string>& external_file;
  size_t external_threshold;
  uint32_t flags;
  int level;
  nb::handle place;  // a function, or None
};

CompilationHandle Prepare(const Request& request, Buffer& bytes) {
  const OrtCompileApi& api = *Api().GetCompileApi();
  const SessionOptionsHandle session_options = request.options.CloneWith(nullptr);
  auto handle = Make<CompilationHandle>(api.CreateModelCompilationOptionsFromSessionOptions,
                                        Environment().get(), session_options.get());
  OrtModelCompilationOptions* const options = handle.get();
  if (PyUnicode_Check(request.model.ptr())) {
    const auto path = nb::cast<std::string>(request.model);
    Check(api.ModelCompilationOptions_SetInputModelPath(options, path.c_str()));
  } else {
    if (!bytes.Borrow(request.model)) throw nb::type_error("expected a path or a model's bytes");
    Check(api.ModelCompilationOptions_SetInputModelFromBuffer(
        options, bytes.view().buf, static_cast<size_t>(bytes.view().len)));
  }
  Check(api.ModelCompilationOptions_SetEpContextEmbedMode(options, request.embeds));
  Check(api.ModelCompilationOptions_SetFlags(options, request.flags));
  Check(api.ModelCompilationOptions_SetGraphOptimizationLevel(
      options, static_cast<GraphOptimizationLevel>(request.level)));
  if (request.external_file) {
    Check(api.ModelCompilationOptions_SetOutputModelExternalInitializersFile(
        options, request.external_file->c_str(), request.external_threshold));
  }
  if (!request.place.is_none()) {
    Check(api.ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
        options, &Place, request.place.ptr()));
  }
  return handle;
}

void Run(const OrtModelCompilationOptions* options) {
  const std::shared_ptr<OrtEnv> environment = Environment();
  OrtStatus* status = nullptr;
  {
    const WithoutGil other_threads_run;
    status = Api().GetCompileApi()->CompileModel(environment.get(), options);
  }
  Check(status);
}

// `output` is a path, a function that takes bytes, or None for the bytes themselves.
nb::object Compile(const SessionOptions& options, nb::handle model, nb::handle output, bool embeds,
                   const std::optional<std::string>& external_file, size_t threshold,
                   uint32_t flags, int level, nb::handle place) {
  const OrtCompileApi& api = *Api().GetCompileApi();
  Buffer bytes;
  const CompilationHandle handle =
      Prepare({options, model, embeds, external_file, threshold, flags, level, place}, bytes);
  if (PyUnicode_Check(output.ptr())) {
    const auto path = nb::cast<std::string>(output);
    Check(api.ModelCompilationOptions_SetOutputModelPath(handle.get(), path.c_str()));
    Run(handle.get());
    return nb::none();
  }
  if (!output.is_none()) {
    Check(api.ModelCompilationOptions_SetOutputModelWriteFunc(handle.get(), &Write, output.ptr()));
    Run(handle.get());
    return nb::none();
  }
  void* data = nullptr;
  size_t size = 0;
  Check(api.ModelCompilationOptions_SetOutputModelBuffer(handle.get(), DefaultAllocator(), &data,
                                                         &size));
  Run(handle.get());
  const nb::bytes result(static_cast<const char*>(data), size);
  Check(Api().AllocatorFree(DefaultAllocator(), data));
  return result;
}

}  // namespace

void BindCompile(nb::module_& module) {
  nb::class_<ExternalInitializerInfo>(module, "OrtExternalInitializerInfo")
      .def("__init__",
           [](ExternalInitializerInfo* self, std::string filepath, int64_t offset, size_t size) {
             new (self) ExternalInitializerInfo{std::move(filepath), offset, size};
           })
      .def_ro("filepath", &ExternalInitializerInfo::filepath)
      .def_ro("file_offset", &ExternalInitializerInfo::file_offset)
      .def_ro("byte_size", &ExternalInitializerInfo::byte_size);
  module.def("_compile", &Compile, nb::arg("options"), nb::arg("model"), nb::arg("output").none(),
             nb::arg("embeds"), nb::arg("external_file").none(), nb::arg("threshold"),
             nb::arg("flags"), nb::arg("level"), nb::arg("place").none());
}

}  // namespace tenon::python
