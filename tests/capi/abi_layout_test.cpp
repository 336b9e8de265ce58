// Compares the headers in include/ with the facts of the ABI: the offset and type of every member,
// and the value of every enumerator. The compiler checks all of it.
#include <onnxruntime_c_api.h>
#include <onnxruntime_training_c_api.h>

#include <cstddef>
#include <type_traits>

// The attribute "result must be used" is no part of a type.
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace {

// The facts leave noexcept out.
template <class T>
struct WithoutNoexcept {
  using Type = T;
};
template <class R, class... Args>
struct WithoutNoexcept<R (*)(Args...) noexcept> {
  using Type = R (*)(Args...);
};

template <class Member, class Fact>
inline constexpr bool kSameType = std::is_same_v<typename WithoutNoexcept<Member>::Type, Fact>;

constexpr bool kIsLp64 = sizeof(void*) == 8 && sizeof(long) == 8;

#define ABI_SLOT(Struct, Name, slot, ...)                               \
  static_assert(offsetof(Struct, Name) == (slot) * sizeof(void (*)())); \
  static_assert(kSameType<decltype(Struct::Name), __VA_ARGS__>);
#define ABI_MEMBER(Struct, Name, offset, ...)                    \
  static_assert(!kIsLp64 || offsetof(Struct, Name) == (offset)); \
  static_assert(kSameType<decltype(Struct::Name), __VA_ARGS__>);
#define ABI_SIZE(Struct, bytes) static_assert(!kIsLp64 || sizeof(Struct) == (bytes));
#include "capi/boundary/abi_slots.inc"
#undef ABI_SLOT
#undef ABI_MEMBER
#undef ABI_SIZE

// PE-6: the anchors of OrtEpApi, independently of the list above.
constexpr size_t SlotOf(size_t offset) { return offset / sizeof(void (*)()); }
static_assert(SlotOf(offsetof(OrtEpApi, ReleaseEpDevice)) == 1);
static_assert(SlotOf(offsetof(OrtEpApi, GetSyncIdForLastWaitOnSyncStream)) == 15);
static_assert(SlotOf(offsetof(OrtEpApi, GetEnvConfigEntries)) == 49);
static_assert(SlotOf(offsetof(OrtEpApi, ProfilingEventsContainer_AddEvents)) == 72);

#define ABI_ENUM(Enum, Name, value)                    \
  static_assert(static_cast<int>(Name) == (value));    \
  static_assert(std::is_same_v<decltype(Name), Enum>); \
  static_assert(sizeof(Enum) == 4);
#include "capi/abi_enums.inc"
#undef ABI_ENUM

#define ABI_FUNCTION(Name, ...) static_assert(kSameType<Name, __VA_ARGS__>)
ABI_FUNCTION(OrtExperimentalFnPtr, void (*)(void));
ABI_FUNCTION(OrtLoggingFunction,
             void (*)(void*, OrtLoggingLevel, const char*, const char*, const char*, const char*));
ABI_FUNCTION(OrtWriteBufferFunc, OrtStatus* (*)(void*, const void*, size_t));
ABI_FUNCTION(OrtGetInitializerLocationFunc,
             OrtStatus* (*)(void*, const char*, const OrtValue*, const OrtExternalInitializerInfo*,
                            OrtExternalInitializerInfo**));
ABI_FUNCTION(OrtThreadWorkerFn, void (*)(void*));
ABI_FUNCTION(OrtCustomCreateThreadFn, OrtCustomThreadHandle (*)(void*, OrtThreadWorkerFn, void*));
ABI_FUNCTION(OrtCustomJoinThreadFn, void (*)(OrtCustomThreadHandle));
ABI_FUNCTION(OrtThreadPoolWorkEnqueueFn, void* (*)(void*));
ABI_FUNCTION(OrtThreadPoolWorkStartFn, void (*)(void*, void*));
ABI_FUNCTION(OrtThreadPoolWorkStopFn, void (*)(void*, void*));
ABI_FUNCTION(OrtThreadPoolWorkAbandonFn, void (*)(void*, void*));
ABI_FUNCTION(OrtKernelCreateFunc, OrtStatus* (*)(void*, const OrtKernelInfo*, OrtKernelImpl**));
#undef ABI_FUNCTION

}  // namespace
