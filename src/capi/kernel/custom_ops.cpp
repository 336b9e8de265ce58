#include "capi/kernel/custom_ops.h"

#include <algorithm>
#include <utility>

#include "capi/boundary/client_api.h"
#include "capi/boundary/status.h"
#include "capi/kernel/kernel_context.h"
#include "capi/kernel/shape_infer_context.h"
#include "capi/options/session_options.h"
#include "ops/framework/registry.h"
#include "runtime/environment.h"
#include "runtime/provider.h"

namespace tenon::capi {
namespace {

constexpr std::string_view kCpuProvider = "CPUExecutionProvider";

// For each output the input that a client's function maps to it, -1 for none.
std::vector<int> InputsByOutput(size_t (*map)(int**, int**), void (*release)(int*, int*),
                                size_t outputs) {
  std::vector<int> inputs(outputs, -1);
  if (map == nullptr) return inputs;
  int* from = nullptr;
  int* to = nullptr;
  const size_t count = map(&from, &to);
  for (size_t i = 0; i < count; ++i) {
    if (to[i] >= 0 && static_cast<size_t>(to[i]) < outputs) {
      inputs[static_cast<size_t>(to[i])] = from[i];
    }
  }
  if (count > 0 && release != nullptr) release(from, to);
  return inputs;
}

// A kernel of a client's.
class CustomKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(const CustomOp& op, const KernelInfo& info,
                                              const CustomOps& ops) {
    std::unique_ptr<CustomKernel> kernel(new CustomKernel(op));
    const int since =
        info.node().schema != nullptr ? info.node().schema->since : op.start_version();
    kernel->info_.node =
        std::make_shared<const NodeDescription>(info, since, ops.logger(), ops.config());
    for (size_t i = 0; i < info.output_count(); ++i) {
      kernel->output_types_.push_back(info.OutputElementType(i));
      const ValueId id = info.node().outputs[i];
      kernel->is_read_.push_back(id != ValueId::kNone && !info.graph().value(id).consumers.empty());
    }
    const OrtCustomOp& table = op.table();
    kernel->aliases_ =
        InputsByOutput(table.GetAliasMap, table.ReleaseAliasMap, info.output_count());
    kernel->overwritten_ =
        InputsByOutput(table.GetMayInplace, table.ReleaseMayInplace, info.output_count());
    TENON_RETURN_IF_ERROR(kernel->Create());
    return kernel;
  }

  ~CustomKernel() override {
    if (kernel_ != nullptr) op_.table().KernelDestroy(kernel_);
  }

  KernelTraits traits() const override { return {.allocates_outputs = true, .is_stateful = true}; }

  Residence InputResidence(size_t i) const override { return op_.InputResidence(i); }

  // An output that begins with a copy of its input may also use the input's memory.
  int InputToOverwrite(size_t i) const override {
    return aliases_[i] >= 0 ? aliases_[i] : overwritten_[i];
  }

  Status InferShapes(ShapeContext&) const override { return OkStatus(); }

  Status Run(KernelContext& context) const override {
    return TakeOrtStatus(AtBoundary([&]() -> Status {
      OrtKernelContext call = {context, *info_.node, output_types_, aliases_, {}, {}};
      call.outputs.resize(context.output_count());
      if (op_.table().KernelComputeV2 != nullptr) {
        TENON_RETURN_IF_ERROR(TakeOrtStatus(op_.table().KernelComputeV2(kernel_, &call)));
      } else {
        op_.table().KernelCompute(kernel_, &call);
      }
      return FinishOutputs(call);
    }));
  }

 private:
  explicit CustomKernel(const CustomOp& op) : op_(op) {}

  // An output that no node reads may stay away; it is then a tensor without elements.
  Status FinishOutputs(OrtKernelContext& call) const {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i].has_value() || !call.context.HasOutput(i)) continue;
      if (is_read_[i]) return Fail("the kernel did not make output {}, which other nodes read", i);
      const DataType type = output_types_[i];
      TENON_RETURN_IF_ERROR(call.context.AllocateOutput(
          i, type == DataType::kUndefined ? DataType::kFloat : type, Shape({0})));
    }
    return OkStatus();
  }

  Status Create() {
    return TakeOrtStatus(AtBoundary([&]() -> Status {
      const OrtApi* const api = ClientApi().GetApi(ORT_API_VERSION);
      if (op_.table().CreateKernelV2 != nullptr) {
        return TakeOrtStatus(op_.table().CreateKernelV2(op_.client(), api, &info_, &kernel_));
      }
      kernel_ = op_.table().CreateKernel(op_.client(), api, &info_);
      return OkStatus();
    }));
  }

  const CustomOp& op_;
  OrtKernelInfo info_;
  std::vector<DataType> output_types_;
  std::vector<bool> is_read_;               // by output: whether a node reads it
  std::vector<int> aliases_, overwritten_;  // inputs by output, or -1
  void* kernel_ = nullptr;
};

