#include <cstdlib>

#include "runtime/node_dump.h"

namespace tenon {
namespace {

// Never freed: runs may go on while the process ends.
struct OfEnvironment {
  OfEnvironment() {
    auto settings =
        NodeDumpSettings::Read([](const char* name) -> const char* { return std::getenv(name); });
    if (!settings) {
      error = std::move(settings.error());
    } else if (*settings) {
      dump = new NodeDump(std::move(**settings));
    }
  }

  Status error;
  NodeDump* dump = nullptr;
};

}  // namespace

Result<NodeDump*> NodeDump::OfProcess() {
  static const OfEnvironment& environment = *new OfEnvironment();
  if (!environment.error.ok()) return Error(Status(environment.error));
  return environment.dump;
}

}  // namespace tenon
