// OrtKernelDef: the nodes that a plugin's kernel is for.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tensor/data_type.h"

// The nodes that a kernel is for, and its use of inputs and outputs.
struct OrtKernelDef {
  std::string op_type;
  std::string domain;  // "" for ai.onnx
  std::string provider;
  int first_version = 0, last_version = 0;
  // By the name of a type parameter, or of an input or output with a fixed type.
  std::map<std::string, tenon::TypeSet, std::less<>> types;
  std::map<size_t, OrtMemType> input_memory, output_memory;
  struct Alias {
    int input, output;
  };
  std::vector<Alias> aliases;          // the output is the input's memory
  std::vector<Alias> mutable_aliases;  // the output may overwrite the input

  // Whether the kernel is for the node. Types that were not inferred are ignored.
  bool IsFor(const tenon::Graph& graph, const tenon::Node& node) const;
};

struct OrtKernelDefBuilder {
  OrtKernelDef def;
};
