#include "capi/boundary/client_api.h"

#include <atomic>

namespace tenon::capi {
namespace {

constinit std::atomic<const OrtApiBase*> client_api = nullptr;

}  // namespace

void SetClientApi(const OrtApiBase& base) { client_api.store(&base, std::memory_order_relaxed); }

const OrtApiBase& ClientApi() { return *client_api.load(std::memory_order_relaxed); }

}  // namespace tenon::capi
