// The C ABI between the library and plugin execution providers: the tables that a provider
// implements (OrtEp, OrtEpFactory, their streams, transfers and kernels) and the functions that it
// calls (OrtEpApi). The rules of onnxruntime_c_api.h hold. Included by onnxruntime_c_api.h.
//
// A table that a provider fills begins with the ORT_API_VERSION that the provider was built with;
// newer slots are not read. The provider owns the object, which usually derives from the table or
// begins with it. Every function gets it as `this_ptr`.
#pragma once

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// What an event of a trace is about.
typedef enum OrtProfilingEventCategory ORT_ENUM_TYPE {
  OrtProfilingEventCategory_SESSION = 0,
  OrtProfilingEventCategory_NODE = 1,
  OrtProfilingEventCategory_KERNEL = 2,
  OrtProfilingEventCategory_API = 3,
} OrtProfilingEventCategory;

// What an OrtResourceCount counts.
typedef enum OrtResourceCountKind ORT_ENUM_TYPE {
  OrtResourceCountKind_None = 0,
  OrtResourceCountKind_TotalBytes = 1,
} OrtResourceCountKind;

// Layouts of images.
typedef enum OrtEpDataLayout ORT_ENUM_TYPE {
  OrtEpDataLayout_NCHW = 0,
  OrtEpDataLayout_NHWC = 1,
  OrtEpDataLayout_Default = 0,
} OrtEpDataLayout;

// Which nodes may stay on the CPU when a provider records runs.
typedef enum OrtGraphCaptureNodeAssignmentPolicy ORT_ENUM_TYPE {
  OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP = 0,
  OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES = 1,
} OrtGraphCaptureNodeAssignmentPolicy;

// Which weights a compiled model may leave out.
typedef enum OrtWeightlessSupport ORT_ENUM_TYPE {
  OrtWeightlessSupport_NONE = 0,
  OrtWeightlessSupport_EXTERNAL_ONLY = 1,
  OrtWeightlessSupport_ALL = 2,
} OrtWeightlessSupport;

// Opaque objects of providers.
ORT_RUNTIME_CLASS(DataType);
ORT_RUNTIME_CLASS(EpGraphSupportInfo);
ORT_RUNTIME_CLASS(KernelDef);
ORT_RUNTIME_CLASS(KernelDefBuilder);
ORT_RUNTIME_CLASS(KernelRegistry);
ORT_RUNTIME_CLASS(MemoryDevice);
ORT_RUNTIME_CLASS(NodeComputeContext);
ORT_RUNTIME_CLASS(NvTensorRtRtxProviderOptions);
ORT_RUNTIME_CLASS(OpSchema);
ORT_RUNTIME_CLASS(OpSchemaTypeConstraint);
ORT_RUNTIME_CLASS(ProfilingEvent);
ORT_RUNTIME_CLASS(ProfilingEventsContainer);
ORT_RUNTIME_CLASS(SharedPrePackedWeightCache);
ORT_RUNTIME_CLASS(ThreadPoolParams);

// Tables that providers implement.
ORT_RUNTIME_CLASS(DataTransferImpl);
ORT_RUNTIME_CLASS(SyncNotificationImpl);
ORT_RUNTIME_CLASS(SyncStreamImpl);
ORT_RUNTIME_CLASS(ExternalResourceImporterImpl);
ORT_RUNTIME_CLASS(EpProfilerImpl);
ORT_RUNTIME_CLASS(NodeComputeInfo);
ORT_RUNTIME_CLASS(KernelImpl);
ORT_RUNTIME_CLASS(LoopKernelHelper);
ORT_RUNTIME_CLASS(ScanKernelHelper);

// Makes the kernel of a node.
typedef OrtStatus*(ORT_API_CALL* OrtKernelCreateFunc)(void* kernel_create_func_state,
                                                      const OrtKernelInfo* info,
                                                      OrtKernelImpl** kernel_out);

// Imported memory.
struct OrtExternalMemoryHandle {
  // ORT_API_VERSION of the provider.
  uint32_t version;
  // The device that imported the memory.
  const OrtEpDevice* ep_device;
  // What was imported.
  OrtExternalMemoryDescriptor descriptor;
  // Destroys the handle.
  ORT_API_T(void, Release, OrtExternalMemoryHandle* handle);
};

// An imported semaphore.
struct OrtExternalSemaphoreHandle {
  // ORT_API_VERSION of the provider.
  uint32_t version;
  // The device that imported the semaphore.
  const OrtEpDevice* ep_device;
  // What was imported.
  OrtExternalSemaphoreDescriptor descriptor;
  // Destroys the handle.
  ORT_API_T(void, Release, OrtExternalSemaphoreHandle* handle);
};

