#include "ir/model.h"

namespace tenon {

const Function* Model::FindFunction(const Node& node) const {
  for (const Function& function : functions) {
    if (function.name == node.op_type && function.domain == node.domain &&
        function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

}  // namespace tenon
