// Keys for OrtApi::AddSessionConfigEntry. Values are strings; one that is malformed is
// ORT_INVALID_ARGUMENT.
#pragma once

// Loading.

// "ONNX" or "ORT"; unset: ORT for files named *.ort and for models that begin as such, else ONNX.
static const char* const kOrtSessionOptionsConfigLoadModelFormat = "session.load_model_format";

// "ONNX" or "ORT", of the optimized model; unset: ORT for files named *.ort, else ONNX.
static const char* const kOrtSessionOptionsConfigSaveModelFormat = "session.save_model_format";

// "1": the caller's bytes, of a model in the ORT format, are read without a copy.
static const char* const kOrtSessionOptionsConfigUseORTModelBytesDirectly =
    "session.use_ort_model_bytes_directly";

// "1", with the entry above: so are the weights in these bytes, which must outlive the session.
static const char* const kOrtSessionOptionsConfigUseORTModelBytesForInitializers =
    "session.use_ort_model_bytes_for_initializers";

// "1": the file is mapped, not read, as is any file here.
static const char* const kOrtSessionOptionsConfigUseMemoryMappedOrtModel =
    "session.use_memory_mapped_ort_model";

// The folder of the external data of a model that is given as bytes.
static const char* const kOrtSessionOptionsModelExternalInitializersFileFolderPath =
    "session.model_external_initializers_file_folder_path";

// "1": contradictions in types and shapes are errors; "0" (default): warnings.
static const char* const kOrtSessionOptionsConfigStrictShapeTypeInference =
    "session.strict_shape_type_inference";

// "1" (default): opsets that are newer than the last released one are errors.
static const char* const kOrtSessionOptionsConfigStrictAllowReleasedOpsetsOnly =
    "session.allow_released_opsets_only";

// Threads.

// "0": idle threads sleep at once; "1" (default): they spin for a short while first.
static const char* const kOrtSessionOptionsConfigAllowIntraOpSpinning =
    "session.intra_op.allow_spinning";

// As above, for threads that run different operators.
static const char* const kOrtSessionOptionsConfigAllowInterOpSpinning =
    "session.inter_op.allow_spinning";

// How long they spin, in microseconds.
static const char* const kOrtSessionOptionsConfigIntraOpSpinDurationUs =
    "session.intra_op.spin_duration_us";

// As above, for threads that run different operators.
static const char* const kOrtSessionOptionsConfigInterOpSpinDurationUs =
    "session.inter_op.spin_duration_us";

// The most pauses between two looks at the queue while spinning.
static const char* const kOrtSessionOptionsConfigIntraOpSpinBackoffMax =
    "session.intra_op.spin_backoff_max";

// As above, for threads that run different operators.
static const char* const kOrtSessionOptionsConfigInterOpSpinBackoffMax =
    "session.inter_op.spin_backoff_max";

// "1": threads stop spinning when the last run that is under way ends.
static const char* const kOrtSessionOptionsConfigForceSpinningStop = "session.force_spinning_stop";

// Processors of each thread but the first, counted from 1: "1,2;3,4" or "1-8;9-16".
static const char* const kOrtSessionOptionsConfigIntraOpThreadAffinities =
    "session.intra_op_thread_affinities";

// A positive number: work is cut into blocks that shrink towards its end.
static const char* const kOrtSessionOptionsConfigDynamicBlockBase = "session.dynamic_block_base";

// "1": denormal numbers count as zero.
static const char* const kOrtSessionOptionsConfigSetDenormalAsZero = "session.set_denormal_as_zero";

// Memory.

// "1": weights stay as they are in the model.
static const char* const kOrtSessionOptionsConfigDisablePrepacking = "session.disable_prepacking";

// "1": allocators that are registered with the environment are used.
static const char* const kOrtSessionOptionsConfigUseEnvAllocators = "session.use_env_allocators";

// "1": weights are not placed in an arena.
static const char* const kOrtSessionOptionsUseDeviceAllocatorForInitializers =
    "session.use_device_allocator_for_initializers";

// File that receives the memory use of each node as CSV.
static const char* const kOrtSessionOptionsCollectNodeMemoryStatsToFile =
    "session.collect_node_memory_stats_to_file";

// Largest shapes of inputs, as in "ids:[1,512];mask:[1,512]".
static const char* const kOrtSessionOptionsMaxShapeOverride = "session.max_shape_override";

// Optimisation.

// Passes to leave out, separated by semicolons, as "ConstantFolding;ConstantSharing": those that a
// trace of the session shows (docs/profiling.md). Other names have no effect.
static const char* const kOrtSessionOptionsDisableSpecifiedOptimizers =
    "optimization.disable_specified_optimizers";

// "save" or "apply": rewrites kept for later; unset: all are applied.
static const char* const kOrtSessionOptionsConfigMinimalBuildOptimizations =
    "optimization.minimal_build_optimizations";

// "1": Gelu may be computed with tanh. Default: "0".
static const char* const kOrtSessionOptionsEnableGeluApproximation =
    "optimization.enable_gelu_approximation";

