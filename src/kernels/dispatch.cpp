#include "kernels/dispatch.h"

#include <atomic>

#include "base/mutex.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tenon::kernels {
namespace {

struct TargetList {
  Target targets[3];
  size_t count;
};

#if defined(__x86_64__)
// Clang 14's __builtin_cpu_supports does not know "f16c".
bool SupportsF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
#endif

TargetList DetectTargets() {
  TargetList list{{Target::kBaseline}, 1};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && SupportsF16c()) {
    list.targets[list.count++] = Target::kAvx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
      list.targets[list.count++] = Target::kAvx512;
    }
  }
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kSveBit = 1ul << 22;  // HWCAP_SVE of asm/hwcap.h
  if (getauxval(AT_HWCAP) & kSveBit) list.targets[list.count++] = Target::kSve;
#endif
  return list;
}

const TargetList& Detected() {
  static const TargetList list = DetectTargets();
  return list;
}

std::atomic<Target>& Active() {
  static std::atomic<Target> active{SupportedTargets().back()};
  return active;
}

}  // namespace

std::span<const Target> SupportedTargets() { return {Detected().targets, Detected().count}; }

const char* TargetName(Target target) {
  switch (target) {
    case Target::kAvx2:
      return "avx2";
    case Target::kAvx512:
      return "avx512";
    case Target::kSve:
      return "sve";
    default:
      return "baseline";
  }
}

bool StreamsBestAlone() {
#if defined(__x86_64__)
  static const bool is_amd = (__builtin_cpu_init(), __builtin_cpu_is("amd"));
  return is_amd;
#else
  return false;
#endif
}

bool HasByteDotProducts() {
#if defined(__x86_64__)
  return ActiveTarget() == Target::kAvx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

std::string ActiveForm() {
  std::string name = TargetName(ActiveTarget());
  if (HasByteDotProducts()) name += " vnni";
  return name;
}

bool SettleTarget(std::optional<Target> wanted) {
  static Mutex mutex;
  static bool is_settled = false;
  const MutexLock lock(mutex);
  if (!is_settled && wanted) SetActiveTarget(*wanted);
  is_settled = true;
  return !wanted || *wanted == ActiveTarget();
}

Target ActiveTarget() { return Active().load(std::memory_order_relaxed); }
void SetActiveTarget(Target target) { Active().store(target, std::memory_order_relaxed); }

}  // namespace tenon::kernels
