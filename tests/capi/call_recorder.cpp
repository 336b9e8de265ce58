// To be preloaded into a client: notes which slots of the C tables it calls, and writes their
// names' numbers to the file that TENON_CALLS names when it ends. Each line is "<table> <slot>".
//
// A slot is stood for by two instructions, which set a byte and go on to the library: no register
// and no argument is touched, whatever the signature.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#if !defined(__x86_64__)
#error "the recorder knows x86-64 alone"
#endif

namespace {

constexpr size_t kTables = 5;
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
.rept 2560
  .balign 16
  movb $1, recorder_called + index(%rip)
  jmp *recorder_real + 8 * index(%rip)
  .set index, index + 1
.endr
.popsection
)");

namespace {

static_assert(kTables * kSlots == 2560);

// A table whose slots note that they were called. Its first `known` slots are those of `real`.
const void* Recorded(size_t table, const void* real, size_t known) {
  static void* tables[kTables][kSlots];
  if (real == nullptr) return nullptr;
  for (size_t i = 0; i < known; ++i) {
    const size_t index = table * kSlots + i;
    recorder_real[index] = static_cast<void* const*>(real)[i];
    tables[table][i] = const_cast<char*>(recorder_thunks + index * kThunkBytes);
  }
  return tables[table];
}

const OrtApi* real_api = nullptr;

// The slots that give other tables, by number in OrtApi.
template <size_t kTable, class Table, auto kSlot>
const Table* Give() noexcept {
  return static_cast<const Table*>(
      Recorded(kTable, (real_api->*kSlot)(), sizeof(Table) / sizeof(void*)));
}

template <class Function>
void Replace(void* table, size_t offset, Function* function) {
  *reinterpret_cast<void**>(static_cast<char*>(table) + offset) = reinterpret_cast<void*>(function);
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

template <size_t kTable, class Table, auto kSlot, size_t kOffset>
const Table* Noted() noexcept {
  recorder_called[kOffset / sizeof(void*)] = 1;
  return Give<kTable, Table, kSlot>();
}

const OrtApi* GetApi(uint32_t version) noexcept {
  using GetBase = const OrtApiBase*();
  static auto* const base = reinterpret_cast<GetBase*>(dlsym(RTLD_NEXT, "OrtGetApiBase"))();
  static const int registered = std::atexit(&Write);
  (void)registered;
  real_api = base->GetApi(version);
  if (real_api == nullptr) return nullptr;
  void* const table = const_cast<void*>(Recorded(0, real_api, sizeof(OrtApi) / sizeof(void*)));
#define GIVE(number, Table, Slot)        \
  Replace(table, offsetof(OrtApi, Slot), \
          &Noted<number, Table, &OrtApi::Slot, offsetof(OrtApi, Slot)>)
  GIVE(1, OrtModelEditorApi, GetModelEditorApi);
  GIVE(2, OrtCompileApi, GetCompileApi);
  GIVE(3, OrtEpApi, GetEpApi);
  GIVE(4, OrtInteropApi, GetInteropApi);
#undef GIVE
  return static_cast<const OrtApi*>(table);
}

const char* GetVersionString() noexcept {
  using GetBase = const OrtApiBase*();
  return reinterpret_cast<GetBase*>(dlsym(RTLD_NEXT, "OrtGetApiBase"))()->GetVersionString();
}

constexpr OrtApiBase kBase = {&GetApi, &GetVersionString};

}  // namespace

extern "C" ORT_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase() noexcept { return &kBase; }
