#include "capi/options/provider_options.h"

#include <cstring>
#include <memory>
#include <vector>

#include "base/text.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"

struct OrtCUDAProviderOptionsV2 : tenon::capi::ProviderOptions {
  using ProviderOptions::ProviderOptions;
};
struct OrtTensorRTProviderOptionsV2 : tenon::capi::ProviderOptions {
  using ProviderOptions::ProviderOptions;
};
struct OrtCANNProviderOptions : tenon::capi::ProviderOptions {
  using ProviderOptions::ProviderOptions;
};
struct OrtDnnlProviderOptions : tenon::capi::ProviderOptions {
  using ProviderOptions::ProviderOptions;
};

namespace tenon::capi {
namespace {

constexpr ProviderOption kCudaOptions[] = {
    {"arena_extend_strategy", "kNextPowerOfTwo"},
    {"cudnn_conv1d_pad_to_nc1d", "0"},
    {"cudnn_conv_algo_search", "EXHAUSTIVE"},
    {"cudnn_conv_use_max_workspace", "1"},
    {"device_id", "0"},
    {"do_copy_in_default_stream", "1"},
    {"enable_cuda_graph", "0"},
    {"enable_skip_layer_norm_strict_mode", "0"},
    {"fuse_conv_bias", "0"},
    {"gpu_external_alloc", "0"},
    {"gpu_external_empty_cache", "0"},
    {"gpu_external_free", "0"},
    {"gpu_mem_limit", "18446744073709551615"},
    {"has_user_compute_stream", "0"},
    {"prefer_nhwc", "0"},
    {"sdpa_kernel", "0"},
    {"tunable_op_enable", "0"},
    {"tunable_op_max_tuning_duration_ms", "0"},
    {"tunable_op_tuning_enable", "0"},
    {"use_ep_level_unified_stream", "0"},
    {"use_tf32", "1"},
    {"user_compute_stream", "0"},
};

constexpr ProviderOption kTensorRtOptions[] = {
    {"device_id", "0"},
    {"has_user_compute_stream", "0"},
    {"trt_auxiliary_streams", "-1"},
    {"trt_bf16_enable", "0"},
    {"trt_build_heuristics_enable", "0"},
    {"trt_builder_optimization_level", "3"},
    {"trt_context_memory_sharing_enable", "0"},
    {"trt_cuda_graph_enable", "0"},
    {"trt_detailed_build_log", "0"},
    {"trt_dla_core", "0"},
    {"trt_dla_enable", "0"},
    {"trt_dump_ep_context_model", "0"},
    {"trt_dump_subgraphs", "0"},
    {"trt_engine_cache_enable", "0"},
    {"trt_engine_cache_path", ""},
    {"trt_engine_cache_prefix", ""},
    {"trt_engine_decryption_enable", "0"},
    {"trt_engine_decryption_lib_path", ""},
    {"trt_engine_hw_compatible", "0"},
    {"trt_ep_context_embed_mode", "0"},
    {"trt_ep_context_file_path", ""},
    {"trt_extra_plugin_lib_paths", ""},
    {"trt_force_sequential_engine_build", "0"},
    {"trt_force_timing_cache", "0"},
    {"trt_fp16_enable", "0"},
    {"trt_int8_calibration_table_name", ""},
    {"trt_int8_enable", "0"},
    {"trt_int8_use_native_calibration_table", "0"},
    {"trt_layer_norm_fp32_fallback", "0"},
    {"trt_load_user_initializer", "0"},
    {"trt_max_partition_iterations", "1000"},
    {"trt_max_workspace_size", "0"},
    {"trt_min_subgraph_size", "1"},
    {"trt_onnx_bytestream", "0"},
    {"trt_onnx_bytestream_size", "0"},
    {"trt_onnx_external_data_bytestream", "0"},
    {"trt_onnx_external_data_bytestream_size", "0"},
    {"trt_onnx_model_folder_path", ""},
    {"trt_op_types_to_exclude", ""},
    {"trt_preview_features", ""},
    {"trt_profile_max_shapes", ""},
    {"trt_profile_min_shapes", ""},
    {"trt_profile_opt_shapes", ""},
    {"trt_sparsity_enable", "0"},
    {"trt_tactic_sources", ""},
    {"trt_timing_cache_enable", "0"},
    {"trt_timing_cache_path", ""},
    {"trt_weight_stripped_engine_enable", "0"},
    {"user_compute_stream", "0"},
};

constexpr ProviderOption kCannOptions[] = {
    {"arena_extend_strategy", "kNextPowerOfTwo"},
    {"device_id", "0"},
    {"do_copy_in_default_stream", "1"},
    {"dump_graphs", "0"},
    {"dump_om_model", "1"},
    {"enable_cann_graph", "1"},
    {"enable_cann_subgraph", "0"},
    {"npu_mem_limit", "18446744073709551615"},
    {"op_select_impl_mode", ""},
    {"optypelist_for_implmode", ""},
    {"precision_mode", ""},
};

constexpr ProviderOption kDnnlOptions[] = {
    {"use_arena", "1"},
};

template <class Handle>
OrtStatus* Create(const char* provider, std::span<const ProviderOption> known,
                  Handle** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = new Handle(provider, known);
    return OkStatus();
  });
}

