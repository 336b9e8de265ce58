#include "capi/kernel/kernel_context.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"
#include "capi/value/sync_stream.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

Result<const Tensor*> AliasedInput(const OrtKernelContext& call, size_t output) {
  const int input = output < call.aliases.size() ? call.aliases[output] : -1;
  if (input < 0 || !call.context.HasInput(static_cast<size_t>(input))) return nullptr;
  const Value& value = call.context.InputValue(static_cast<size_t>(input));
  return value.is_tensor() ? &value.tensor() : nullptr;
}

// The element type of an output, from the operator's declaration or from inference.
Result<DataType> TypeOfOutput(const OrtKernelContext& call, size_t index) {
  const DataType type = call.output_types[index];
  if (type != DataType::kUndefined) return type;
  return Fail("the element type of output {} is not known: the operator must infer it", index);
}

Status MakeOutput(const OrtKernelContext& call, size_t index, const Shape& shape) {
  TENON_RETURN_IF_ERROR(shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const DataType type, TypeOfOutput(call, index));
  TENON_ASSIGN_OR_RETURN(Tensor* const output, call.context.AllocateOutput(index, type, shape));
  call.outputs[index] = *output;
  TENON_ASSIGN_OR_RETURN(const Tensor* const aliased, AliasedInput(call, index));
  const bool begins_with_input =
      aliased != nullptr && aliased->type() == type && aliased->size() == output->size();
  if (!begins_with_input || aliased->raw() == output->raw()) return OkStatus();
  return CopyElements(aliased->Reshaped(shape), *output);
}

}  // namespace

OrtStatus* KernelContext_GetInputCount(const OrtKernelContext* context, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(out);
    *out = context->context.input_count();
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetOutputCount(const OrtKernelContext* context, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(out);
    *out = context->context.output_count();
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetInput(const OrtKernelContext* context, size_t index,
                                  const OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(out);
    const bool is_there = context->context.HasInput(index);
    *out = is_there ? Wrap<OrtValue>(&context->context.InputValue(index)) : nullptr;
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetOutput(OrtKernelContext* context, size_t index,
                                   const int64_t* dim_values, size_t dim_count,
                                   OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL_ARRAY(dim_values, dim_count);
    TENON_RETURN_IF_NULL(out);
    TENON_RETURN_IF_ERROR(CheckIndex(index, context->context.output_count(), "outputs"));
    *out = nullptr;
    if (!context->context.HasOutput(index)) return OkStatus();
    const Shape shape(std::span(dim_values, dim_count));
    Value& value = context->outputs[index];
    if (!value.has_value()) {
      TENON_RETURN_IF_ERROR(MakeOutput(*context, index, shape));
    }
    if (!(value.tensor().shape() == shape)) {
      return InvalidArgument("output {} has shape {} already, got {}", index,
                             value.tensor().shape(), shape);
    }
    *out = Wrap<OrtValue>(&value);
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetPreallocatedOutput(const OrtKernelContext* context, size_t output_index,
                                               OrtValue** output) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(output);
    *output = nullptr;
    TENON_RETURN_IF_ERROR(CheckIndex(output_index, context->context.output_count(), "outputs"));
    const Tensor* const given = context->context.GivenOutput(output_index);
    if (given == nullptr) return OkStatus();
    Value& value = context->outputs[output_index];
    if (!value.has_value()) {
      TENON_RETURN_IF_ERROR(MakeOutput(*context, output_index, given->shape()));
    }
    if (value.tensor().raw() == given->raw()) *output = Wrap<OrtValue>(&value);
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetGPUComputeStream(const OrtKernelContext* context, void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(out);
    const Stream* const stream = context->context.stream();
    *out = stream == nullptr ? nullptr : stream->handle();
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetSyncStream(const OrtKernelContext* context,
                                       OrtSyncStream** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(out);
    *out = dynamic_cast<OrtSyncStream*>(context->context.stream());
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetResource(const OrtKernelContext* context, int resource_version,
                                     int resource_id, void** resource) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(resource);
    *resource = nullptr;
    return NotFound("the CPU has no resource {} of version {}", resource_id, resource_version);
  });
}

OrtStatus* KernelContext_GetLogger(const OrtKernelContext* context,
                                   const OrtLogger** logger) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(logger);
    const Logger* const of_run = context->context.logger();
    *logger = Wrap<OrtLogger>(of_run == nullptr ? &context->node.logger : of_run);
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetAllocator(const OrtKernelContext* context,
                                      const OrtMemoryInfo* mem_info, OrtAllocator** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_NULL(out);
    if (!Unwrap(mem_info)->SameDevice(CpuMemory())) {
      return InvalidArgument("the kernel has no memory of '{}'", Unwrap(mem_info)->name);
    }
    *out = NewClientAllocator(SharedCpuAllocator());
    return OkStatus();
  });
}

OrtStatus* KernelContext_GetScratchBuffer(const OrtKernelContext* context,
                                          const OrtMemoryInfo* mem_info, size_t count_or_bytes,
                                          void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_NULL(out);
    *out = nullptr;
    if (!Unwrap(mem_info)->SameDevice(CpuMemory())) {
      return InvalidArgument("the kernel has no memory of '{}'", Unwrap(mem_info)->name);
    }
    if (count_or_bytes == 0) return OkStatus();
    void* const block = CpuAllocator().Allocate(count_or_bytes);
    if (block == nullptr) return Fail("out of memory: {} bytes", count_or_bytes);
    // The ABI has the context const, but its contents for the call are not.
    auto& scratch = const_cast<OrtKernelContext*>(context)->scratch;
    scratch.emplace_back(block, [](void* memory) { CpuAllocator().Free(memory); });
    *out = block;
    return OkStatus();
  });
}

OrtStatus* KernelContext_ParallelFor(const OrtKernelContext* context, void (*fn)(void*, size_t),
                                     size_t total, size_t num_batch, void* usr_data) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(fn);
    if (total == 0) return OkStatus();
    // With 0 batches, the library divides the work.
    const size_t batches = num_batch == 0 ? total : std::min(num_batch, total);
    const size_t grain = (total + batches - 1) / batches;
    std::atomic<OrtStatus*> failure = nullptr;
    context->context.threads().ParallelFor(total, grain, [&](size_t begin, size_t end) {
      if (failure.load(std::memory_order_relaxed) != nullptr) return;
      OrtStatus* status = AtBoundary([&] {
        for (size_t i = begin; i < end; ++i) fn(usr_data, i);
        return OkStatus();
      });
      OrtStatus* none = nullptr;
      if (status != nullptr && !failure.compare_exchange_strong(none, status)) {
        ReleaseStatus(status);
      }
    });
    return TakeOrtStatus(failure.load());
  });
}

}  // namespace tenon::capi