auto TypesOf(const Graph& graph, const Node& node) {
  return [&graph, &node](size_t input) {
    return node.has_input(input) ? graph.value(node.inputs[input]).type.element_type
                                 : DataType::kUndefined;
  };
}

// Runs custom operators on the CPU.
class CustomOpProvider final : public ExecutionProvider {
 public:
  explicit CustomOpProvider(const CustomOps& ops) : ops_(ops) {}

  const std::string& name() const override { return name_; }

  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider >= 0) continue;
      const CustomOp* const op = ops_.Find(*node, TypesOf(graph, *node));
      if (op != nullptr && op->provider().empty()) claims.push_back({{node->id}});
    }
    return claims;
  }

  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, ops_.MakeKernel(info, ""));
    if (kernel == nullptr) return NotImplemented("there is no such custom operator");
    return kernel;
  }

 private:
  const CustomOps& ops_;
  const std::string name_{kCpuProvider};
};

}  // namespace

CustomOps::CustomOps(const SessionOptions& options, const Logger& fallback)
    : logger_(options.log_id.empty() ? fallback.id() : options.log_id,
              options.severity.value_or(fallback.severity()), options.log_verbosity,
              options.log_sink.value_or(fallback.sink())),
      config_(options.config) {}

Result<std::unique_ptr<CustomOps>> CustomOps::For(const OrtSessionOptions& options,
                                                  const SessionOptions& session_options,
                                                  Environment& environment) {
  if (options.custom_op_domains.empty()) return std::unique_ptr<CustomOps>();
  std::unique_ptr<CustomOps> ops(new CustomOps(session_options, environment.logger()));
  ops->libraries_ = options.custom_op_libraries;
  for (const OrtCustomOpDomain* const domain : options.custom_op_domains) {
    for (const OrtCustomOp* const op : domain->ops) {
      const char* const provider =
          op->GetExecutionProviderType ? op->GetExecutionProviderType(op) : nullptr;
      const bool is_cpus = provider == nullptr || provider == kCpuProvider;
      const bool is_here =
          is_cpus ||
          std::any_of(options.providers.begin(), options.providers.end(),
                      [&](const ProviderChoice& choice) { return choice.name == provider; });
      if (!is_here) {
        TENON_LOG(ops->logger_, kWarning, "custom operator '{}' is for {}, which is not here",
                  op->GetName(op), provider);
        continue;
      }
      ops->ops_.emplace_back(domain->name, *op, is_cpus ? "" : provider);
      TENON_RETURN_IF_ERROR(ops->ops_.back().CheckVariadics());
    }
  }
  return ops;
}

Result<std::unique_ptr<Kernel>> CustomOps::MakeKernel(KernelInfo& info,
                                                      const std::string& provider) const {
  const auto types = TypesOf(info.graph(), info.node());
  const CustomOp* const op = Find(info.node(), types);
  if (op == nullptr || op->provider() != provider) return nullptr;
  TENON_RETURN_IF_ERROR(op->CheckNode(info.node(), types));
  return CustomKernel::Make(*op, info, *this);
}

std::unique_ptr<ExecutionProvider> CustomOps::MakeProvider() const {
  return std::make_unique<CustomOpProvider>(*this);
}

const CustomOp* CustomOps::Find(const Node& node,
                                FunctionRef<DataType(size_t input)> type_of_input) const {
  const CustomOp* by_name = nullptr;
  const CustomOp* fitting = nullptr;
  const auto prefer = [](const CustomOp*& best, const CustomOp& op) {
    if (best == nullptr || op.start_version() > best->start_version()) best = &op;
  };
  for (const CustomOp& op : ops_) {
    if (!op.Implements(node)) continue;
    prefer(by_name, op);
    if (op.CheckNode(node, type_of_input).ok()) prefer(fitting, op);
  }
  return fitting != nullptr ? fitting : by_name;
}

ShapeFunction CustomOps::Find(const Node& node) const {
  const bool is_custom = std::any_of(ops_.begin(), ops_.end(),
                                     [&](const CustomOp& op) { return op.Implements(node); });
  return is_custom ? nullptr : OpShapeFunctions().Find(node);
}

Status CustomOps::InferOther(const Node& node, ShapeContext& context) const {
  const auto type_of_input = [&](size_t i) {
    return i < node.inputs.size() && context.HasInput(i) ? context.InputType(i).element_type
                                                         : DataType::kUndefined;
  };
  const CustomOp* const op = Find(node, type_of_input);
  if (op == nullptr) return OkStatus();
  TENON_RETURN_IF_ERROR(op->CheckNode(node, type_of_input));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const DataType type = op->OutputType(i, node.outputs.size(), type_of_input);
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, ValueType::Tensor(type)));
  }
  if (op->table().InferOutputShapeFn == nullptr) return OkStatus();
  OrtShapeInferContext call(context, *op);
  return TakeOrtStatus(AtBoundary(
      [&] { return TakeOrtStatus(op->table().InferOutputShapeFn(op->client(), &call)); }));
}

}  // namespace tenon::capi
