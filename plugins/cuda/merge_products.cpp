#include "merge_products.h"

#include <algorithm>
#include <map>
#include <set>

namespace cuda {
namespace {

// Constants side by side: `rows` of each, one after another.
std::vector<std::byte> Interleave(const std::vector<const HostTensor*>& parts, size_t rows) {
  std::vector<std::byte> bytes;
  size_t total = 0;
  for (const HostTensor* part : parts) total += part->bytes.size();
  bytes.reserve(total);
  for (size_t row = 0; row < rows; ++row) {
    for (const HostTensor* part : parts) {
      const size_t size = part->bytes.size() / rows;
      const auto from = part->bytes.begin() + static_cast<ptrdiff_t>(row * size);
      bytes.insert(bytes.end(), from, from + static_cast<ptrdiff_t>(size));
    }
  }
  return bytes;
}

class ProductMerger {
 public:
  explicit ProductMerger(Graph& graph) : graph_(graph) {}

  void Run() {
    std::map<std::pair<int, std::string>, std::vector<size_t>> by_input;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (CanMerge(graph_.nodes[i])) {
        by_input[{graph_.nodes[i].inputs[0], KindOf(graph_.nodes[i])}].push_back(i);
      }
    }
    for (const auto& [key, products] : by_input) {
      if (products.size() > 1) Merge(products);
    }
    Rebuild();
  }

 private:
  const HostTensor* ConstantOf(const Node& node, size_t input) const {
    if (input >= node.inputs.size() || node.inputs[input] < 0) return nullptr;
    const ValueInfo& value = graph_.value(node.inputs[input]);
    return value.constant && value.consumers == 1 ? &*value.constant : nullptr;
  }

  bool IsOutput(int value) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  }

  static bool IsNBits(const Node& node) { return node.type == "MatMulNBits"; }

  bool CanMerge(const Node& node) const {
    const HostTensor* b = ConstantOf(node, 1);
    if (!b || node.outputs.size() != 1) return false;
    if (node.type == "MatMul" && node.domain.empty()) {
      const auto& a = graph_.value(node.inputs[0]).shape;
      return b->shape.size() == 2 && a && a->size() >= 2;
    }
    if (!IsNBits(node) || node.domain != "com.microsoft" || !ConstantOf(node, 2)) return false;
    for (size_t input = 3; input < node.inputs.size(); ++input) {
      if (node.inputs[input] >= 0 && (input != 3 || !ConstantOf(node, 3))) return false;
    }
    return true;
  }

  // Products that can be one are of one kind.
  std::string KindOf(const Node& node) const {
    const HostTensor& b = *ConstantOf(node, 1);
    if (!IsNBits(node)) return fmt::format("{} {}", static_cast<int>(b.type), b.shape[0]);
    const bool has_zeros = node.inputs.size() > 3 && node.inputs[3] >= 0;
    return fmt::format("nbits {} {} {} {}", node.Int("K", 0), node.Int("block_size", 0),
                       node.Int("bits", 4),
                       has_zeros ? static_cast<int>(graph_.value(node.inputs[3]).type) : -1);
  }

  // The addition of a constant row that alone reads the product; null if there is none.
  const Node* BiasOf(const Node& product) const {
    const int value = product.outputs[0];
    if (graph_.value(value).consumers != 1 || IsOutput(value)) return nullptr;
    for (const Node& node : graph_.nodes) {
      if (node.type != "Add" || !node.domain.empty()) continue;
      for (size_t side = 0; side < 2; ++side) {
        if (node.inputs[side] != value) continue;
        const HostTensor* row = ConstantOf(node, 1 - side);
        const bool is_row = row && row->shape.size() == 1 && row->shape[0] == ColumnsOf(product);
        return is_row ? &node : nullptr;
      }
    }
    return nullptr;
  }

  int64_t ColumnsOf(const Node& product) const {
    return IsNBits(product) ? product.Int("N", 0) : ConstantOf(product, 1)->shape[1];
  }

  int AddConstant(HostTensor tensor, const std::string& name) {
    ValueInfo value;
    value.name = name;
    value.type = tensor.type;
    value.shape = tensor.shape;
    value.is_constant = true;
    value.constant = std::move(tensor);
    value.consumers = 1;
    graph_.values.push_back(std::move(value));
    return static_cast<int>(graph_.values.size()) - 1;
  }

