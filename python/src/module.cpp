// The native module tenon._tenon.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon_c_api.h>

#include "api.h"
#include "binding.h"
#include "compile.h"
#include "devices.h"
#include "on_device_training.h"
#include "options.h"
#include "session.h"
#include "sparse.h"
#include "training.h"
#include "type_info.h"
#include "value.h"

namespace tenon::python {
namespace {

std::vector<std::string> AvailableProviders() {
  char** names = nullptr;
  int count = 0;
  Check(Api().GetAvailableProviders(&names, &count));
  const std::vector<std::string> providers(names, names + count);
  Check(Api().ReleaseAvailableProviders(names, count));
  return providers;
}

}  // namespace

NB_MODULE(_tenon, module) {
  if (OrtGetApiBase()->GetApi(ORT_API_VERSION) == nullptr) {
    throw nb::import_error("libtenon is older than this package");
  }
  // If the interpreter ends while a thread runs a session, the thread keeps what it uses. That is
  // not reported.
  nb::set_leak_warnings(false);
  module.attr("__version__") = TenonGetApi(1)->GetVersionString();
  AddExceptions(module);
  BindEnumerations(module);
  BindDevices(module);
  BindOptions(module);
  BindNodeArg(module);
  BindValue(module);
  BindSparse(module);
  BindCompile(module);
  BindSession(module);
  BindBinding(module);
  BindTraining(module);
  BindOnDeviceTraining(module);
  module.def("get_available_providers", &AvailableProviders);
  module.def("get_version_string", [] { return OrtGetApiBase()->GetVersionString(); });
  module.def("get_build_info", [] { return Api().GetBuildInfoString(); });
  module.def("set_default_logger_severity", &SetLogSeverity);
  module.def("_set_global_threads", &SetGlobalThreads);
  module.def("_set_seed", [](int64_t seed) { Check(TrainingApi().SetSeed(seed)); });
}

}  // namespace tenon::python
