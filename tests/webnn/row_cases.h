// A model for each row of the provider, and for each restriction of one.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/graph_builder.h"

namespace tenon::webnn {

struct RowCase {
  std::string op;
  std::string domain;
  std::string name;
  // Builds a model whose node of that operator is claimed, or refused.
  std::function<void(GraphBuilder& b)> build;
  bool is_claimed = true;
  int32_t opset = 21;
};

std::span<const RowCase> RowCases();

}  // namespace tenon::webnn
