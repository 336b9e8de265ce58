#include "ops/cpu_provider.h"

#include <algorithm>

#include "ir/graph.h"
#include "ir/pass_runner.h"
#include "kernels/dispatch.h"
#include "ops/conv/channels_last.h"
#include "ops/conv/nchwc_layout.h"
#include "ops/conv/nhwc_layout.h"
#include "ops/conv/weights_scale.h"
#include "ops/elementwise/fuse_elements.h"
#include "ops/framework/composites.h"
#include "ops/framework/registry.h"
#include "ops/framework/widen_narrow.h"
#include "ops/fusion/fusion.h"
#include "ops/fusion/quantization_report.h"
#include "ops/quantized/fold_dequantized.h"
#include "ops/quantized/fuse_tables.h"
#include "runtime/config.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

// What weights may grow by that are stored quantized and read as floats.
constexpr size_t kDequantizedBytes = size_t{1} << 30;

bool IsHalf(DataType type) { return type == DataType::kFloat16 || type == DataType::kBfloat16; }

// Whether the kernel of `row`, which was found by one input's type, supports the other types too.
bool TakesOtherInputs(const OpRow& row, const Graph& graph, const Node& node) {
  if (!row.options.has_wide_floats && !(row.options.types == kFloat32Only)) return true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.has_input(i) || row.options.TakesNarrowInput(i)) continue;
    const ValueType& type = graph.value(node.inputs[i]).type;
    if (row.options.TakesHalfConstant(i) && graph.StoredConstantOf(node.inputs[i]) &&
        type.element_type == DataType::kFloat16) {
      continue;
    }
    if (type.is_tensor() && IsHalf(type.element_type)) return false;
  }
  return true;
}

// A kernel that was chosen when the type of the deciding input was unknown.
class KernelOfUnknownType final : public Kernel {
 public:
  KernelOfUnknownType(const OpRow& row, std::unique_ptr<Kernel> kernel)
      : row_(row), kernel_(std::move(kernel)) {}

  KernelTraits traits() const override { return kernel_->traits(); }
  Residence InputResidence(size_t i) const override { return kernel_->InputResidence(i); }
  Residence OutputResidence(size_t i) const override { return kernel_->OutputResidence(i); }
  Status InferShapes(ShapeContext& context) const override { return kernel_->InferShapes(context); }
  Status Run(KernelContext& context) const override {
    const size_t i = row_.options.typed_input;
    const Value& input = context.InputValue(i);
    if (input.is_tensor() && !row_.options.types.Contains(input.tensor().type())) {
      return NotImplemented("input {}: {} elements, which could not be known before the run", i,
                            DataTypeName(input.tensor().type()));
    }
    return kernel_->Run(context);
  }

 private:
  const OpRow& row_;
  const std::unique_ptr<Kernel> kernel_;
};

bool IsTypeKnown(const OpRow& row, const Graph& graph, const Node& node) {
  const size_t i = row.options.typed_input;
  return !node.has_input(i) ||
         graph.value(node.inputs[i]).type.element_type != DataType::kUndefined;
}

// How many nodes `change` adds to `graph`, without its subgraphs.
size_t NodesMade(const Graph& graph, FunctionRef<void()> change) {
  const size_t before = graph.node_capacity();
  change();
  return graph.node_capacity() - before;
}

