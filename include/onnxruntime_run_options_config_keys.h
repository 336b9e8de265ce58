// Keys for OrtApi::AddRunConfigEntry. Values are strings; one that is malformed is
// ORT_INVALID_ARGUMENT.
#pragma once

// Arenas that give unused memory back after the run, as in "cpu:0;gpu:0".
static const char* const kOrtRunOptionsConfigEnableMemoryArenaShrinkage =
    "memory.enable_memory_arena_shrinkage";

// "1": the run ends without waiting for the devices.
static const char* const kOrtRunOptionsConfigDisableSynchronizeExecutionProviders =
    "disable_synchronize_execution_providers";

// Which captured device graph the run uses; "-1": none.
static const char* const kOrtRunOptionsConfigCudaGraphAnnotation = "gpu_graph_id";

// Performance mode of the QNN provider.
static const char* const kOrtRunOptionsConfigQnnPerfMode = "qnn.htp_perf_mode";

// Performance mode of the QNN provider after the run.
static const char* const kOrtRunOptionsConfigQnnPerfModePostRun = "qnn.htp_perf_mode_post_run";

// Latency of calls of the QNN provider.
static const char* const kOrtRunOptionsConfigQnnRpcControlLatency = "qnn.rpc_control_latency";

// Adapters of the QNN provider.
static const char* const kOrtRunOptionsConfigQnnLoraConfig = "qnn.lora_config";
