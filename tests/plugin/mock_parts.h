// Shared by the files of the mock plugin.
#pragma once

#include <onnxruntime_c_api.h>
#include <onnxruntime_ep_c_api.h>

#include <functional>
#include <string>

#include "plugin/mock_capture.h"
#include "plugin/mock_control.h"

namespace tenon::test {

constexpr const char* kName = "MockProvider";
constexpr const char* kInternalNhwc = "com.ms.internal.nhwc";

extern MockControl control;
extern const OrtApi* api;
extern const OrtEpApi* ep_api;

// Logs the call of a slot; returns a status if the slot is set to fail.
OrtStatus* Enter(const char* slot);

#define ENTER(slot)                                           \
  do {                                                        \
    if (OrtStatus* const failed = Enter(slot)) return failed; \
  } while (false)
// Whether the test removed this part.
bool Lacks(const char* what);
// Nothing releases the object: it is never freed and does not count.
void Orphan(void* object);
#define MAY_LACK(table, slot) \
  if (Lacks(#table "::" #slot)) table::slot = nullptr
#define MAY_LACK_RELEASE(table)    \
  if (Lacks(#table "::Release")) { \
    table::Release = nullptr;      \
    Orphan(this);                  \
  }
#define CHECK_OK(call)                                   \
  do {                                                   \
    if (OrtStatus* const failed = (call)) return failed; \
  } while (false)

struct Counted {
  Counted() { ++control.live_objects; }
  ~Counted() { --control.live_objects; }
  Counted(const Counted&) = delete;
};

// The settings of a session that tell of compiled models.
struct ContextSettings {
  explicit ContextSettings(const OrtSessionOptions* options);

  bool is_on = false, embeds = false, is_weightless = false;
  std::string path, prefix, source_path;
  const void* source = nullptr;
};

bool IsContextNode(const OrtNode* node);

// An EPContext node for a group, as control.context_nodes says; what was compiled is in it, or in a
// file beside the model.
OrtStatus* MakeContextNode(const ContextSettings& settings, const OrtGraph* group,
                           const OrtNode* fused, OrtNode** out);
// Reads compiled data, which must be the mock's; records its source and that of its weights.
OrtStatus* ReadContextNode(const ContextSettings& settings, const OrtGraph* group,
                           const OrtNode* node);

extern MockRecorder* recorder;  // of the provider whose run started last

// The square of the first input.
OrtStatus* Square(OrtKernelContext* context);
// Claims as control.layout says, and what a group that it claims does.
OrtStatus* ClaimByLayout(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
OrtStatus* WorkOf(const OrtGraph* group, std::function<OrtStatus*(OrtKernelContext*)>& work);
// A kernel of the internal domain's Conv.
OrtStatus* ORT_API_CALL CreateConv(void* state, const OrtKernelInfo* info,
                                   OrtKernelImpl** out) noexcept;
// Operators of the domain mock.ops: Triple, which has a kernel, and Ghost, which must be fused.
OrtStatus* MakeCustomOps(OrtCustomOpDomain** out);
// Kernels of Mul and Conv, and of control flow, which the host runs.
OrtStatus* RegisterKernels(OrtKernelRegistry** out);

}  // namespace tenon::test
