#include "plugin/weight_packing.h"

#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/value/allocator.h"
#include "plugin/call.h"

namespace tenon::plugin {

WeightPacking::WeightPacking(std::string key, std::shared_ptr<capi::PackedWeights> shared)
    : key_(std::move(key)),
      shared_(std::move(shared)),
      allocator_(capi::NewClientAllocator(SharedCpuAllocator()),
                 [](OrtAllocator* allocator) { capi::ReleaseAllocator(allocator); }) {}

Status WeightPacking::PackConstants(OrtKernelImpl& kernel, KernelInfo& info) {
  if (kernel.PrePackWeight == nullptr) return OkStatus();
  for (size_t i = 0; i < info.input_count(); ++i) {
    if (info.Constant(i) != nullptr) TENON_RETURN_IF_ERROR(Pack(kernel, info, i));
  }
  return OkStatus();
}

Status WeightPacking::Pack(OrtKernelImpl& kernel, KernelInfo& info, size_t input) {
  const Value value(*info.Constant(input));
  OrtSharedPrePackedWeightCache cache = {allocator_, nullptr};
  bool is_packed = false;
  TENON_RETURN_IF_ERROR(Call([&] {
    return kernel.PrePackWeight(&kernel, capi::Wrap<OrtValue>(&value), static_cast<int>(input),
                                allocator_.get(), shared_ == nullptr ? nullptr : &cache,
                                &is_packed);
  }));
  if (!is_packed) return OkStatus();
  if (cache.stored != nullptr) {
    TENON_RETURN_IF_ERROR(UseShared(kernel, input, std::move(cache.stored)));
  }
  info.ReleaseConstant(input);
  return OkStatus();
}

Status WeightPacking::UseShared(OrtKernelImpl& kernel, size_t input,
                                std::shared_ptr<const capi::PackedWeight> made) {
  if (kernel.SetSharedPrePackedWeight == nullptr) {
    return Fail("input {}: the kernel stored a packed weight but cannot take it back", input);
  }
  used_.push_back(shared_->Share(Format("{} {}", key_, input), std::move(made)));
  const capi::PackedWeight& weight = *used_.back();
  std::vector<const void*> data;
  for (const auto& buffer : weight.data) data.push_back(buffer.get());
  return Call([&] {
    return kernel.SetSharedPrePackedWeight(&kernel, data.data(), weight.sizes.data(), data.size(),
                                           static_cast<int>(input));
  });
}

}  // namespace tenon::plugin

namespace tenon::capi {

OrtStatus* SharedPrePackedWeightCache_StoreWeightData(
    OrtSharedPrePackedWeightCache* prepacked_weight_cache, void** buffer_data_ptrs,
    size_t* buffer_data_sizes, size_t num_buffers) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(prepacked_weight_cache);
    TENON_RETURN_IF_NULL(buffer_data_ptrs);
    TENON_RETURN_IF_NULL(buffer_data_sizes);
    if (num_buffers == 0) return InvalidArgument("a packed weight has at least one buffer");
    for (size_t i = 0; i < num_buffers; ++i) {
      if (buffer_data_ptrs[i] != nullptr || buffer_data_sizes[i] == 0) continue;
      return InvalidArgument("buffer {} of {} bytes must not be null", i, buffer_data_sizes[i]);
    }
    auto weight = std::make_shared<PackedWeight>();
    // Nothing can fail any more once the host owns the first buffer.
    weight->data.reserve(num_buffers);
    weight->sizes.assign(buffer_data_sizes, buffer_data_sizes + num_buffers);
    for (size_t i = 0; i < num_buffers; ++i) {
      weight->data.emplace_back(buffer_data_ptrs[i],
                                [allocator = prepacked_weight_cache->allocator](void* buffer) {
                                  if (buffer != nullptr) allocator->Free(allocator.get(), buffer);
                                });
    }
    prepacked_weight_cache->stored = std::move(weight);
    return OkStatus();
  });
}

}  // namespace tenon::capi
