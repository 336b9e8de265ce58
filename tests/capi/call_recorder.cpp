// Preloaded into a client: records which slots of the C tables it calls, and when it ends writes
// their numbers to the file that TENON_CALLS names. Each line is "<table> <slot>".
//
// Two instructions take the place of each slot; they set a byte and jump to the library: no
// register and no argument is touched, whatever the signature.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <onnxruntime_training_c_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#if !defined(__x86_64__)
#error "the recorder knows x86-64 alone"
#endif

namespace {

constexpr size_t kTables = 6;
constexpr size_t kSlots = 512;  // of each table; the longest has 425

}  // namespace

extern "C" {
// Read and written by the thunks.
__attribute__((used, visibility("hidden"))) uint8_t recorder_called[kTables * kSlots];
__attribute__((used, visibility("hidden"))) void* recorder_real[kTables * kSlots];
extern const char recorder_thunks[];
}

constexpr size_t kThunkBytes = 16;
asm(R"(
.pushsection .text
.balign 16
.hidden recorder_thunks
.globl recorder_thunks
recorder_thunks:
.set index, 0
.rept 3072
  .balign 16
  movb $1, recorder_called + index(%rip)
  jmp *recorder_real + 8 * index(%rip)
  .set index, index + 1
.endr
.popsection
)");

namespace {

static_assert(kTables * kSlots == 3072);

// Makes the slots of `table` record their calls, whoever the caller is: the client, a plugin or a
// library of custom operators.
void Record(size_t table, const void* slots, size_t bytes) {
  if (slots == nullptr) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(slots) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(slots) + bytes;
  if (mprotect(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE) != 0) {
    std::perror("mprotect");
    std::abort();
  }
  void** const functions = static_cast<void**>(const_cast<void*>(slots));
  for (size_t i = 0; i < bytes / sizeof(void*); ++i) {
    const size_t index = table * kSlots + i;
    recorder_real[index] = functions[i];
    functions[i] = const_cast<char*>(recorder_thunks + index * kThunkBytes);
  }
}

void Write() {
  const char* const path = std::getenv("TENON_CALLS");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  for (size_t i = 0; i < std::size(recorder_called); ++i) {
    if (recorder_called[i]) std::fprintf(file, "%zu %zu\n", i / kSlots, i % kSlots);
  }
  std::fclose(file);
}

const OrtApi* GetApi(uint32_t version) noexcept {
  using GetBase = const OrtApiBase*();
  static auto* const base = reinterpret_cast<GetBase*>(dlsym(RTLD_NEXT, "OrtGetApiBase"))();
  const OrtApi* const api = base->GetApi(version);
  if (api == nullptr || recorder_real[0] != nullptr) return api;
  std::atexit(&Write);
  const OrtModelEditorApi* const editor = api->GetModelEditorApi();
  const OrtCompileApi* const compile = api->GetCompileApi();
  const OrtEpApi* const ep = api->GetEpApi();
  const OrtInteropApi* const interop = api->GetInteropApi();
  const OrtTrainingApi* const training = api->GetTrainingApi(version);
  Record(0, api, sizeof(*api));
  Record(1, editor, sizeof(*editor));
  Record(2, compile, sizeof(*compile));
  Record(3, ep, sizeof(*ep));
  Record(4, interop, sizeof(*interop));
  Record(5, training, sizeof(*training));
  return api;
}

const char* GetVersionString() noexcept {
  using GetBase = const OrtApiBase*();
  return reinterpret_cast<GetBase*>(dlsym(RTLD_NEXT, "OrtGetApiBase"))()->GetVersionString();
}

constexpr OrtApiBase kBase = {&GetApi, &GetVersionString};

}  // namespace

extern "C" ORT_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase() noexcept { return &kBase; }
