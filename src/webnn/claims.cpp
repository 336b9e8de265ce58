#include "webnn/claims.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::webnn {
namespace {

// Example sizes for sizes that are known only in a run; the first that the model accepts is used.
// Claims must not depend on them: they are large enough for windows, and equal for all axes, so
// that broadcast operands fit.
constexpr int64_t kExampleSizes[] = {64, 256, 1};

// The treatment of a node.
enum class Place : uint8_t {
  kOther,    // another provider's
  kClaimed,  // written into a program
  kDerived,  // computed when a program is written
};

class ClaimFinder {
 public:
  ClaimFinder(const Graph& graph, Context& context, const Logger* logger)
      : graph_(graph),
        context_(context),
        logger_(logger),
        places_(graph.node_capacity(), Place::kOther),
        levels_(graph.node_capacity(), -1) {}

  Result<Claims> Find(const std::set<std::string, std::less<>>& excluded) {
    TENON_ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    MakeExample();
    for (const NodeId id : order_) At(places_, id) = PlaceOf(graph_.node(id));
    KeepDerivedOfClaimed();
    FindLevels();
    // Each round gives up at least one node.
    while (GiveBackDerived() || GiveBackMoves()) {
      KeepDerivedOfClaimed();
      FindLevels();
    }
    return Collect(excluded);
  }

 private:
  template <class T>
  static T& At(std::vector<T>& list, NodeId id) {
    return list[Index(id)];
  }
  bool IsTaken(NodeId id) const { return places_[Index(id)] != Place::kOther; }
  const Graph& example() const { return example_ == nullptr ? graph_ : *example_; }

  // A graph without free sizes is its own example.
  void MakeExample() {
    bool is_open = false;
    for (const ValueId id : graph_.inputs) {
      const ValueType& type = graph_.value(id).type;
      if (type.is_tensor() && type.shape) is_open |= !type.shape->ToShape().has_value();
    }
    if (!is_open) return;
    Status status;
    for (const int64_t size : kExampleSizes) {
      example_ = WithSizes(size);
      status = context_.folder.Fold(*example_);
      if (status.ok()) return;
    }
    if (logger_ != nullptr) {
      TENON_VLOG(*logger_, 1, "WebNN: sizes that the model leaves open: {}", status.message());
    }
  }

  std::unique_ptr<Graph> WithSizes(int64_t size) const {
    std::unique_ptr<Graph> graph = graph_.Clone();
    for (size_t i = 0; i < graph->value_count(); ++i) {
      ValueInfo& info = graph->value(static_cast<ValueId>(i));
      if (!info.type.shape || info.type.shape->ToShape()) continue;
      if (info.producer != NodeId::kNone) {
        info.type.shape.reset();
        continue;
      }
      for (size_t axis = 0; axis < info.type.shape->rank(); ++axis) {
        Dim& dim = (*info.type.shape)[axis];
        if (!dim.is_number()) dim = size;
      }
    }
    return graph;
  }

