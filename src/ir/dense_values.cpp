#include "ir/dense_values.h"

#include <cstring>

#include "ir/constant_node.h"

namespace tenon {
namespace {

// The index of value `i` in the order of the dense elements.
int64_t PlaceOf(const SparseTensor& sparse, int64_t i) {
  const int64_t* indices = sparse.indices.data<int64_t>();
  if (sparse.indices.rank() == 1) return indices[i];
  const Shape& dense = sparse.dense_shape;
  const auto rank = static_cast<int64_t>(dense.rank());
  int64_t place = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    place = place * dense[static_cast<size_t>(axis)] + indices[i * rank + axis];
  }
  return place;
}

// Elements of less than a byte fill a byte from its lowest bits on.
void CopyBits(const uint8_t* from, int64_t i, uint8_t* into, int64_t place, size_t bits) {
  const auto per_byte = static_cast<int64_t>(8 / bits);
  const unsigned mask = (1U << bits) - 1;
  const unsigned element = from[i / per_byte] >> (static_cast<size_t>(i % per_byte) * bits) & mask;
  const size_t shift = static_cast<size_t>(place % per_byte) * bits;
  uint8_t& byte = into[place / per_byte];
  byte = static_cast<uint8_t>((byte & ~(mask << shift)) | element << shift);
}

Status MakeConstantNodeDense(Node& node) {
  for (Attribute& attribute : node.attributes) {
    const auto* sparse = attribute.get<std::shared_ptr<SparseTensor>>();
    if (!sparse) continue;
    TENON_ASSIGN_OR_RETURN(Tensor dense, DenseOf(**sparse));
    attribute = Attribute("value", std::move(dense));
  }
  return OkStatus();
}

// Whether the value leaves the graph as a sparse tensor.
bool IsSparseOutput(const ValueInfo& info) {
  return info.output_uses > 0 && info.type.kind == Value::Kind::kSparseTensor;
}

// A Constant node's output is a dense tensor, so a sparse output becomes an initializer.
bool BecomesSparseInitializer(Graph& graph, const Node& node) {
  if (node.attributes.size() != 1 || !IsSparseOutput(graph.value(node.outputs[0]))) return false;
  const auto* sparse = node.attributes[0].get<std::shared_ptr<SparseTensor>>();
  if (!sparse) return false;
  const ValueId output = node.outputs[0];
  Value value(*sparse);
  graph.RemoveNode(node.id);
  graph.SetInitializer(output, std::move(value));
  return true;
}

}  // namespace

Result<Tensor> WidenIndices(Tensor indices) {
  constexpr TypeSet kNarrow = {DataType::kInt8, DataType::kInt16, DataType::kInt32};
  if (!kNarrow.Contains(indices.type())) return indices;
  TENON_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(DataType::kInt64, indices.shape()));
  const size_t bits = DataTypeBits(indices.type());
  const auto* from = static_cast<const char*>(indices.raw());
  for (int64_t i = 0; i < wide.size(); ++i, from += bits / 8) {
    uint64_t index = 0;
    std::memcpy(&index, from, bits / 8);
    wide.data<int64_t>()[i] = static_cast<int64_t>(index << (64 - bits)) >> (64 - bits);
  }
  return wide;
}

Result<Tensor> DenseOf(const SparseTensor& sparse) {
  const DataType type = sparse.values.type();
  TENON_ASSIGN_OR_RETURN(Tensor dense, Tensor::Allocate(type, sparse.dense_shape));
  const int64_t count = sparse.values.size();
  if (type == DataType::kString) {
    const std::string* from = sparse.values.data<std::string>();
    for (int64_t i = 0; i < count; ++i) dense.data<std::string>()[PlaceOf(sparse, i)] = from[i];
    return dense;
  }
  const auto* from = static_cast<const uint8_t*>(sparse.values.raw());
  auto* into = static_cast<uint8_t*>(dense.raw());
  if (dense.bytes() > 0) std::memset(into, 0, dense.bytes());
  const size_t bits = DataTypeBits(type);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = PlaceOf(sparse, i);
    if (bits < 8) {
      CopyBits(from, i, into, place, bits);
    } else {
      const size_t size = bits / 8;
      std::memcpy(into + static_cast<size_t>(place) * size, from + static_cast<size_t>(i) * size,
                  size);
    }
  }
  return dense;
}

Status MakeConstantsDense(Graph& graph) {
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ValueInfo& info = graph.value(id);
    if (info.initializer.kind() != Value::Kind::kSparseTensor || IsSparseOutput(info)) continue;
    Result<Tensor> dense = DenseOf(info.initializer.sparse());
    if (!dense) {
      return std::move(dense.error()).WithContext(Format("sparse initializer '{}'", info.name));
    }
    graph.SetInitializer(id, std::move(*dense));
  }
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    if (IsConstantNode(*node) && node->has_output(0)) {
      if (BecomesSparseInitializer(graph, *node)) continue;
      Status status = MakeConstantNodeDense(*node);
      if (!status.ok()) return std::move(status).WithContext(Format("node '{}'", node->name));
    }
    for (Graph* subgraph : node->Subgraphs()) TENON_RETURN_IF_ERROR(MakeConstantsDense(*subgraph));
  }
  return OkStatus();
}

}  // namespace tenon
