#include "executable.h"

#include <algorithm>
#include <cstring>

#include "device_call.h"

namespace cuda {
namespace {

constexpr size_t kAlignment = 256;
// Graphs of as many sets of addresses are kept.
constexpr size_t kMaxRecorded = 8;
// A single launch is as quick as the launch of a graph.
constexpr size_t kLeastRecorded = 3;

size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

bool IsOfRun(const Storage& storage) {
  return storage.kind == Storage::kInput || storage.kind == Storage::kOutput;
}

DeviceCall* CallOf(const Launch& launch) { return static_cast<DeviceCall*>(launch.call.get()); }

bool IsCapturing(CUstream stream) {
  int status = 0;
  return Cu().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != 0;
}

}  // namespace

Result<std::unique_ptr<Executable>> Executable::Create(Device& device, Plan plan,
                                                       std::span<void* const> weights) {
  std::unique_ptr<Executable> executable(new Executable(device, std::move(plan)));
  PLUGIN_RETURN_IF_ERROR(executable->Prepare(weights));
  return executable;
}

Executable::~Executable() {
  if (!device_.MakeCurrent().ok()) return;
  if (has_run_) Cu().cuEventSynchronize(last_event_);
  for (const Recorded& recorded : recorded_) {
    if (recorded.graph) Cu().cuGraphExecDestroy(recorded.graph);
  }
  if (last_event_) Cu().cuEventDestroy(last_event_);
  if (capture_stream_) Cu().cuStreamDestroy(capture_stream_);
  device_.Free(slab_);
  device_.Free(constants_);
}

Status Executable::Prepare(std::span<void* const> weights) {
  weights_ = weights;
  PLUGIN_RETURN_IF_ERROR(device_.MakeCurrent());
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuEventCreate, &last_event_, CU_EVENT_DISABLE_TIMING));
  if (plan_.slab_bytes > 0) {
    PLUGIN_ASSIGN_OR_RETURN(void* const slab, device_.Allocate(plan_.slab_bytes));
    slab_ = static_cast<std::byte*>(slab);
  }
  size_t total = 0;
  for (const HostTensor& constant : plan_.constants) {
    constant_offsets_.push_back(total);
    total += Aligned(constant.bytes.size());
  }
  if (total > 0) {
    PLUGIN_ASSIGN_OR_RETURN(void* const memory, device_.Allocate(total));
    constants_ = static_cast<std::byte*>(memory);
    for (size_t i = 0; i < plan_.constants.size(); ++i) {
      const auto& bytes = plan_.constants[i].bytes;
      if (bytes.empty()) continue;
      PLUGIN_RETURN_IF_ERROR(
          CU_CHECK(cuMemcpyHtoD, reinterpret_cast<CUdeviceptr>(constants_ + constant_offsets_[i]),
                   bytes.data(), bytes.size()));
    }
  }
  return CompileAll();
}

Status Executable::CompileAll() {
  std::vector<const std::string*> sources;
  for (const Launch& launch : plan_.launches) {
    const std::string* source = launch.call ? CallOf(launch)->source() : &launch.source;
    if (source) sources.push_back(source);
  }
  PLUGIN_RETURN_IF_ERROR(device_.programs().Compile(sources));
  for (Launch& launch : plan_.launches) {
    Step& step = steps_.emplace_back();
    if (launch.call) {
      PLUGIN_RETURN_IF_ERROR(CallOf(launch)->Load());
    } else {
      PLUGIN_ASSIGN_OR_RETURN(step.function,
                              device_.programs().Find(launch.source, launch.name.c_str()));
    }
    launch.source.clear();
    launch.source.shrink_to_fit();
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Argument& argument = launch.arguments[i];
      uint64_t& value = step.values.emplace_back(0);
      if (argument.kind == Argument::kInt) {
        std::memcpy(&value, &argument.integer, sizeof(argument.integer));
      } else if (argument.kind == Argument::kFloat) {
        std::memcpy(&value, &argument.real, sizeof(argument.real));
      } else if (IsOfRun(plan_.storages[static_cast<size_t>(argument.storage)])) {
        step.run_arguments.push_back(i);
      } else {
        value = reinterpret_cast<uint64_t>(AddressOf(argument, {}, {}));
      }
      // A generated kernel takes an offset after each address; the address has it already.
      if (argument.kind == Argument::kBuffer && !launch.call) step.values.push_back(0);
    }
    if (launch.call) {
      for (const uint64_t value : step.values) {
        step.addresses.push_back(reinterpret_cast<void*>(value));
      }
    }
  }
  return Status();
}

void* Executable::AddressOf(const Argument& argument, std::span<void* const> inputs,
                            std::span<void* const> outputs) const {
  const Storage& storage = plan_.storages[static_cast<size_t>(argument.storage)];
  const auto number = static_cast<size_t>(storage.index);
  std::byte* base = nullptr;
  switch (storage.kind) {
    case Storage::kInput:
      base = static_cast<std::byte*>(inputs[number]);
      break;
    case Storage::kOutput:
      base = static_cast<std::byte*>(outputs[number]);
      break;
    case Storage::kWeight:
      base = static_cast<std::byte*>(weights_[number]);
      break;
    case Storage::kConstant:
      base = constants_ + constant_offsets_[number];
      break;
    case Storage::kScratch:
      base = slab_ + storage.slab_offset;
      break;
  }
  return base + argument.offset * static_cast<int64_t>(argument.element_size);
}

