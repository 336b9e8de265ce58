#include "ir/model.h"

namespace tenon {

Model Model::CopyWithoutGraphs() const {
  Model copy;
  copy.ir_version = ir_version;
  copy.opsets = opsets;
  copy.producer_name = producer_name;
  copy.producer_version = producer_version;
  copy.domain = domain;
  copy.model_version = model_version;
  copy.doc_string = doc_string;
  copy.metadata = metadata;
  copy.path = path;
  copy.external_places = external_places;
  copy.device_configurations = device_configurations;
  return copy;
}

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
