#include "attention_pattern.h"

#include <algorithm>
#include <set>

#include "attention.h"

namespace cuda {
namespace {

class AttentionFuser {
 public:
  explicit AttentionFuser(Graph& graph) : graph_(graph), producers_(graph.values.size(), -1) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const int output : graph.nodes[i].outputs) {
        if (output >= 0) producers_[static_cast<size_t>(output)] = static_cast<int>(i);
      }
    }
  }

  void Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.type == "MatMul" && node.domain.empty()) Fuse(i);
    }
    size_t kept = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (removed_.contains(i)) continue;
      if (kept != i) graph_.nodes[kept] = std::move(graph_.nodes[i]);
      ++kept;
    }
    graph_.nodes.resize(kept);
  }

 private:
  // The parts of one attention, and the nodes that vanish.
  struct Match {
    int q = -1;
    int k = -1;  // transposed
    int v = -1;
    int mask = -1;
    float scale = 1;
    float masked = 0;
    std::vector<size_t> nodes;
  };

  // The node that makes a value which nothing else reads; null if there is none.
  const Node* Take(int value, Match& match) const {
    if (value < 0 || producers_[static_cast<size_t>(value)] < 0) return nullptr;
    const auto number = static_cast<size_t>(producers_[static_cast<size_t>(value)]);
    const bool is_output =
        std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
    const Node& node = graph_.nodes[number];
    if (is_output || graph_.value(value).consumers != 1 || removed_.contains(number) ||
        !node.domain.empty()) {
      return nullptr;
    }
    match.nodes.push_back(number);
    return &node;
  }

  std::optional<float> Scalar(int value) const {
    if (value < 0 || !graph_.value(value).constant) return std::nullopt;
    return graph_.value(value).constant->Float();
  }

  // Looks through products with and quotients by a constant.
  int Unscaled(int value, Match& match) const {
    while (true) {
      Match tried = match;
      const Node* node = Take(value, tried);
      if (!node || (node->type != "Mul" && node->type != "Div")) return value;
      const auto right = Scalar(node->inputs[1]);
      const auto left = node->type == "Mul" ? Scalar(node->inputs[0]) : std::nullopt;
      if (!right && !left) return value;
      const float factor = right ? *right : *left;
      tried.scale *= node->type == "Mul" ? factor : 1 / factor;
      value = node->inputs[right ? 0 : 1];
      match = std::move(tried);
    }
  }

  // q x k', perhaps scaled.
  bool MatchScores(int value, Match& match) const {
    const Node* product = Take(Unscaled(value, match), match);
    if (!product || product->type != "MatMul") return false;
    match.q = Unscaled(product->inputs[0], match);
    match.k = Unscaled(product->inputs[1], match);
    return true;
  }

  bool MatchMasked(int value, Match& match) const {
    Match plain = match;
    if (MatchScores(value, plain)) {
      match = std::move(plain);
      return true;
    }
    const Node* node = Take(value, match);
    if (!node) return false;
    if (node->type == "Where") {
      const auto masked = Scalar(node->inputs[2]);
      if (!masked) return false;
      match.masked = *masked;
      match.mask = node->inputs[0];
      return MatchScores(node->inputs[1], match);
    }
    if (node->type != "Add") return false;
    for (size_t side = 0; side < 2; ++side) {
      Match tried = match;
      if (!MatchScores(node->inputs[side], tried)) continue;
      match = std::move(tried);
      match.mask = node->inputs[1 - side];
      return true;
    }
    return false;
  }

  bool IsLastAxis(const Node& softmax) const {
    const int64_t axis = softmax.Int("axis", softmax.since >= 13 ? -1 : 1);
    const auto& shape = graph_.value(softmax.inputs[0]).shape;
    return axis == -1 || (shape && axis == static_cast<int64_t>(shape->size()) - 1);
  }

  // Whether the kernel has it: types, depth and ranks that are known now.
  bool IsSupported(const Match& match) const {
    const ValueInfo& q = graph_.value(match.q);
    const ValueInfo& v = graph_.value(match.v);
    if (!q.shape || !v.shape || q.shape->size() != v.shape->size()) return false;
    if (q.shape->size() < 3 || q.shape->size() > 4) return false;
    const int64_t depth = q.shape->back();
    if (!CanAttend(q.type, depth) || v.shape->back() != depth) return false;
    if (graph_.value(match.k).type != q.type || v.type != q.type) return false;
    if (match.mask < 0) return true;
    const ValueInfo& mask = graph_.value(match.mask);
    const bool is_known = mask.shape && mask.shape->size() <= q.shape->size();
    return is_known && (mask.type == q.type || mask.type == DataType::kBool);
  }

  void Fuse(size_t number) {
    Node& last = graph_.nodes[number];
    Match match;
    const Node* softmax = Take(last.inputs[0], match);
    if (!softmax || softmax->type != "Softmax" || !IsLastAxis(*softmax)) return;
    if (!MatchMasked(softmax->inputs[0], match)) return;
    match.v = last.inputs[1];
    if (!IsSupported(match)) return;
    removed_.insert(match.nodes.begin(), match.nodes.end());
    last.type = "FusedAttention";
    last.domain = "tenon";
    last.inputs = {match.q, match.k, match.v};
    if (match.mask >= 0) last.inputs.push_back(match.mask);
    last.attributes = {{"scale", match.scale}, {"masked", match.masked}};
  }

  Graph& graph_;
  std::vector<int> producers_;  // by value: the node that makes it
  std::set<size_t> removed_;
};

}  // namespace

void FuseAttention(Graph& graph) { AttentionFuser(graph).Run(); }

}  // namespace cuda