class CpuProvider final : public ExecutionProvider {
 public:
  const std::string& name() const override { return name_; }

  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    const std::unordered_set<NodeId> wide = NodesBetterWide(graph);
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* node = graph.FindNode(static_cast<NodeId>(i));
      if (!node || node->provider >= 0) continue;
      if (wide.count(node->id) > 0 || IsBetterWide(graph, *node)) continue;
      const OpRow* row = FindOpRow(graph, *node);
      if (row && TakesOtherInputs(*row, graph, *node)) claims.push_back({{node->id}});
    }
    return claims;
  }

  bool CanAdapt(const Graph& graph, const Node& node) const override {
    return CanWiden(graph, node);
  }

  Result<bool> AdaptUnclaimed(Graph& graph, int32_t index) override {
    // Widening needs the types of all values, which lowering does not infer.
    return LowerChannelsLast(graph) + ExpandComposites(graph) > 0 || WidenNarrow(graph, index) > 0;
  }

  void AdjustConfig(StringMap& config) override {
    use_integers_ = !ConfigFlag(config, "session.disable_quant_qdq", false);
    reports_quantization_ = ConfigFlag(config, "tenon.quantization_report", false);
  }
  void SetLogger(const Logger& logger) override { logger_ = &logger; }

  Status Rewrite(Graph& graph, int32_t index, PassRunner& passes) override {
    const auto run = [&](std::string_view name, FunctionRef<size_t()> pass) -> Status {
      TENON_RETURN_IF_ERROR(passes.Run(name, graph, [&] { return pass(); }));
      return OkStatus();
    };
    const size_t quantizers = reports_quantization_ ? CountQuantizers(graph) : 0;
    if (use_integers_) {
      TENON_RETURN_IF_ERROR(
          run("QDQSelectorActionTransformer", [&] { return FuseQuantizedNodes(graph, index); }));
      TENON_RETURN_IF_ERROR(run("TableFusion", [&] { return FuseTables(graph, index); }));
    }
    if (reports_quantization_) ReportQuantization(graph, quantizers);
    TENON_RETURN_IF_ERROR(run("DequantizedFolding", [&] {
      size_t budget = kDequantizedBytes;
      return FoldDequantized(graph, index, budget);
    }));
    TENON_RETURN_IF_ERROR(FuseNodes(graph, index, passes));
    TENON_RETURN_IF_ERROR(run("NchwcTransformer", [&] {
      return NodesMade(graph, [&] { UseNchwcLayout(graph, index); });
    }));
    TENON_RETURN_IF_ERROR(run("NchwcEpilogueFusion", [&] { return FuseNchwcNodes(graph, index); }));
    TENON_RETURN_IF_ERROR(run(
        "NhwcTransformer", [&] { return NodesMade(graph, [&] { UseNhwcLayout(graph, index); }); }));
    TENON_RETURN_IF_ERROR(
        passes.RunRequired("weight_scale_folding", graph, [&] { return FoldWeightScales(graph); }));
    return run("ElementwiseFusion", [&] { return FuseElements(graph, index); });
  }

  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    const OpRow* row = FindOpRow(info.graph(), info.node());
    if (row == nullptr) return NotImplemented("the CPU provider has no kernel for it");
    std::unique_ptr<Kernel> kernel;
    TENON_RETURN_IF_ERROR(row->make(info, row->options.traits, kernel));
    if (IsTypeKnown(*row, info.graph(), info.node())) return kernel;
    return std::make_unique<KernelOfUnknownType>(*row, std::move(kernel));
  }

 private:
  void ReportQuantization(const Graph& graph, size_t before) const {
    const std::vector<std::string> lines = DescribeQuantizers(graph);
    if (logger_ == nullptr) return;
    TENON_LOG(*logger_, kInfo, "quantization: {} of {} nodes stay", lines.size(), before);
    for (const std::string& line : lines) TENON_LOG(*logger_, kInfo, "quantization: {}", line);
  }

  const std::string name_ = "CPUExecutionProvider";
  bool use_integers_ = true;
  bool reports_quantization_ = false;
  const Logger* logger_ = nullptr;
};

}  // namespace

std::unique_ptr<ExecutionProvider> MakeCpuProvider() {
  (void)kernels::SettleTarget(std::nullopt);
  return std::make_unique<CpuProvider>();
}

Status ChooseInstructionSet(const StringMap& config) {
  constexpr std::string_view kKey = "tenon.instruction_set";
  const auto entry = config.find(kKey);
  if (entry == config.end()) return OkStatus();
  std::string names;
  for (const kernels::Target target : kernels::SupportedTargets()) {
    const char* const name = kernels::TargetName(target);
    if (entry->second == name) {
      if (kernels::SettleTarget(target)) return OkStatus();
      return InvalidArgument(
          "{}: sessions of this process use {} since the first of them, got '{}'", kKey,
          kernels::TargetName(kernels::ActiveTarget()), name);
    }
    names += Format("{}'{}'", names.empty() ? "" : ", ", name);
  }
  return InvalidArgument("{}: expected one that this machine has, {}, got '{}'", kKey, names,
                         entry->second);
}

}  // namespace tenon
