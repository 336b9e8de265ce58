// Which node failed, and which provider ran it.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

struct FailedNode {
  // Index of the provider in the session; -1 as long as no node has failed.
  int32_t provider = -1;
  std::string provider_name;
  std::string node;
  std::string op_type;
  // The step of the outermost plan that was running. The earlier ones have run.
  uint32_t step = 0;
};

}  // namespace tenon