// Copies tensors to, from and between devices.
struct OrtDataTransferImpl {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Destroys the transfer.
  ORT_API_T(void, Release, OrtDataTransferImpl* this_ptr);
  // Whether it copies from one device to the other.
  ORT_API_T(bool, CanCopy, const OrtDataTransferImpl* this_ptr,
            const OrtMemoryDevice* src_memory_device, const OrtMemoryDevice* dst_memory_device);
  // Copies tensors; `streams` may be null, and so may each of them.
  ORT_API2_STATUS(CopyTensors, OrtDataTransferImpl* this_ptr, const OrtValue** src_tensors,
                  OrtValue** dst_tensors, OrtSyncStream** streams, size_t num_tensors);
};

// A point in the work of a stream that others can wait for.
struct OrtSyncNotificationImpl {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Destroys the notification.
  ORT_API_T(void, Release, OrtSyncNotificationImpl* this_ptr);
  // Marks this point of the producer's stream.
  ORT_API2_STATUS(Activate, OrtSyncNotificationImpl* this_ptr);
  // Has another stream wait until that point is reached.
  ORT_API2_STATUS(WaitOnDevice, OrtSyncNotificationImpl* this_ptr, OrtSyncStream* consumer_stream);
  // Waits on the calling thread until that point is reached.
  ORT_API2_STATUS(WaitOnHost, OrtSyncNotificationImpl* this_ptr);
};

// A queue of work of a device.
struct OrtSyncStreamImpl {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Destroys the stream.
  ORT_API_T(void, Release, OrtSyncStreamImpl* this_ptr);
  // The native handle, such as a cudaStream_t.
  ORT_API_T(void*, GetHandle, OrtSyncStreamImpl* this_ptr);
  // Makes a notification of this stream.
  ORT_API2_STATUS(CreateNotification, OrtSyncStreamImpl* this_ptr,
                  OrtSyncNotificationImpl** notification);
  // Waits until all work of the stream is done.
  ORT_API2_STATUS(Flush, OrtSyncStreamImpl* this_ptr);
  // Called when a run that used the stream has ended.
  ORT_API2_STATUS(OnSessionRunEnd, OrtSyncStreamImpl* this_ptr);
};

// Imports memory and semaphores of other APIs.
struct OrtExternalResourceImporterImpl {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Whether it takes such memory.
  ORT_API_T(bool, CanImportMemory, const OrtExternalResourceImporterImpl* this_ptr,
            OrtExternalMemoryHandleType handle_type);
  // Imports memory.
  ORT_API2_STATUS(ImportMemory, OrtExternalResourceImporterImpl* this_ptr,
                  const OrtExternalMemoryDescriptor* desc, OrtExternalMemoryHandle** out_handle);
  // Releases imported memory.
  void(ORT_API_CALL* ReleaseMemory)(OrtExternalResourceImporterImpl* this_ptr,
                                    OrtExternalMemoryHandle* handle);
  // Makes a tensor over imported memory.
  ORT_API2_STATUS(CreateTensorFromMemory, OrtExternalResourceImporterImpl* this_ptr,
                  const OrtExternalMemoryHandle* mem_handle,
                  const OrtExternalTensorDescriptor* tensor_desc, OrtValue** out_tensor);
  // Whether it takes such semaphores.
  ORT_API_T(bool, CanImportSemaphore, const OrtExternalResourceImporterImpl* this_ptr,
            OrtExternalSemaphoreType type);
  // Imports a semaphore.
  ORT_API2_STATUS(ImportSemaphore, OrtExternalResourceImporterImpl* this_ptr,
                  const OrtExternalSemaphoreDescriptor* desc,
                  OrtExternalSemaphoreHandle** out_handle);
  // Releases a semaphore.
  void(ORT_API_CALL* ReleaseSemaphore)(OrtExternalResourceImporterImpl* this_ptr,
                                       OrtExternalSemaphoreHandle* handle);
  // Has the stream wait until the semaphore reaches `value`.
  ORT_API2_STATUS(WaitSemaphore, OrtExternalResourceImporterImpl* this_ptr,
                  OrtExternalSemaphoreHandle* handle, OrtSyncStream* stream, uint64_t value);
  // Has the stream set the semaphore to `value`.
  ORT_API2_STATUS(SignalSemaphore, OrtExternalResourceImporterImpl* this_ptr,
                  OrtExternalSemaphoreHandle* handle, OrtSyncStream* stream, uint64_t value);
  // Destroys the importer.
  ORT_API_T(void, Release, OrtExternalResourceImporterImpl* this_ptr);
};

// Adds a provider's events to a session's trace.
struct OrtEpProfilerImpl {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Destroys the profiler.
  ORT_API_T(void, Release, OrtEpProfilerImpl* this_ptr);
  // Profiling began this many nanoseconds before the call.
  ORT_API2_STATUS(StartProfiling, OrtEpProfilerImpl* this_ptr,
                  int64_t ep_profiling_start_offset_ns);
  // An event begins on the calling thread. May be null.
  ORT_API2_STATUS(StartEvent, OrtEpProfilerImpl* this_ptr, uint64_t ort_event_correlation_id);
  // The event has ended. May be null.
  ORT_API2_STATUS(StopEvent, OrtEpProfilerImpl* this_ptr, uint64_t ort_event_correlation_id,
                  const OrtProfilingEvent* ort_event);
  // Adds the provider's own events to the session's.
  ORT_API2_STATUS(EndProfiling, OrtEpProfilerImpl* this_ptr,
                  OrtProfilingEventsContainer* events_container);
};

