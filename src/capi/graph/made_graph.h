// OrtNode and OrtValueInfo, and the graphs that clients make from them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tenon::capi {
class GraphView;
}  // namespace tenon::capi

struct OrtValueInfo {
  std::string name;
  tenon::ValueType type;
  // Of a value in a viewed graph.
  const tenon::capi::GraphView* view = nullptr;
  tenon::ValueId id = tenon::ValueId::kNone;
  bool is_view_input = false, is_view_output = false;
  // Whether it was added to a graph, which owns it.
  bool is_added = false;
};

struct OrtNode {
  const tenon::Node* node = nullptr;
  // Of a node in a viewed graph; `defaults` are the attributes that it leaves to their defaults.
  const tenon::capi::GraphView* view = nullptr;
  std::vector<tenon::Attribute> defaults;
  // Of a node that a client makes, which has names for its inputs and outputs.
  std::unique_ptr<tenon::Node> made;
  std::vector<std::string> input_names, output_names;
  bool is_added = false;  // to a graph, which owns it
};

namespace tenon::capi {

// A graph that a client makes: lists of what it added.
struct MadeGraph {
  std::vector<std::unique_ptr<OrtValueInfo>> inputs, outputs;
  bool has_inputs = false, has_outputs = false;
  std::vector<std::pair<std::string, std::unique_ptr<Value>>> initializers;  // tensors
  std::vector<std::unique_ptr<OrtNode>> nodes;
};

}  // namespace tenon::capi