Status Executable::RunSteps(CUstream stream, std::span<void* const> inputs,
                            std::span<void* const> outputs, DeviceTrace& trace) {
  std::vector<void*> parameters;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const Launch& launch = plan_.launches[i];
    const CUevent begin = trace.Begin(stream);
    if (launch.call) {
      for (const size_t number : step.run_arguments) {
        step.addresses[number] = AddressOf(launch.arguments[number], inputs, outputs);
      }
      PLUGIN_RETURN_IF_ERROR(CallOf(launch)->Run(stream, step.addresses));
    } else {
      parameters.clear();
      for (uint64_t& value : step.values) parameters.push_back(&value);
      // Where the values of an argument begin: one before each, one more for each earlier address.
      for (const size_t number : step.run_arguments) {
        size_t place = number;
        for (size_t other = 0; other < number; ++other) {
          if (launch.arguments[other].kind == Argument::kBuffer) ++place;
        }
        step.values[place] =
            reinterpret_cast<uint64_t>(AddressOf(launch.arguments[number], inputs, outputs));
      }
      const auto groups = [&](size_t axis) {
        return static_cast<unsigned>(launch.global[axis] / launch.local[axis]);
      };
      PLUGIN_RETURN_IF_ERROR(
          CU_CHECK(cuLaunchKernel, step.function, groups(0), groups(1), groups(2),
                   static_cast<unsigned>(launch.local[0]), static_cast<unsigned>(launch.local[1]),
                   static_cast<unsigned>(launch.local[2]), 0, stream, parameters.data(), nullptr));
    }
    trace.End(launch.name, begin, stream);
  }
  return Status();
}

// The stream that is captured is no other's, so that the work of other streams stays out of it.
Result<CUgraphExec> Executable::Record(std::span<void* const> inputs,
                                       std::span<void* const> outputs, DeviceTrace& trace) {
  if (!capture_stream_) {
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuStreamCreate, &capture_stream_, CU_STREAM_NON_BLOCKING));
  }
  PLUGIN_RETURN_IF_ERROR(
      CU_CHECK(cuStreamBeginCapture, capture_stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  const Status recording = RunSteps(capture_stream_, inputs, outputs, trace);
  CUgraph graph = nullptr;
  const Status ended = CU_CHECK(cuStreamEndCapture, capture_stream_, &graph);
  CUgraphExec executable = nullptr;
  Status status = recording.ok() ? ended : recording;
  if (status.ok()) status = CU_CHECK(cuGraphInstantiate, &executable, graph, 0);
  if (graph) Cu().cuGraphDestroy(graph);
  PLUGIN_RETURN_IF_ERROR(status);
  return executable;
}

Result<CUgraphExec> Executable::FindGraph(std::span<void* const> inputs,
                                          std::span<void* const> outputs, DeviceTrace& trace) {
  std::vector<void*> addresses(inputs.begin(), inputs.end());
  addresses.insert(addresses.end(), outputs.begin(), outputs.end());
  auto it = std::find_if(recorded_.begin(), recorded_.end(),
                         [&](const Recorded& other) { return other.addresses == addresses; });
  if (it == recorded_.end()) {
    recorded_.push_front({std::move(addresses)});
    if (recorded_.size() > kMaxRecorded) {
      // The graph may still run.
      if (has_run_) PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuEventSynchronize, last_event_));
      if (recorded_.back().graph) Cu().cuGraphExecDestroy(recorded_.back().graph);
      recorded_.pop_back();
    }
    return nullptr;
  }
  recorded_.splice(recorded_.begin(), recorded_, it);
  Recorded& found = recorded_.front();
  if (!found.graph) {
    auto graph = Record(inputs, outputs, trace);
    if (graph.ok()) {
      found.graph = *graph;
    } else {
      can_record_ = false;  // launched one by one from now on
    }
  }
  return found.graph;
}

Status Executable::Run(CUstream stream, std::span<void* const> inputs,
                       std::span<void* const> outputs, DeviceTrace& trace) {
  PLUGIN_RETURN_IF_ERROR(device_.MakeCurrent());
  const bool is_captured = IsCapturing(stream);
  if (has_run_ && last_stream_ != stream && !is_captured) {
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuStreamWaitEvent, stream, last_event_, 0));
  }
  CUgraphExec graph = nullptr;
  if (can_record_ && !is_captured && !trace.is_active() && steps_.size() >= kLeastRecorded) {
    PLUGIN_ASSIGN_OR_RETURN(graph, FindGraph(inputs, outputs, trace));
  }
  if (graph) {
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuGraphLaunch, graph, stream));
  } else {
    PLUGIN_RETURN_IF_ERROR(RunSteps(stream, inputs, outputs, trace));
  }
  if (is_captured) return Status();
  last_stream_ = stream;
  has_run_ = true;
  return CU_CHECK(cuEventRecord, last_event_, stream);
}

}  // namespace cuda