  int AddValue(DataType type, const std::string& name) {
    ValueInfo value;
    value.name = name;
    value.type = type;
    value.consumers = 1;
    graph_.values.push_back(std::move(value));
    return static_cast<int>(graph_.values.size()) - 1;
  }

  // A constant made of others, which nothing reads any more, along an axis.
  int Join(const std::vector<int>& values, size_t axis, const std::string& name) {
    std::vector<const HostTensor*> parts;
    for (const int value : values) parts.push_back(&*graph_.value(value).constant);
    HostTensor joined{parts[0]->type, parts[0]->shape, {}};
    size_t rows = 1;
    for (size_t i = 0; i < axis; ++i) rows *= static_cast<size_t>(joined.shape[i]);
    joined.bytes = Interleave(parts, rows);
    joined.shape[axis] = 0;
    for (const HostTensor* part : parts) joined.shape[axis] += part->shape[axis];
    for (const int value : values) graph_.values[static_cast<size_t>(value)].constant.reset();
    return AddConstant(std::move(joined), name);
  }

  // The constants at one input of all products, by columns of the product.
  int JoinInputs(const std::vector<size_t>& products, size_t input) {
    const Node& first = graph_.nodes[products[0]];
    std::vector<int> values;
    for (const size_t number : products) values.push_back(graph_.nodes[number].inputs[input]);
    return Join(values, IsNBits(first) ? 0 : 1, fmt::format("{} joined {}", first.name, input));
  }

  int JoinBiases(const std::vector<const Node*>& biases) {
    std::vector<int> values;
    for (const Node* add : biases) values.push_back(add->inputs[ConstantOf(*add, 0) ? 0 : 1]);
    return Join(values, 0, biases[0]->name + " joined");
  }

  void Merge(const std::vector<size_t>& products) {
    std::vector<const Node*> biases;
    std::vector<int64_t> columns;
    std::vector<int> outputs;
    for (const size_t number : products) {
      const Node& product = graph_.nodes[number];
      columns.push_back(ColumnsOf(product));
      if (const Node* bias = BiasOf(product)) biases.push_back(bias);
    }
    const bool has_biases = biases.size() == products.size();
    for (size_t i = 0; i < products.size(); ++i) {
      outputs.push_back((has_biases ? *biases[i] : graph_.nodes[products[i]]).outputs[0]);
    }
    Node product = graph_.nodes[products[0]];
    const DataType type = graph_.value(product.outputs[0]).type;
    std::vector<Node> made;
    for (size_t input = 1; input < graph_.nodes[products[0]].inputs.size(); ++input) {
      if (product.inputs[input] >= 0) product.inputs[input] = JoinInputs(products, input);
    }
    int64_t sum = 0;
    for (const int64_t count : columns) sum += count;
    if (IsNBits(product)) product.attributes["N"] = sum;
    product.outputs = {AddValue(type, product.name + " product")};
    int last = product.outputs[0];
    made.push_back(std::move(product));
    if (has_biases) {
      Node add = *biases[0];
      add.inputs = {last, JoinBiases(biases)};
      last = AddValue(type, add.name + " sum");
      add.outputs = {last};
      made.push_back(std::move(add));
    }
    Node split;
    split.name = made[0].name + " parts";
    split.type = "Split";
    split.since = 11;
    split.inputs = {last};
    split.outputs = outputs;
    split.attributes = {{"axis", int64_t{-1}}, {"split", columns}};
    made.push_back(std::move(split));
    graph_.values[static_cast<size_t>(graph_.nodes[products[0]].inputs[0])].consumers -=
        static_cast<int>(products.size()) - 1;
    for (size_t i = 0; i < products.size(); ++i) {
      removed_.insert(products[i]);
      if (has_biases) removed_.insert(static_cast<size_t>(biases[i] - graph_.nodes.data()));
    }
    made_[products[0]] = std::move(made);
  }

  // The new nodes stand where the first product stood: all that they read is there.
  void Rebuild() {
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto it = made_.find(i); it != made_.end()) {
        for (Node& node : it->second) nodes.push_back(std::move(node));
      }
      if (!removed_.contains(i)) nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  std::set<size_t> removed_;
  std::map<size_t, std::vector<Node>> made_;  // by the place of the first product
};

}  // namespace

void MergeProducts(Graph& graph) { ProductMerger(graph).Run(); }

}  // namespace cuda