OrtStatus* UpdateOptions(ProviderOptions* options, const char* const* keys,
                         const char* const* values, size_t count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    return options->Update(keys, values, count);
  });
}

OrtStatus* AsString(const ProviderOptions* options, OrtAllocator* allocator, char** ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(ptr);
    TENON_ASSIGN_OR_RETURN(*ptr, CopyString(allocator, options->ToString()));
    return OkStatus();
  });
}

OrtStatus* SetPointer(ProviderOptions* options, const char* key, void* value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(key);
    return options->SetPointer(key, value);
  });
}

OrtStatus* GetPointer(const ProviderOptions* options, const char* key, void** ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(key);
    TENON_RETURN_IF_NULL(ptr);
    TENON_ASSIGN_OR_RETURN(*ptr, options->Pointer(key));
    return OkStatus();
  });
}

}  // namespace

ProviderOptions::ProviderOptions(const char* provider, std::span<const ProviderOption> known)
    : provider_(provider) {
  for (const ProviderOption& option : known) values_.emplace(option.key, option.value);
}

Status ProviderOptions::CheckKey(std::string_view key) const {
  if (values_.contains(key)) return OkStatus();
  std::vector<std::string> names;
  for (const auto& entry : values_) names.push_back(entry.first);
  return InvalidArgument("the {} execution provider has no option '{}'{}", provider_, key,
                         DidYouMean(key, names));
}

Status ProviderOptions::Update(const char* const* keys, const char* const* values, size_t count) {
  TENON_RETURN_IF_NULL_ARRAY(keys, count);
  TENON_RETURN_IF_NULL_ARRAY(values, count);
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr || values[i] == nullptr) {
      return InvalidArgument("key and value of option {} must not be null", i);
    }
    TENON_RETURN_IF_ERROR(CheckKey(keys[i]));
  }
  for (size_t i = 0; i < count; ++i) values_.insert_or_assign(keys[i], values[i]);
  return OkStatus();
}

Status ProviderOptions::SetPointer(const char* key, void* value) {
  TENON_RETURN_IF_ERROR(CheckKey(key));
  pointers_.insert_or_assign(key, value);
  values_.insert_or_assign(key, Format("{}", reinterpret_cast<uintptr_t>(value)));
  if (key == std::string_view("user_compute_stream")) {
    values_.insert_or_assign("has_user_compute_stream", Format("{:d}", value != nullptr));
  }
  return OkStatus();
}

Result<void*> ProviderOptions::Pointer(const char* key) const {
  TENON_RETURN_IF_ERROR(CheckKey(key));
  const auto entry = pointers_.find(std::string_view(key));
  return entry == pointers_.end() ? nullptr : entry->second;
}

std::string ProviderOptions::ToString() const {
  std::string text;
  for (const auto& [key, value] : values_) {
    text += Format("{}{}={}", text.empty() ? "" : ";", key, value);
  }
  return text;
}

// The functions of one provider's options.
#define TENON_PROVIDER_OPTIONS(Provider, Handle, known)                                            \
  OrtStatus* Create##Provider##ProviderOptions(Handle** out) noexcept {                            \
    return Create(#Provider, known, out);                                                          \
  }                                                                                                \
  OrtStatus* Update##Provider##ProviderOptions(Handle* options, const char* const* keys,           \
                                               const char* const* values, size_t count) noexcept { \
    return UpdateOptions(options, keys, values, count);                                            \
  }                                                                                                \
  OrtStatus* Get##Provider##ProviderOptionsAsString(                                               \
      const Handle* options, OrtAllocator* allocator, char** ptr) noexcept {                       \
    return AsString(options, allocator, ptr);                                                      \
  }                                                                                                \
  void Release##Provider##ProviderOptions(Handle* options) noexcept { delete options; }

// The functions for options that are pointers.
#define TENON_POINTER_OPTIONS(Provider, Handle)                                           \
  OrtStatus* Update##Provider##ProviderOptionsWithValue(Handle* options, const char* key, \
                                                        void* value) noexcept {           \
    return SetPointer(options, key, value);                                               \
  }                                                                                       \
  OrtStatus* Get##Provider##ProviderOptionsByName(const Handle* options, const char* key, \
                                                  void** ptr) noexcept {                  \
    return GetPointer(options, key, ptr);                                                 \
  }

TENON_PROVIDER_OPTIONS(CUDA, OrtCUDAProviderOptionsV2, kCudaOptions)
TENON_POINTER_OPTIONS(CUDA, OrtCUDAProviderOptionsV2)
TENON_PROVIDER_OPTIONS(TensorRT, OrtTensorRTProviderOptionsV2, kTensorRtOptions)
TENON_POINTER_OPTIONS(TensorRT, OrtTensorRTProviderOptionsV2)
TENON_PROVIDER_OPTIONS(CANN, OrtCANNProviderOptions, kCannOptions)
TENON_PROVIDER_OPTIONS(Dnnl, OrtDnnlProviderOptions, kDnnlOptions)

}  // namespace tenon::capi