// "1": chains of casts become one. Default: "0".
static const char* const kOrtSessionOptionsEnableCastChainElimination =
    "optimization.enable_cast_chain_elimination";

// How often rewriting starts over: "0" never, "1" (default), "2" more often.
static const char* const kOrtSessionOptionsGraphOptimizationsLoopLevel =
    "session.graph_optimizations_loop_level";

// "1": functions stay until the graph is partitioned.
static const char* const kOrtSessionOptionsDisableAheadOfTimeFunctionInlining =
    "session.disable_aot_function_inlining";

// Training: what to compute again instead of keeping it.
static const char* const kOrtSessionOptionsMemoryOptimizerApplyConfig =
    "optimization.memory_optimizer_config";

// Training: how to look for what could be computed again.
static const char* const kOrtSessionOptionsMemoryOptimizerProbeConfig =
    "optimization.enable_memory_probe_recompute_config";

// Quantisation.

// "1": QuantizeLinear and DequantizeLinear are not fused.
static const char* const kOrtSessionOptionsDisableQuantQDQ = "session.disable_quant_qdq";

// "1": pairs of them in the middle stay.
static const char* const kOrtSessionOptionsDisableDoubleQDQRemover =
    "session.disable_double_qdq_remover";

// "1": pairs of them without use are removed in the end. Default: "0".
static const char* const kOrtSessionOptionsEnableQuantQDQCleanup =
    "session.enable_quant_qdq_cleanup";

// "1": signed quantized values are kept.
static const char* const kOrtSessionOptionsQDQIsInt8Allowed = "session.qdqisint8allowed";

// "1": int8 products never saturate, at some cost.
static const char* const kOrtSessionOptionsAvx2PrecisionMode = "session.x64quantprecision";

// "1": DequantizeLinear and MatMul become MatMulNBits.
static const char* const kOrtSessionOptionsEnableDQMatMulNBitsFusion =
    "session.enable_dq_matmulnbits_fusion";

// accuracy_level of such a MatMulNBits, and in Tenon of every one that names none. Default: "4" for
// weights of up to 4 bits in blocks of up to 128, else "1".
static const char* const kOrtSessionOptionsQDQMatMulNBitsAccuracyLevel =
    "session.qdq_matmulnbits_accuracy_level";

// block_size of such a MatMulNBits.
static const char* const kOrtSessionOptionsQDQMatMulNBitsBlockSize =
    "session.qdq_matmulnbits_block_size";

// "1": products with weights of few bits may use look-up tables.
static const char* const kOrtSessionOptionsMlasLutGemm = "mlas.use_lut_gemm";

// Saving the optimized model.

// File for its weights.
static const char* const kOrtSessionOptionsOptimizedModelExternalInitializersFileName =
    "session.optimized_model_external_initializers_file_name";

// Smallest weight that goes there.
static const char* const kOrtSessionOptionsOptimizedModelExternalInitializersMinSizeInBytes =
    "session.optimized_model_external_initializers_min_size_in_bytes";

// "1": weights are saved packed.
static const char* const kOrtSessionOptionsSavePrePackedConstantInitializers =
    "session.save_external_prepacked_constant_initializers";

// Placing nodes on devices.

// "1": it is an error if a node would run on the CPU provider.
static const char* const kOrtSessionOptionsDisableCPUEPFallback = "session.disable_cpu_ep_fallback";

// "1": Session_GetEpGraphAssignmentInfo tells which provider got which node.
static const char* const kOrtSessionOptionsRecordEpGraphAssignmentInfo =
    "session.record_ep_graph_assignment_info";

// Devices for nodes, by their layer.
static const char* const kOrtSessionOptionsLayerAssignmentSettings =
    "session.layer_assignment_settings";

// Devices for nodes, by their name.
static const char* const kOrtSessionOptionsNameBasedLayerAssignment =
    "session.name_based_layer_assignment";

// "kilobytes,file of memory statistics" for the CUDA provider.
static const char* const kOrtSessionOptionsResourceCudaPartitioningSettings =
    "session.resource_cuda_partitioning_settings";

// File that places nodes on streams.
static const char* const kNodePartitionConfigFile = "session.node_partition_config_file";

// Operators from which on NNAPI takes no node.
static const char* const kOrtSessionOptionsConfigNnapiEpPartitioningStopOps =
    "ep.nnapi.partitioning_stop_ops";

// "1": saves the model between the steps of a layout change.
static const char* const kDebugLayoutTransformation = "session.debug_layout_transformation";

// Compiled models.

// "1": it is an error if a provider would have to compile.
static const char* const kOrtSessionOptionsDisableModelCompile = "session.disable_model_compile";

// "1": a compiled model that suits the device badly is an error.
static const char* const kOrtSessionOptionsFailOnSuboptimalCompiledModel =
    "session.fail_on_suboptimal_compiled_model";

// "1": what providers compile is saved as a model.
static const char* const kOrtSessionOptionEpContextEnable = "ep.context_enable";