// How claimed nodes are to be fused.
typedef struct OrtNodeFusionOptions {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Whether the provider keeps the weights itself, so that the session may free them.
  bool drop_constant_initializers;
} OrtNodeFusionOptions;

// Runs a fused node.
struct OrtNodeComputeInfo {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Makes what Compute needs, once for each session.
  OrtStatus*(ORT_API_CALL* CreateState)(OrtNodeComputeInfo* this_ptr,
                                        OrtNodeComputeContext* compute_context,
                                        void** compute_state);
  // Runs the fused nodes; may be called from several threads at once.
  OrtStatus*(ORT_API_CALL* Compute)(OrtNodeComputeInfo* this_ptr, void* compute_state,
                                    OrtKernelContext* kernel_context);
  // Destroys the result of CreateState.
  void(ORT_API_CALL* ReleaseState)(OrtNodeComputeInfo* this_ptr, void* compute_state);
};

// A kernel of a provider.
struct OrtKernelImpl {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // 0.
  uint32_t flags;
  // Runs the kernel.
  ORT_API2_STATUS(Compute, OrtKernelImpl* this_ptr, OrtKernelContext* context);
  // Destroys the kernel.
  ORT_API_T(void, Release, OrtKernelImpl* this_ptr);
  // Packs a constant input into the kernel's own layout. May be null.
  ORT_API2_STATUS(PrePackWeight, OrtKernelImpl* this_ptr, const OrtValue* tensor, int input_index,
                  OrtAllocator* allocator, OrtSharedPrePackedWeightCache* prepacked_weight_cache,
                  bool* is_packed);
  // Gives a packed weight that another kernel has made. May be null.
  ORT_API2_STATUS(SetSharedPrePackedWeight, OrtKernelImpl* this_ptr,
                  const void* const* buffer_data_ptrs, const size_t* buffer_data_sizes,
                  size_t num_buffers, int input_index);
};

// What a provider does for a Loop on its device.
struct OrtLoopKernelHelper {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Destroys the helper.
  ORT_API_T(void, Release, OrtLoopKernelHelper* this_ptr);
  // Joins the outputs of the iterations along the first axis.
  ORT_API2_STATUS(ConcatOutput, OrtLoopKernelHelper* this_ptr, void* stream_handle,
                  const OrtValue* const* per_iteration_outputs, size_t num_per_iteration_outputs,
                  void* output, size_t output_size_in_bytes);
};

// What a provider does for a Scan on its device.
struct OrtScanKernelHelper {
  // ORT_API_VERSION of the provider.
  uint32_t ort_version_supported;
  // Destroys the helper.
  ORT_API_T(void, Release, OrtScanKernelHelper* this_ptr);
  // Permutes the axes of a tensor.
  ORT_API2_STATUS(Transpose, OrtScanKernelHelper* this_ptr, const size_t* permutation,
                  size_t num_permutation_elems, const OrtValue* input, OrtSyncStream* stream,
                  OrtValue* output);
};

// An amount of a resource.
typedef struct OrtResourceCount {
  uint32_t kind;  // OrtResourceCountKind: which member of `value` holds
  uint32_t reserved;
  union {
    uint64_t total_bytes;
    uint64_t reserved_words[6];
  } value;
#ifdef __cplusplus
  OrtResourceCount() noexcept : kind{OrtResourceCountKind_None}, reserved{0}, value{} {}
  static OrtResourceCount None() noexcept { return OrtResourceCount{}; }
  static OrtResourceCount FromTotalBytes(uint64_t bytes) noexcept {
    OrtResourceCount count;
    count.kind = OrtResourceCountKind_TotalBytes;
    count.value.total_bytes = bytes;
    return count;
  }
  uint64_t AsTotalBytes() const noexcept { return value.total_bytes; }
#endif
} OrtResourceCount;

