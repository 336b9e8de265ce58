#include "capi/api_table.h"

#include <cstdio>
#include <type_traits>

#include "capi/not_implemented.h"
#include "capi/slots.h"

namespace tenon::capi {
namespace {

template <class Table>
constexpr Table MakeTable() {
  Table table = EmptyTable<Table>();
#define IMPLEMENTED(Struct, Name) \
  if constexpr (std::is_same_v<Table, Struct>) table.Name = Name;
#include "capi/implemented_slots.inc"
#undef IMPLEMENTED
  return table;
}

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
  return "Tenon " TENON_VERSION ", C ABI of ONNX Runtime 1." TENON_STRINGIZE(ORT_API_VERSION);
}

constinit const OrtApiBase kApiBase = {GetApi, GetVersionString};

const OrtModelEditorApi* GetModelEditorApi() noexcept { return &kTable<OrtModelEditorApi>.table; }
const OrtCompileApi* GetCompileApi() noexcept { return &kTable<OrtCompileApi>.table; }
const OrtInteropApi* GetInteropApi() noexcept { return &kTable<OrtInteropApi>.table; }
const OrtEpApi* GetEpApi() noexcept { return &kTable<OrtEpApi>.table; }

}  // namespace tenon::capi