// File for that model. Default: beside the original.
static const char* const kOrtSessionOptionEpContextFilePath = "ep.context_file_path";

// "1": compiled parts are in that file; "0" (default): beside it.
static const char* const kOrtSessionOptionEpContextEmbedMode = "ep.context_embed_mode";

// Prefix that keeps the names of its nodes apart from others.
static const char* const kOrtSessionOptionEpContextNodeNamePrefix = "ep.context_node_name_prefix";

// "1": sessions share what providers compiled.
static const char* const kOrtSessionOptionShareEpContexts = "ep.share_ep_contexts";

// "1": this session is the last to share.
static const char* const kOrtSessionOptionStopShareEpContexts = "ep.stop_share_ep_contexts";

// File for its weights.
static const char* const kOrtSessionOptionsEpContextModelExternalInitializersFileName =
    "ep.context_model_external_initializers_file_name";

// "1": weights stay in the original model.
static const char* const kOrtSessionOptionEpEnableWeightless = "ep.enable_weightless";

// "1": the same, in its older form, which only a provider's plugin heeds.
static const char* const kOrtSessionOptionEpEnableWeightlessEpContextNodes =
    "ep.enable_weightless_ep_context_nodes";

// The model that a compiled one was made of, for its weights.
static const char* const kOrtSessionOptionEpContextSourceModelPath = "ep.context_source_model_path";

// What functions of OrtApi set too, as texts.

// Numbers of threads.
static const char* const kOrtSessionOptionsConfigIntraOpNumThreads = "session.intra_op_num_threads";
static const char* const kOrtSessionOptionsConfigInterOpNumThreads = "session.inter_op_num_threads";

// "0": the session uses the threads of the environment.
static const char* const kOrtSessionOptionsConfigUsePerSessionThreads =
    "session.use_per_session_threads";

// "sequential" or "parallel".
static const char* const kOrtSessionOptionsConfigExecutionMode = "session.execution_mode";

// "disable_all", "enable_basic", "enable_extended", "enable_layout" or "enable_all".
static const char* const kOrtSessionOptionsConfigGraphOptimizationLevel =
    "session.graph_optimization_level";

// The file that the optimized model is written to.
static const char* const kOrtSessionOptionsConfigOptimizedModelFilePath =
    "session.optimized_model_filepath";

// "1": an arena, a memory plan, kernels with repeatable results.
static const char* const kOrtSessionOptionsConfigEnableCpuMemArena = "session.enable_cpu_mem_arena";
static const char* const kOrtSessionOptionsConfigEnableMemPattern = "session.enable_mem_pattern";
static const char* const kOrtSessionOptionsConfigUseDeterministicCompute =
    "session.use_deterministic_compute";

// The prefix of the traces' names; empty: no traces.
static const char* const kOrtSessionOptionsConfigEnableProfiling = "session.enable_profiling";

// Messages: their source, their least severity, and how much they tell.
static const char* const kOrtSessionOptionsConfigLogId = "session.log_id";
static const char* const kOrtSessionOptionsConfigLogSeverityLevel = "session.log_severity_level";
static const char* const kOrtSessionOptionsConfigLogVerbosityLevel = "session.log_verbosity_level";

// Known, without effect here.

// "1": the session only compiles its model.
static const char* const kOrtSessionOptionCompileOnly = "session.compile_only";

// "1": optimizations that an ORT model has kept are applied.
static const char* const kOrtSessionOptionsConfigEnableSavedRuntimeOptimizations =
    "session.enable_saved_runtime_optimizations";

// Bounds on what is folded.
static const char* const kOrtSessionOptionsConstantFoldingMaxOutputSizeInBytes =
    "optimization.constant_folding_max_output_size_in_bytes";
static const char* const kOrtSessionOptionsDisableQDQConstantFolding =
    "session.disable_qdq_constant_folding";

// Bounds of kernels on Arm.
static const char* const kOrtSessionOptionsMlasKleidiAiConvIgemmMaxWork =
    "mlas.kleidiai.conv_igemm_max_work";
static const char* const kOrtSessionOptionsMlasNchwcPointwiseConvMaxInputChannelBatch =
    "mlas.nchwc_pointwise_conv_max_input_channel_batch";

// "1": float products through bfloat16 on Arm.
static const char* const kOrtSessionOptionsMlasGemmFastMathArm64Bfloat16 =
    "mlas.enable_gemm_fastmath_arm64_bfloat16";

// "1": no KleidiAI kernels on Arm.
static const char* const kOrtSessionOptionsMlasDisableKleidiAi = "mlas.disable_kleidiai";

// Settings for SetEpDynamicOptions.

// "Default" or "Efficient".
static const char* const kOrtEpDynamicOptionsWorkloadType = "ep.dynamic.workload_type";

// Performance mode of the QNN provider.
static const char* const kOrtEpDynamicOptionsQnnHtpPerformanceMode =
    "ep.dynamic.qnn_htp_performance_mode";
