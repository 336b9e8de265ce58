#include "ir/batch_normalization.h"

namespace tenon {

bool UsesBatchStatistics(const Node& node) {
  if (node.opset >= kFirstWithTrainingMode) return node.GetInt("training_mode", 0) != 0;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.has_output(i)) return true;
  }
  return false;
}

}  // namespace tenon