// What the library does for providers.
struct OrtEpApi {
  // Pairs a provider with a device; metadata and options are copied and may be null.
  ORT_API2_STATUS(CreateEpDevice, OrtEpFactory* ep_factory,
                  const OrtHardwareDevice* hardware_device, const OrtKeyValuePairs* ep_metadata,
                  const OrtKeyValuePairs* ep_options, OrtEpDevice** ep_device);
  // Releases such a pair, if it was not passed on.
  ORT_CLASS_RELEASE(EpDevice);
  // Claims nodes, to be run as one that Compile makes. Since 1.23.
  ORT_API2_STATUS(EpGraphSupportInfo_AddNodesToFuse, OrtEpGraphSupportInfo* graph_support_info,
                  const OrtNode* const* nodes, size_t num_nodes,
                  const OrtNodeFusionOptions* node_fusion_options);
  // Claims a node, to be run by a registered kernel. Since 1.23.
  ORT_API2_STATUS(EpGraphSupportInfo_AddSingleNode, OrtEpGraphSupportInfo* graph_support_info,
                  const OrtNode* node);
  // Name of the fused node. Since 1.23.
  ORT_API_T(const char*, NodeComputeContext_NodeName, const OrtNodeComputeContext* context);
  // States a kind of memory that the device has. Since 1.23.
  ORT_API2_STATUS(EpDevice_AddAllocatorInfo, OrtEpDevice* ep_device,
                  const OrtMemoryInfo* allocator_memory_info);
  // The device of a kind of memory. Since 1.23.
  ORT_API_T(const OrtMemoryDevice*, MemoryInfo_GetMemoryDevice, const OrtMemoryInfo* memory_info);
  // The device where a tensor lies; null if the value is not a tensor. Since 1.23.
  ORT_API_T(const OrtMemoryDevice*, Value_GetMemoryDevice, const OrtValue* value);
  // Whether both are the same device and memory. Since 1.23.
  ORT_API_T(bool, MemoryDevice_AreEqual, const OrtMemoryDevice* a, const OrtMemoryDevice* b);
  // The kind of device. Since 1.23.
  ORT_API_T(OrtMemoryInfoDeviceType, MemoryDevice_GetDeviceType,
            const OrtMemoryDevice* memory_device);
  // Whether the host can use the memory too. Since 1.23.
  ORT_API_T(OrtDeviceMemoryType, MemoryDevice_GetMemoryType, const OrtMemoryDevice* memory_device);
  // PCI number of the vendor. Since 1.23.
  ORT_API_T(uint32_t, MemoryDevice_GetVendorId, const OrtMemoryDevice* memory_device);
  // Number of the device among those of its kind. Since 1.23.
  ORT_API_T(uint32_t, MemoryDevice_GetDeviceId, const OrtMemoryDevice* memory_device);
  // The provider's stream. Since 1.23.
  ORT_API_T(const OrtSyncStreamImpl*, SyncStream_GetImpl, const OrtSyncStream* stream);
  // Number of the stream's latest synchronisation. Since 1.23.
  ORT_API_T(uint64_t, SyncStream_GetSyncId, const OrtSyncStream* stream);
  // That number at the consumer's last wait for the producer; 0: it never waited. Since 1.23.
  ORT_API_T(uint64_t, GetSyncIdForLastWaitOnSyncStream, const OrtSyncStream* producer_stream,
            const OrtSyncStream* consumer_stream);
  // Makes a device that was not found, such as a virtual one. Since 1.24.
  ORT_API2_STATUS(CreateHardwareDevice, OrtHardwareDeviceType type, uint32_t vendor_id,
                  uint32_t device_id, const char* vendor_name, const OrtKeyValuePairs* metadata,
                  OrtHardwareDevice** hardware_device);
  // Releases such a device.
  ORT_CLASS_RELEASE(HardwareDevice);
  // Makes an empty list of kernels. Since 1.24.
  ORT_API2_STATUS(CreateKernelRegistry, OrtKernelRegistry** kernel_registry);
  // Releases a list of kernels.
  ORT_CLASS_RELEASE(KernelRegistry);
  // Adds a kernel: what it runs and how it is made. Since 1.24.
  ORT_API2_STATUS(KernelRegistry_AddKernel, OrtKernelRegistry* kernel_registry,
                  const OrtKernelDef* kernel_def, OrtKernelCreateFunc kernel_create_func,
                  void* kernel_create_func_state);
  // Begins the description of a kernel. Since 1.24.
  ORT_API2_STATUS(CreateKernelDefBuilder, OrtKernelDefBuilder** kernel_def_builder_out);
  // Releases the builder.
  ORT_CLASS_RELEASE(KernelDefBuilder);
  // Operator that the kernel runs. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_SetOperatorType, OrtKernelDefBuilder* kernel_def_builder,
                  const char* op_type);
  // Domain of the operator. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_SetDomain, OrtKernelDefBuilder* kernel_def_builder,
                  const char* domain);
  // First and last opset version of the operator. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_SetSinceVersion, OrtKernelDefBuilder* kernel_def_builder,
                  int since_version_start, int since_version_end);
  // Provider of the kernel. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_SetExecutionProvider, OrtKernelDefBuilder* kernel_def_builder,
                  const char* ep_name);
  // Where an input is to lie. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_SetInputMemType, OrtKernelDefBuilder* kernel_def_builder,
                  size_t input_index, OrtMemType mem_type);
  // Where an output will lie. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_SetOutputMemType, OrtKernelDefBuilder* kernel_def_builder,
                  size_t output_index, OrtMemType mem_type);
  // Types that a type parameter may have. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_AddTypeConstraint, OrtKernelDefBuilder* kernel_def_builder,
                  const char* arg_name, const OrtDataType* const* types, size_t num_types);
  // Outputs that are the memory of an input. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_AddInputOutputAliases, OrtKernelDefBuilder* kernel_def_builder,
                  const int* input_indices, const int* output_indices, size_t num_io_indices);
  // Outputs that may overwrite an input. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_AddInputOutputMutableAliases,
                  OrtKernelDefBuilder* kernel_def_builder, const int* input_indices,
                  const int* output_indices, size_t num_io_indices);
  // Ends the description. Since 1.24.
  ORT_API2_STATUS(KernelDefBuilder_Build, OrtKernelDefBuilder* kernel_def_builder,
                  OrtKernelDef** kernel_def_out);
  // Releases a description.
  ORT_CLASS_RELEASE(KernelDef);
  // The operator. Since 1.24.
  ORT_API_T(const char*, KernelDef_GetOperatorType, const OrtKernelDef* kernel_def);
  // Its domain. Since 1.24.
  ORT_API_T(const char*, KernelDef_GetDomain, const OrtKernelDef* kernel_def);
  // First and last opset version of the operator. Since 1.24.
  ORT_API2_STATUS(KernelDef_GetSinceVersion, const OrtKernelDef* kernel_def, int* start_version,
                  int* end_version);
  // The provider. Since 1.24.
  ORT_API_T(const char*, KernelDef_GetExecutionProvider, const OrtKernelDef* kernel_def);
  // Where an input is to lie. Since 1.24.
  ORT_API2_STATUS(KernelDef_GetInputMemType, const OrtKernelDef* kernel_def, size_t input_index,
                  OrtMemType* mem_type);
  // Where an output will lie. Since 1.24.
  ORT_API2_STATUS(KernelDef_GetOutputMemType, const OrtKernelDef* kernel_def, size_t output_index,
                  OrtMemType* mem_type);
  // The type of tensors with these elements. Static. Since 1.24.
  ORT_API2_STATUS(GetTensorDataType, ONNXTensorElementDataType elem_type, const OrtDataType** out);
  // The provider's registered kernel for a node, null if there is none. Since 1.24.
  ORT_API2_STATUS(EpGraphSupportInfo_LookUpKernel, OrtEpGraphSupportInfo* graph_support_info,
                  const OrtNode* node, const OrtKernelDef** out_kernel_def);
  // Passes on a packed weight, to be shared with other sessions. Since 1.24.
  ORT_API2_STATUS(SharedPrePackedWeightCache_StoreWeightData,
                  OrtSharedPrePackedWeightCache* prepacked_weight_cache, void** buffer_data_ptrs,
                  size_t* buffer_data_sizes, size_t num_buffers);
  // The provider that the kernel belongs to. Since 1.24.
  ORT_API2_STATUS(KernelInfo_GetEp, const OrtKernelInfo* info, const OrtEp** ep);
  // Says why a device cannot be used. Since 1.24.
  ORT_API2_STATUS(DeviceEpIncompatibilityDetails_SetDetails,
                  OrtDeviceEpIncompatibilityDetails* details, uint32_t reasons_bitmask,
                  int32_t error_code, const char* notes);
  // Makes a kernel for If. Since 1.24.
  ORT_API2_STATUS(CreateIfKernel, const OrtKernelInfo* kernel_info, OrtKernelImpl** kernel_out);
  // Makes a kernel for Loop, which takes `helper` over. Since 1.24.
  ORT_API2_STATUS(CreateLoopKernel, const OrtKernelInfo* kernel_info, OrtLoopKernelHelper* helper,
                  OrtKernelImpl** kernel_out);
  // Makes a kernel for Scan, which takes `helper` over. Since 1.24.
  ORT_API2_STATUS(CreateScanKernel, const OrtKernelInfo* kernel_info, OrtScanKernelHelper* helper,
                  OrtKernelImpl** kernel_out);
  // Releases such a kernel.
  ORT_CLASS_RELEASE(KernelImpl);
  // All keys that are set in the environment. Release with ReleaseKeyValuePairs. Since 1.24.
  ORT_API2_STATUS(GetEnvConfigEntries, OrtKeyValuePairs** config_entries);
  // The newest schema of an operator up to a version, null if there is none. Since 1.25.
  ORT_API2_STATUS(GetOpSchema, const char* name, int max_inclusive_version, const char* domain,
                  OrtOpSchema** out_schema);
  // Releases a schema.
  ORT_CLASS_RELEASE(OpSchema);
  // First opset version of the schema. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetSinceVersion, const OrtOpSchema* schema, int* out);
  // Number of inputs. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetNumInputs, const OrtOpSchema* schema, size_t* out);
  // Name of an input. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetInputName, const OrtOpSchema* schema, size_t index, const char** out);
  // Type parameter of an input, null if its type is fixed. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetInputTypeConstraint, const OrtOpSchema* schema, size_t index,
                  const OrtOpSchemaTypeConstraint** out);
  // Number of outputs. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetNumOutputs, const OrtOpSchema* schema, size_t* out);
  // Name of an output. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetOutputName, const OrtOpSchema* schema, size_t index,
                  const char** out);
  // Type parameter of an output, null if its type is fixed. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetOutputTypeConstraint, const OrtOpSchema* schema, size_t index,
                  const OrtOpSchemaTypeConstraint** out);
  // Number of type parameters. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetTypeConstraintCount, const OrtOpSchema* schema, size_t* out);
  // A type parameter. Owned by the schema. Since 1.25.
  ORT_API2_STATUS(OpSchema_GetTypeConstraint, const OrtOpSchema* schema, size_t index,
                  const OrtOpSchemaTypeConstraint** out);
  // Name of the type parameter. Since 1.25.
  ORT_API2_STATUS(OpSchemaTypeConstraint_GetTypeParamName,
                  const OrtOpSchemaTypeConstraint* type_constraint, const char** out);
  // Types that it may have, as in "tensor(float)". Since 1.25.
  ORT_API2_STATUS(OpSchemaTypeConstraint_GetAllowedTypes,
                  const OrtOpSchemaTypeConstraint* type_constraint, const char* const** out_types,
                  size_t* num_types);
  // Inputs that have the type. Since 1.25.
  ORT_API2_STATUS(OpSchemaTypeConstraint_GetInputIndices,
                  const OrtOpSchemaTypeConstraint* type_constraint, const size_t** out_indices,
                  size_t* count);
  // Outputs that have the type. Since 1.25.
  ORT_API2_STATUS(OpSchemaTypeConstraint_GetOutputIndices,
                  const OrtOpSchemaTypeConstraint* type_constraint, const size_t** out_indices,
                  size_t* count);
  // Makes an event of a trace. Since 1.25.
  ORT_API2_STATUS(CreateProfilingEvent, OrtProfilingEventCategory category, int32_t process_id,
                  int32_t thread_id, const char* event_name, int64_t timestamp_us,
                  int64_t duration_us, const char* const* arg_keys, const char* const* arg_values,
                  size_t num_args, OrtProfilingEvent** out);
  // Releases an event. Since 1.25.
  ORT_CLASS_RELEASE(ProfilingEvent);
  // What the event is about. Since 1.25.
  ORT_API2_STATUS(ProfilingEvent_GetCategory, const OrtProfilingEvent* event,
                  OrtProfilingEventCategory* out);
  // Name of the event. Since 1.25.
  ORT_API2_STATUS(ProfilingEvent_GetName, const OrtProfilingEvent* event, const char** out);
  // When it began, in microseconds after the start of profiling. Since 1.25.
  ORT_API2_STATUS(ProfilingEvent_GetTimestampUs, const OrtProfilingEvent* event, int64_t* out);
  // How long it took, in microseconds. Since 1.25.
  ORT_API2_STATUS(ProfilingEvent_GetDurationUs, const OrtProfilingEvent* event, int64_t* out);
  // The value of an argument, null if it has none of this name. Since 1.25.
  ORT_API2_STATUS(ProfilingEvent_GetArgValue, const OrtProfilingEvent* event, const char* key,
                  const char** out);
  // Adds copies of events. Since 1.25.
  ORT_API2_STATUS(ProfilingEventsContainer_AddEvents, OrtProfilingEventsContainer* events_container,
                  const OrtProfilingEvent* const* events, size_t num_events);
  // What SessionOptionsSetWeightlessSourceModelBuffer set. Since 1.29.
  ORT_API2_STATUS(SessionOptionsGetWeightlessSourceModelBuffer,
                  const OrtSessionOptions* session_options, const void** source_model_data,
                  size_t* source_model_data_length);
};

