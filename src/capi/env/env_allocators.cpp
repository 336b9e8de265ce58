// The slots for allocators that sessions of an environment share.
#include <memory>
#include <string_view>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"
#include "capi/options/arena_config.h"
#include "capi/value/allocator.h"
#include "tensor/best_fit_arena.h"

namespace tenon::capi {
namespace {

Status CheckCpu(const MemoryInfo& memory) {
  if (memory.SameDevice(CpuMemory())) return OkStatus();
  return InvalidArgument("no provider allocates memory of '{}', device {}", memory.name,
                         memory.device_id);
}

}  // namespace

OrtStatus* CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                                      const OrtArenaCfg* arena_cfg) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_ERROR(CheckCpu(*Unwrap(mem_info)));
    std::shared_ptr<Allocator> created = SharedCpuAllocator();
    if (Unwrap(mem_info)->allocator_type == OrtArenaAllocator) {
      const ArenaConfig config = arena_cfg == nullptr ? ArenaConfig() : arena_cfg->config;
      created = std::make_shared<BestFitArena>(std::move(created), config);
    }
    env->shared->allocators.Create(std::move(created));
    return OkStatus();
  });
}

OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv* env, const char* provider_type,
                                        const OrtMemoryInfo* mem_info, const OrtArenaCfg* arena_cfg,
                                        const char* const*, const char* const*, size_t) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(provider_type);
    if (provider_type != std::string_view("CPUExecutionProvider")) {
      return InvalidArgument("there is no execution provider '{}'", provider_type);
    }
    return TakeOrtStatus(CreateAndRegisterAllocator(env, mem_info, arena_cfg));
  });
}

OrtStatus* RegisterAllocator(OrtEnv* env, OrtAllocator* allocator) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(allocator);
    return env->shared->allocators.Register(allocator);
  });
}

OrtStatus* UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(mem_info);
    return env->shared->allocators.Remove(*Unwrap(mem_info));
  });
}

OrtStatus* CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                 OrtDeviceMemoryType mem_type, OrtAllocatorType allocator_type,
                                 const OrtKeyValuePairs* allocator_options,
                                 OrtAllocator** allocator) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_device);
    const MemoryInfo* const memory = MemoryOf(*ep_device, mem_type);
    if (memory == nullptr) {
      return InvalidArgument("the device has no memory of type {}", static_cast<int>(mem_type));
    }
    const int type = allocator_type;
    if (type != OrtArenaAllocator && type != OrtDeviceAllocator) {
      return InvalidArgument("a shared allocator is a device's own or an arena, got type {}", type);
    }
    SharedAllocators& allocators = env->shared->allocators;
    allocators.ReleaseDefault(*memory);
    std::shared_ptr<Allocator> created = SharedCpuAllocator();
    if (ep_device->source != nullptr) {
      TENON_ASSIGN_OR_RETURN(created, ep_device->source->MakeAllocator(*memory, allocator_options));
    } else {
      TENON_RETURN_IF_ERROR(CheckCpu(*memory));
    }
    if (type == OrtArenaAllocator) {
      TENON_ASSIGN_OR_RETURN(
          const ArenaConfig config,
          ArenaConfigOf(allocator_options == nullptr ? StringMap() : allocator_options->entries()));
      created = std::make_shared<BestFitArena>(std::move(created), config);
    }
    OrtAllocator* const handle = allocators.Create(std::move(created), ep_device->source);
    if (allocator != nullptr) *allocator = handle;
    return OkStatus();
  });
}

OrtStatus* GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                              OrtAllocator** allocator) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_NULL(allocator);
    *allocator = env->shared->allocators.Find(*Unwrap(mem_info));
    if (*allocator != nullptr || !Unwrap(mem_info)->SameDevice(CpuMemory())) return OkStatus();
    return TakeOrtStatus(GetAllocatorWithDefaultOptions(allocator));
  });
}

OrtStatus* ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                  OrtDeviceMemoryType mem_type) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_device);
    const MemoryInfo* const memory = MemoryOf(*ep_device, mem_type);
    if (memory == nullptr) {
      return InvalidArgument("the device has no memory of type {}", static_cast<int>(mem_type));
    }
    // Registering nothing is allowed.
    if (env->shared->allocators.Find(*memory) == nullptr) return OkStatus();
    return env->shared->allocators.Remove(*memory);
  });
}

}  // namespace tenon::capi
