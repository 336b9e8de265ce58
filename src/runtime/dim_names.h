// What names of dimensions say about sizes. ONNX: equal names are equal sizes. Models of the field
// are not as strict, and ONNX Runtime runs them.
#pragma once

#include <string_view>

namespace tenon {

class Graph;

// Whether the name stands for any size: PaddlePaddle's exports call all unknown sizes "?".
inline bool IsPlaceholder(std::string_view name) { return name == "?"; }

// Whether two axes of the graph's inputs have the same name, which is no placeholder.
bool HasEqualDimNames(const Graph& graph);

enum class DimNames { kPlaceholders, kAll };
// Makes the sizes with these names unknown, in subgraphs too.
void ForgetDimNames(Graph& graph, DimNames names);

}  // namespace tenon