// An execution provider of one session, implemented by a plugin. OrtEp objects are made by an
// OrtEpFactory.
struct OrtEp {
  // ORT_API_VERSION of the provider; later slots than that version's are not called.
  uint32_t ort_version_supported;
  // Name of the provider.
  ORT_API_T(const char*, GetName, const OrtEp* this_ptr);
  // Claims nodes of the graph through `graph_support_info`. Since 1.23.
  ORT_API2_STATUS(GetCapability, OrtEp* this_ptr, const OrtGraph* graph,
                  OrtEpGraphSupportInfo* graph_support_info);
  // Makes one runnable node of each claimed group. `ep_context_nodes` receives nodes to save, if
  // asked for. Since 1.23.
  ORT_API2_STATUS(Compile, OrtEp* this_ptr, const OrtGraph** graphs, const OrtNode** fused_nodes,
                  size_t count, OrtNodeComputeInfo** node_compute_infos,
                  OrtNode** ep_context_nodes);
  // Destroys the result of Compile. Since 1.23.
  void(ORT_API_CALL* ReleaseNodeComputeInfos)(OrtEp* this_ptr,
                                              OrtNodeComputeInfo** node_compute_infos,
                                              size_t num_node_compute_infos);
  // The layout that the provider prefers for images. May be null. Since 1.23.
  ORT_API2_STATUS(GetPreferredDataLayout, OrtEp* this_ptr, OrtEpDataLayout* preferred_data_layout);
  // Whether an operator is converted to that layout; -1: by default. May be null. Since 1.23.
  ORT_API2_STATUS(ShouldConvertDataLayoutForOp, OrtEp* this_ptr, const char* domain,
                  const char* op_type, OrtEpDataLayout target_data_layout, int* should_convert);
  // Changes options while the session lives. May be null. Since 1.23.
  ORT_API2_STATUS(SetDynamicOptions, OrtEp* this_ptr, const char* const* option_keys,
                  const char* const* option_values, size_t num_options);
  // A run begins. May be null. Since 1.23.
  ORT_API2_STATUS(OnRunStart, OrtEp* this_ptr, const OrtRunOptions* run_options);
  // A run has ended. May be null. Since 1.23.
  ORT_API2_STATUS(OnRunEnd, OrtEp* this_ptr, const OrtRunOptions* run_options, bool sync_stream);
  // Makes an allocator for this session; null slot: the factory's. May be null. Since 1.23.
  ORT_API2_STATUS(CreateAllocator, OrtEp* this_ptr, const OrtMemoryInfo* memory_info,
                  OrtAllocator** allocator);
  // Makes a stream for this session; null slot: the factory's. May be null. Since 1.23.
  ORT_API2_STATUS(CreateSyncStreamForDevice, OrtEp* this_ptr, const OrtMemoryDevice* memory_device,
                  OrtSyncStreamImpl** stream);
  // A text for a compiled model, to recognize it later. May be null. Since 1.23.
  ORT_API_T(const char*, GetCompiledModelCompatibilityInfo, OrtEp* this_ptr, const OrtGraph* graph);
  // The provider's kernels. May be null. Since 1.24.
  ORT_API2_STATUS(GetKernelRegistry, OrtEp* this_ptr, const OrtKernelRegistry** kernel_registry);
  // Whether runs of one session may overlap; null slot: they may. Since 1.24.
  ORT_API2_STATUS(IsConcurrentRunSupported, OrtEp* this_ptr, bool* is_supported);
  // Waits until the device has done all work. May be null. Since 1.25.
  ORT_API2_STATUS(Sync, OrtEp* this_ptr);
  // Makes a profiler; null if there is none. May be null. Since 1.25.
  ORT_API2_STATUS(CreateProfiler, OrtEp* this_ptr, OrtEpProfilerImpl** profiler);
  // Whether the provider records runs to replay them. May be null. Since 1.26.
  ORT_API_T(bool, IsGraphCaptureEnabled, const OrtEp* this_ptr);
  // Whether the run with this number is recorded. May be null. Since 1.26.
  ORT_API_T(bool, IsGraphCaptured, const OrtEp* this_ptr, int graph_annotation_id);
  // Replays a recorded run. May be null. Since 1.26.
  ORT_API2_STATUS(ReplayGraph, OrtEp* this_ptr, int graph_annotation_id);
  // Which nodes may stay on the CPU then. May be null. Since 1.26.
  ORT_API_T(OrtGraphCaptureNodeAssignmentPolicy, GetGraphCaptureNodeAssignmentPolicy,
            const OrtEp* this_ptr);
  // The free resources of the device. May be null. Since 1.26.
  ORT_API2_STATUS(GetAvailableResource, const OrtEp* this_ptr, OrtResourceCount* available);
  // The session is ready. May be null. Since 1.27.
  ORT_API2_STATUS(OnSessionInitializationEnd, OrtEp* this_ptr);
  // The memory location of the provider's values. May be null. Since 1.27.
  ORT_API2_STATUS(GetDefaultMemoryDevice, const OrtEp* this_ptr, const OrtMemoryDevice** device);
  // Frees a recorded run. May be null. Since 1.27.
  ORT_API2_STATUS(ReleaseCapturedGraph, OrtEp* this_ptr, int graph_annotation_id);
  // Whether compiled models may leave out the weights. May be null. Since 1.29.
  ORT_API2_STATUS(GetWeightlessSupport, const OrtEp* this_ptr, OrtWeightlessSupport* support);
};