  // Whether the example has a constant for each output of the node.
  bool IsDerived(const Node& node) const {
    if (example_ == nullptr || !node.Subgraphs().empty()) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id == ValueId::kNone || graph_.IsUnused(id) || example_->ConstantOf(id) != nullptr;
    });
  }

  Place PlaceOf(const Node& node) {
    if (node.provider >= 0) return Place::kOther;
    if (IsDerived(node)) return Place::kDerived;
    const Node* const twin = example().FindNode(node.id);
    const Status status = twin == nullptr ? Fail("it is not known") : TryToWrite(*twin);
    if (status.ok()) return Place::kClaimed;
    if (logger_ != nullptr) {
      TENON_VLOG(*logger_, 1, "WebNN does not run {}: {}", node.Describe(), status.message());
    }
    return Place::kOther;
  }

  Status TryToWrite(const Node& node) {
    const Graph& graph = example();
    ProgramBuilder builder(context_.limits);
    Emission emission(graph, builder, context_.folder);
    for (const ValueId id : node.inputs) {
      if (id == ValueId::kNone || graph.ConstantOf(id) != nullptr) continue;
      const ValueInfo& info = graph.value(id);
      const std::optional<Shape> shape =
          info.type.shape ? info.type.shape->ToShape() : std::nullopt;
      if (!info.type.is_tensor() || !shape) {
        return NotImplemented("the shape of '{}' is known only after it was computed", info.name);
      }
      TENON_ASSIGN_OR_RETURN(const Operand operand,
                             builder.Input(info.name, info.type.element_type, *shape));
      emission.Set(id, operand);
    }
    TENON_RETURN_IF_ERROR(emission.Emit(node));
    for (const ValueId id : node.outputs) {
      if (id == ValueId::kNone) continue;
      const ValueInfo& info = graph.value(id);
      if (!info.type.shape || !info.type.shape->ToShape()) {
        return NotImplemented("the shape of '{}' is known only after it was computed", info.name);
      }
      TENON_ASSIGN_OR_RETURN(const Operand operand, emission.OperandOf(id));
      TENON_RETURN_IF_ERROR(builder.Output(info.name, info.type.element_type, operand));
    }
    return OkStatus();
  }

  // Whether all outputs of the node are read only by nodes for which `is_reader` is true.
  template <class IsReader>
  bool OnlyReadBy(const Node& node, IsReader is_reader) const {
    bool has_reader = false;
    for (const ValueId id : node.outputs) {
      if (id == ValueId::kNone) continue;
      const ValueInfo& info = graph_.value(id);
      if (info.output_uses > 0) return false;
      for (const NodeId reader : info.consumers) {
        if (!is_reader(reader)) return false;
        has_reader = true;
      }
    }
    return has_reader;
  }

  void KeepDerivedOfClaimed() {
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      if (places_[Index(*id)] != Place::kDerived) continue;
      if (!OnlyReadBy(graph_.node(*id), [&](NodeId reader) { return IsTaken(reader); })) {
        At(places_, *id) = Place::kOther;
      }
    }
  }

  // How often a path to a node changes from other nodes to claimed ones. Claimed nodes of one level
  // can be one group: no path between them has another node.
  void FindLevels() {
    std::vector<int32_t> least(graph_.node_capacity(), -1);
    for (const NodeId id : order_) {
      const bool is_taken = IsTaken(id);
      int32_t& level = At(levels_, id);
      level = std::max(least[Index(id)], is_taken ? 0 : -1);
      for (const ValueId output : graph_.node(id).outputs) {
        if (output == ValueId::kNone) continue;
        for (const NodeId reader : graph_.value(output).consumers) {
          const int32_t step = !is_taken && IsTaken(reader) ? 1 : 0;
          At(least, reader) = std::max(least[Index(reader)], level + step);
        }
      }
    }
  }

  // Values that follow from shapes are computed in the group that reads them, so that must have all
  // readers.
  bool GiveBackDerived() {
    bool is_changed = false;
    for (const NodeId id : order_) {
      if (places_[Index(id)] != Place::kDerived) continue;
      const auto is_near = [&](NodeId reader) {
        return IsTaken(reader) && levels_[Index(reader)] == levels_[Index(id)];
      };
      if (OnlyReadBy(graph_.node(id), is_near)) continue;
      At(places_, id) = Place::kOther;
      is_changed = true;
    }
    return is_changed;
  }

  // Connected nodes that only move elements, between nodes of others: transferring the data costs
  // more than moving it.
  bool GiveBackMoves() {
    std::vector<bool> is_seen(graph_.node_capacity(), false);
    bool is_changed = false;
    for (const NodeId first : order_) {
      if (!IsTaken(first) || is_seen[Index(first)]) continue;
      bool only_moves = true, has_other = false;
      std::vector<NodeId> component = {first};
      is_seen[Index(first)] = true;
      for (size_t next = 0; next < component.size(); ++next) {
        const NodeId id = component[next];
        const Row* const row = FindRow(graph_.node(id));
        only_moves &= places_[Index(id)] == Place::kDerived || (row != nullptr && row->is_move);
        ForEachNeighbour(graph_.node(id), [&](NodeId neighbour) {
          has_other |= !IsTaken(neighbour);
          if (!IsTaken(neighbour) || is_seen[Index(neighbour)]) return;
          is_seen[Index(neighbour)] = true;
          component.push_back(neighbour);
        });
      }
      if (!only_moves || !has_other) continue;
      for (const NodeId id : component) At(places_, id) = Place::kOther;
      is_changed = true;
    }
    return is_changed;
  }

  template <class Visit>
  void ForEachNeighbour(const Node& node, Visit visit) const {
    for (const ValueId input : node.inputs) {
      if (input == ValueId::kNone) continue;
      const NodeId producer = graph_.value(input).producer;
      if (producer != NodeId::kNone) visit(producer);
    }
    for (const ValueId output : node.outputs) {
      if (output == ValueId::kNone) continue;
      for (const NodeId reader : graph_.value(output).consumers) visit(reader);
    }
  }

  // A node's own name, or that of its first output, which is unique.
  std::string NameOf(const Node& node) const {
    if (!node.name.empty() && names_.at(node.name) == 1) return node.name;
    for (const ValueId output : node.outputs) {
      if (output != ValueId::kNone) return graph_.value(output).name;
    }
    return node.name;
  }

  Claims Collect(const std::set<std::string, std::less<>>& excluded) {
    for (const NodeId id : order_) ++names_[graph_.node(id).name];
    Claims claims;
    std::unordered_map<int32_t, size_t> group_of;  // by level
    for (const NodeId id : order_) {
      if (!IsTaken(id)) continue;
      const auto [entry, is_new] = group_of.try_emplace(levels_[Index(id)], claims.groups.size());
      if (is_new) claims.groups.push_back({{}, NameOf(graph_.node(id))});
      claims.groups[entry->second].nodes.push_back(id);
    }
    std::erase_if(claims.groups,
                  [&](const Group& group) { return excluded.contains(group.first_node); });
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (!IsDerived(node)) continue;
      for (const ValueId output : node.outputs) {
        if (output != ValueId::kNone) claims.derived.insert(graph_.value(output).name);
      }
    }
    return claims;
  }

  const Graph& graph_;
  Context& context_;
  const Logger* const logger_;
  std::vector<NodeId> order_;
  std::unique_ptr<Graph> example_;
  std::vector<Place> places_;    // by node
  std::vector<int32_t> levels_;  // by node
  std::unordered_map<std::string, int> names_;
};

}  // namespace

Result<Claims> FindClaims(const Graph& graph, Context& context,
                          const std::set<std::string, std::less<>>& excluded,
                          const Logger* logger) {
  return ClaimFinder(graph, context, logger).Find(excluded);
}

}  // namespace tenon::webnn
