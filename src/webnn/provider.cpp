#include "webnn/provider.h"

#include <map>
#include <set>
#include <utility>

#include "runtime/kernel_info.h"
#include "webnn/claims.h"
#include "webnn/partition.h"

namespace tenon::webnn {
namespace {

constexpr std::string_view kLimits = "limits";
constexpr std::string_view kExcluded = "excluded_partitions";

class Provider final : public ExecutionProvider {
 public:
  Provider(StringMap options, Limits limits)
      : options_(std::move(options)), context_(std::make_shared<Context>(std::move(limits))) {
    const auto excluded = options_.find(kExcluded);
    std::string_view rest = excluded == options_.end() ? "" : std::string_view(excluded->second);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (end > 0) excluded_.emplace(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  const std::string& name() const override { return name_; }
  StringMap options() const override { return options_; }
  void SetLogger(const Logger& logger) override { logger_ = &logger; }

  // Only of the model's own graph, which is claimed first: a run cannot stop inside a node.
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    if (model_ == nullptr) model_ = &graph;
    if (model_ != &graph) return std::vector<Claim>();
    TENON_ASSIGN_OR_RETURN(Claims found, FindClaims(graph, *context_, excluded_, logger_));
    std::vector<Claim> claims;
    first_nodes_.clear();
    for (Group& group : found.groups) {
      // The name outlives the nodes.
      for (const NodeId id : group.nodes) {
        for (const ValueId output : graph.node(id).outputs) {
          if (output == ValueId::kNone) continue;
          first_nodes_.emplace(graph.value(output).name, group.first_node);
        }
      }
      claims.push_back({.nodes = std::move(group.nodes), .fuse = true, .drop_constants = true});
    }
    derived_ = std::move(found.derived);
    return claims;
  }

  Result<bool> PrefersChannelsLast() override { return context_->limits.prefers_channels_last(); }
  Result<bool> WantsChannelsLast(const Node& node) override {
    const Row* const row = FindRow(node);
    return row != nullptr && row->takes_channels_last;
  }

  Status Compile(const Graph&, std::vector<FusedNode> nodes) override {
    for (FusedNode& node : nodes) {
      std::vector<bool> parameters;
      for (const ValueId id : node.body->inputs) {
        parameters.push_back(derived_.contains(node.body->value(id).name));
      }
      std::string first = first_nodes_[node.body->outputs().front().name];
      auto partition = std::make_shared<Partition>(context_, std::move(node.body),
                                                   std::move(parameters), std::move(first));
      if (partition->is_static()) TENON_RETURN_IF_ERROR(partition->BindStatic());
      partitions_.emplace(node.id, std::move(partition));
    }
    return OkStatus();
  }

  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    const auto partition = partitions_.find(info.node().id);
    if (partition == partitions_.end()) return Fail("no partition of {}", name_);
    return std::make_unique<PartitionKernel>(partition->second);
  }

 private:
  const std::string name_{kProviderName};
  const StringMap options_;
  const std::shared_ptr<Context> context_;
  std::set<std::string, std::less<>> excluded_;
  const Logger* logger_ = nullptr;
  const Graph* model_ = nullptr;
  // Of the last claims: first nodes of groups by the values that the groups make.
  std::map<std::string, std::string> first_nodes_;
  std::set<std::string, std::less<>> derived_;
  std::map<NodeId, std::shared_ptr<Partition>> partitions_;
};

}  // namespace

Result<std::unique_ptr<ExecutionProvider>> MakeProvider(const StringMap& options) {
  for (const auto& [key, value] : options) {
    if (key == kLimits || key == kExcluded) continue;
    return InvalidArgument("{} has no option '{}'{}", kProviderName, key,
                           DidYouMean(key, {std::string(kLimits), std::string(kExcluded)}));
  }
  const auto text = options.find(kLimits);
  if (text == options.end()) {
    return InvalidArgument("{} needs option '{}': the JSON text of opSupportLimits()",
                           kProviderName, kLimits);
  }
  TENON_ASSIGN_OR_RETURN(Limits limits, Limits::Parse(text->second));
  return std::make_unique<Provider>(options, std::move(limits));
}

}  // namespace tenon::webnn
