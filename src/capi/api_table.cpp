#include "capi/api_table.h"

#include <cstdio>
#include <type_traits>

#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

// A table, followed by slots that a client of a later patch release might call.
template <class Table>
struct Padded {
  static constexpr size_t kPaddingSlots = 32;
  Table table;
  OrtStatus* (*past_the_end[kPaddingSlots])() noexcept;
};

template <class Table>
constexpr Padded<Table> Pad(const Table& table) {
  Padded<Table> padded = {table, {}};
  for (auto& slot : padded.past_the_end) {
    slot = []() noexcept {
      return AtBoundary([]() -> Status {
        return NotImplemented(
            "this function is newer than Tenon: its slot lies past the end of the table");
      });
    };
  }
  return padded;
}

// A table whose slots point to the functions of the same names; if one is missing, the library does
// not link.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"  // "result must be used": see slots.h
template <class Table>
constexpr Table MakeTable() {
  Table table = {};
#define ABI_SLOT(Struct, Name, slot, ...) \
  if constexpr (std::is_same_v<Table, Struct>) table.Name = Name;
#define ABI_MEMBER(Struct, Name, offset, ...)
#define ABI_SIZE(Struct, bytes)
#include "capi/boundary/abi_slots.inc"
#undef ABI_SLOT
#undef ABI_MEMBER
#undef ABI_SIZE
  return table;
}
#pragma GCC diagnostic pop

template <class Table>
constinit const Padded<Table> kTable = Pad(MakeTable<Table>());

}  // namespace

const OrtApi* GetApi(uint32_t version) noexcept {
  if (version >= 1 && version <= ORT_API_VERSION) return &kTable<OrtApi>.table;
  std::fprintf(stderr, "tenon: API version %u was asked for, but 1 to %d are all there are\n",
               static_cast<unsigned>(version), ORT_API_VERSION);
  return nullptr;
}

#define TENON_STRINGIZE_INNER(x) #x
#define TENON_STRINGIZE(x) TENON_STRINGIZE_INNER(x)
const char* GetVersionString() noexcept { return "1." TENON_STRINGIZE(ORT_API_VERSION) ".0"; }

const char* GetBuildInfoString() noexcept {
  return "Build Info: Tenon " TENON_VERSION
         ", C ABI of ONNX Runtime 1." TENON_STRINGIZE(ORT_API_VERSION);
}

constinit const OrtApiBase kApiBase = {GetApi, GetVersionString};

const OrtModelEditorApi* GetModelEditorApi() noexcept { return &kTable<OrtModelEditorApi>.table; }
const OrtCompileApi* GetCompileApi() noexcept { return &kTable<OrtCompileApi>.table; }
const OrtInteropApi* GetInteropApi() noexcept { return &kTable<OrtInteropApi>.table; }
const OrtTrainingApi* GetTrainingApi(uint32_t version) noexcept {
  return version >= 1 && version <= ORT_API_VERSION ? &kTable<OrtTrainingApi>.table : nullptr;
}
const OrtEpApi* GetEpApi() noexcept { return &kTable<OrtEpApi>.table; }

}  // namespace tenon::capi