// Makes the execution providers of a plugin.
struct OrtEpFactory {
  // ORT_API_VERSION of the provider; later slots than that version's are not called.
  uint32_t ort_version_supported;
  // Name of the provider that the factory makes.
  ORT_API_T(const char*, GetName, const OrtEpFactory* this_ptr);
  // Name of the vendor.
  ORT_API_T(const char*, GetVendor, const OrtEpFactory* this_ptr);
  // Pairs the provider with each device that it can use. The caller owns the pairs.
  ORT_API2_STATUS(GetSupportedDevices, OrtEpFactory* this_ptr,
                  const OrtHardwareDevice* const* devices, size_t num_devices,
                  OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* num_ep_devices);
  // Makes a provider for a session.
  ORT_API2_STATUS(CreateEp, OrtEpFactory* this_ptr, const OrtHardwareDevice* const* devices,
                  const OrtKeyValuePairs* const* ep_metadata_pairs, size_t num_devices,
                  const OrtSessionOptions* session_options, const OrtLogger* logger, OrtEp** ep);
  // Destroys a provider.
  void(ORT_API_CALL* ReleaseEp)(OrtEpFactory* this_ptr, OrtEp* ep);
  // PCI number of the vendor. Since 1.23.
  ORT_API_T(uint32_t, GetVendorId, const OrtEpFactory* this_ptr);
  // Version of the provider, as in "1.2.3". Since 1.23.
  ORT_API_T(const char*, GetVersion, const OrtEpFactory* this_ptr);
  // Whether a compiled model is compatible with the devices. May be null. Since 1.23.
  ORT_API2_STATUS(ValidateCompiledModelCompatibilityInfo, OrtEpFactory* this_ptr,
                  const OrtHardwareDevice* const* devices, size_t num_devices,
                  const char* compatibility_info,
                  OrtCompiledModelCompatibility* model_compatibility);
  // Makes an allocator for memory that was stated with EpDevice_AddAllocatorInfo. May be null.
  // Since 1.23.
  ORT_API2_STATUS(CreateAllocator, OrtEpFactory* this_ptr, const OrtMemoryInfo* memory_info,
                  const OrtKeyValuePairs* allocator_options, OrtAllocator** allocator);
  // Destroys such an allocator. Since 1.23.
  void(ORT_API_CALL* ReleaseAllocator)(OrtEpFactory* this_ptr, OrtAllocator* allocator);
  // Makes the transfer that copies between the devices; null if there is none. May be null. Since
  // 1.23.
  ORT_API2_STATUS(CreateDataTransfer, OrtEpFactory* this_ptr, OrtDataTransferImpl** data_transfer);
  // Whether the provider makes streams. Since 1.23.
  ORT_API_T(bool, IsStreamAware, const OrtEpFactory* this_ptr);
  // Makes a stream. May be null. Since 1.23.
  ORT_API2_STATUS(CreateSyncStreamForDevice, OrtEpFactory* this_ptr,
                  const OrtMemoryDevice* memory_device, const OrtKeyValuePairs* stream_options,
                  OrtSyncStreamImpl** stream);
  // Says why a device cannot be used. May be null. Since 1.24.
  ORT_API2_STATUS(GetHardwareDeviceIncompatibilityDetails, OrtEpFactory* this_ptr,
                  const OrtHardwareDevice* hw, OrtDeviceEpIncompatibilityDetails* details);
  // Makes an importer of other APIs' memory. May be null. Since 1.24.
  ORT_API2_STATUS(CreateExternalResourceImporterForDevice, OrtEpFactory* this_ptr,
                  const OrtEpDevice* ep_device, OrtExternalResourceImporterImpl** out_importer);
  // Number of domains of custom operators. May be null. Since 1.24.
  ORT_API2_STATUS(GetNumCustomOpDomains, OrtEpFactory* this_ptr, size_t* num_domains);
  // The domains, owned by the factory. May be null. Since 1.24.
  ORT_API2_STATUS(GetCustomOpDomains, OrtEpFactory* this_ptr, OrtCustomOpDomain** domains,
                  size_t num_domains);
  // Prepares the device for work with a graphics API. May be null. Since 1.25.
  ORT_API2_STATUS(InitGraphicsInterop, OrtEpFactory* this_ptr, const OrtEpDevice* ep_device,
                  const OrtGraphicsInteropConfig* config);
  // Undoes InitGraphicsInterop. May be null. Since 1.25.
  ORT_API2_STATUS(DeinitGraphicsInterop, OrtEpFactory* this_ptr, const OrtEpDevice* ep_device);
  // Chooses among compiled models. May be null. Since 1.28.
  ORT_API2_STATUS(SelectBestModelCandidate, OrtEpFactory* this_ptr, const OrtHardwareDevice* device,
                  const OrtKeyValuePairs* const* candidates, size_t num_candidates,
                  const OrtSessionOptions* session_options, size_t* selected_index);
};

// Functions that a plugin library exports, as "CreateEpFactories" and "ReleaseEpFactory".
// `registered_name` is the name under which the library was registered; at most `max_factories` are
// written.
typedef OrtStatus* (*CreateEpApiFactoriesFn)(const char* registered_name,
                                             const OrtApiBase* ort_api_base,
                                             const OrtLogger* default_logger,
                                             OrtEpFactory** factories, size_t max_factories,
                                             size_t* num_factories);
typedef OrtStatus* (*ReleaseEpApiFactoryFn)(OrtEpFactory* factory);

#ifdef __cplusplus
}
#endif
