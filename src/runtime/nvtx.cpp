#include "runtime/nvtx.h"

#include <array>
#include <cstdlib>
#include <utility>

#include "base/dynamic_library.h"
#include "ir/node.h"

namespace tenon {
namespace {

// The binary interface of NVTX 3: nvtxTypes.h and nvToolsExt.h of NVIDIA's library.
struct EventAttributes {
  uint16_t version = 3;
  uint16_t size = sizeof(EventAttributes);
  uint32_t category = 0;
  int32_t color_type = 1;  // ARGB
  uint32_t color = 0;
  int32_t payload_type = 0;  // none
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = 1;  // text with a terminating zero
  const char* message = nullptr;
};
static_assert(sizeof(EventAttributes) == 48);

using Function = void (*)();
using RangeStart = uint64_t (*)(const EventAttributes* attributes);
using RangeEnd = void (*)(uint64_t id);
using RangePush = int (*)(const EventAttributes* attributes);
using RangePop = int (*)();

// A module's functions: the tool replaces those that it wants to hear of.
constexpr uint32_t kCore = 1, kModules = 7;
enum CoreFunction : size_t { kRangeStart = 4, kRangeEnd = 7, kRangePush = 8, kRangePop = 11 };
constexpr size_t kMostFunctions = 16;
// The numbers of functions, by module, the invalid one at 0 included.
constexpr std::array<uint32_t, kModules> kFunctions = {0, 16, 9, 15, 7, 16, 7};

struct Module {
  std::array<Function, kMostFunctions> functions = {};
  std::array<Function*, kMostFunctions> slots = {};
};

std::array<Module, kModules>& Modules() {
  static std::array<Module, kModules> modules;
  return modules;
}

template <class Type>
Type CoreFunctionOf(CoreFunction index) {
  return reinterpret_cast<Type>(Modules()[kCore].functions[index]);
}

// 1: the module is there.
int GetModuleFunctionTable(uint32_t index, Function*** table, uint32_t* size) {
  if (index == 0 || index >= kModules) return 0;
  Module& module = Modules()[index];
  for (size_t i = 1; i < kFunctions[index]; ++i) module.slots[i] = &module.functions[i];
  if (table != nullptr) *table = module.slots.data();
  if (size != nullptr) *size = kFunctions[index];
  return 1;
}

struct CallbackTable {
  size_t size = sizeof(CallbackTable);
  int (*get_module_function_table)(uint32_t, Function***, uint32_t*) = &GetModuleFunctionTable;
};

struct VersionTable {
  size_t size = sizeof(VersionTable);
  uint32_t version = 3;
  uint32_t reserved = 0;
  void (*set_tool_version)(uint32_t) = [](uint32_t) {};
};

const void* GetExportTable(uint32_t id) {
  static const CallbackTable callbacks;
  static const VersionTable version;
  constexpr uint32_t kCallbacks = 1, kVersion = 3;
  if (id == kCallbacks) return &callbacks;
  return id == kVersion ? &version : nullptr;
}

bool LoadTool() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return false;
  Result<DynamicLibrary> library = DynamicLibrary::Load(path);
  if (!library) return false;
  const auto initialize = library->Function<int(const void* (*get_export_table)(uint32_t id))>(
      "InitializeInjectionNvtx2");
  if (!initialize || (*initialize)(&GetExportTable) == 0) return false;
  // Stays loaded: runs may go on while the process ends.
  static_cast<void>(std::move(*library).Release());
  return true;
}

constexpr uint32_t kWhite = 0xffffffff, kBlack = 0xff000000, kYellow = 0xffffff00;

}  // namespace

bool NvtxRanges::HasTool() {
  static const bool has_tool = LoadTool();
  return has_tool;
}

NvtxRanges::NvtxRanges(std::string_view tag)
    : forward_{Format("Batch-{} Forward", tag), kWhite},
      backward_{Format("Batch-{} Backward", tag), kBlack} {}

NvtxRanges::~NvtxRanges() {
  for (Range* const range : {&forward_, &backward_}) {
    Begin(*range);
    End(*range);
  }
}

void NvtxRanges::BeginNode(const Node& node, int64_t index) {
  if (node.doc_string != "Backward pass") {
    Begin(forward_);
  } else if (forward_.has_begun) {
    End(forward_);
    Begin(backward_);
  }
  const auto push = CoreFunctionOf<RangePush>(kRangePush);
  if (push == nullptr) return;
  const std::string name = Format("{}.{}({})", node.op_type, index, node.name);
  EventAttributes attributes;
  attributes.color = kYellow;
  attributes.message = name.c_str();
  push(&attributes);
}

void NvtxRanges::EndNode() {
  if (const auto pop = CoreFunctionOf<RangePop>(kRangePop)) pop();
}

void NvtxRanges::Begin(Range& range) {
  if (range.has_begun) return;
  range.has_begun = true;
  const auto start = CoreFunctionOf<RangeStart>(kRangeStart);
  if (start == nullptr) return;
  EventAttributes attributes;
  attributes.color = range.color;
  attributes.message = range.name.c_str();
  range.id = start(&attributes);
}

void NvtxRanges::End(Range& range) {
  if (range.has_ended) return;
  range.has_ended = true;
  if (const auto end = CoreFunctionOf<RangeEnd>(kRangeEnd)) end(range.id);
}

}  // namespace tenon
