#include "api.h"

namespace codegen {

const OrtApi* ort = nullptr;
const OrtEpApi* ep = nullptr;

OrtStatus* ToOrt(const Status& status) {
  return status.ok() ? nullptr : ort->CreateStatus(ORT_EP_FAIL, status.text().c_str());
}

Status FromOrt(OrtStatus* status) {
  if (!status) return Status();
  Status result = Status::Failure(ort->GetErrorMessage(status));
  ort->ReleaseStatus(status);
  return result;
}

void Log(const OrtLogger* logger, OrtLoggingLevel level, const char* source,
         const std::string& text) {
  if (!logger) return;
  OrtStatus* status =
      ort->Logger_LogMessage(logger, level, text.c_str(), ORT_FILE, __LINE__, source);
  if (status) ort->ReleaseStatus(status);
}

}  // namespace codegen
