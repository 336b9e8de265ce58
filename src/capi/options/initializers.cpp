// Initializers from clients, which replace those in a model's files.
#include <string>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/session_options.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

Result<Tensor> InitializerOf(const char* name, const OrtValue* value) {
  TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, TensorOf(value));
  if (*name == '\0') return InvalidArgument("the name of an initializer must not be empty");
  if (!tensor->memory().IsHostAccessible()) {
    return NotImplemented("initializer '{}' lies in memory of '{}'", name, tensor->memory().name);
  }
  return *tensor;
}

}  // namespace

OrtStatus* AddInitializer(OrtSessionOptions* options, const char* name,
                          const OrtValue* val) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(val);
    TENON_ASSIGN_OR_RETURN(Tensor tensor, InitializerOf(name, val));
    const bool is_new = options->initializers.emplace(name, std::move(tensor)).second;
    if (!is_new) return InvalidArgument("initializer '{}' has been added already", name);
    return OkStatus();
  });
}

OrtStatus* AddExternalInitializers(OrtSessionOptions* options, const char* const* initializer_names,
                                   const OrtValue* const* initializers,
                                   size_t num_initializers) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL_ARRAY(initializer_names, num_initializers);
    TENON_RETURN_IF_NULL_ARRAY(initializers, num_initializers);
    std::map<std::string, Tensor, std::less<>> added;
    for (size_t i = 0; i < num_initializers; ++i) {
      const char* const name = initializer_names[i];
      if (name == nullptr) return InvalidArgument("initializer_names[{}] must not be null", i);
      if (initializers[i] == nullptr) {
        return InvalidArgument("the value of initializer '{}' must not be null", name);
      }
      TENON_ASSIGN_OR_RETURN(Tensor tensor, InitializerOf(name, initializers[i]));
      const bool is_new =
          !options->initializers.contains(name) && added.emplace(name, std::move(tensor)).second;
      if (!is_new) return InvalidArgument("initializer '{}' has been added already", name);
    }
    for (const auto& [name, tensor] : added) options->expected_initializers.push_back(name);
    options->initializers.merge(added);
    return OkStatus();
  });
}

OrtStatus* AddExternalInitializersFromFilesInMemory(
    OrtSessionOptions* options, const char* const* external_initializer_file_names,
    char* const* external_initializer_file_buffer_array,
    const size_t* external_initializer_file_lengths,
    size_t num_external_initializer_files) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    const size_t count = num_external_initializer_files;
    TENON_RETURN_IF_NULL_ARRAY(external_initializer_file_names, count);
    TENON_RETURN_IF_NULL_ARRAY(external_initializer_file_buffer_array, count);
    TENON_RETURN_IF_NULL_ARRAY(external_initializer_file_lengths, count);
    for (size_t i = 0; i < count; ++i) {
      const char* const name = external_initializer_file_names[i];
      const char* const buffer = external_initializer_file_buffer_array[i];
      const size_t size = external_initializer_file_lengths[i];
      if (name == nullptr) return InvalidArgument("the name of file {} must not be null", i);
      if (buffer == nullptr && size != 0) {
        return InvalidArgument("the buffer of file '{}' must not be null", name);
      }
      options->external_files.insert_or_assign(name, std::as_bytes(std::span(buffer, size)));
    }
    return OkStatus();
  });
}

OrtStatus* SessionOptionsSetWeightlessSourceModelBuffer(OrtSessionOptions* options,
                                                        const void* source_model_data,
                                                        size_t source_model_data_length) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(source_model_data);
    if (source_model_data_length == 0) return InvalidArgument("the model has no bytes");
    // Only compiled models of other providers need it.
    options->weightless_source = {static_cast<const std::byte*>(source_model_data),
                                  source_model_data_length};
    return OkStatus();
  });
}

}  // namespace tenon::capi
