#include "runtime/test_provider.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>

#include "base/loop_stats.h"
#include "base/mutex.h"
#include "base/sleep.h"
#include "ir/schema.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

Mutex runs_mutex;
std::map<std::string, int>& Runs() {
  static std::map<std::string, int> runs;
  return runs;
}

Status SameShape(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x), DataType::kFloat);
}

Status AnyLength(const Node&, ShapeContext& context) {
  return context.SetOutput(0, {Dim::Unknown()}, DataType::kFloat);
}

Status TimesAsLong(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  const Tensor* times = context.InputData(1);
  if (times == nullptr || !x[0].is_number()) {
    return context.SetOutput(0, {Dim::Unknown()}, DataType::kFloat);
  }
  return context.SetOutput(0, {x[0].value() * times->data<int64_t>()[0]}, DataType::kFloat);
}

using RunFunction = Status (*)(KernelContext&);

class TestKernel final : public Kernel {
 public:
  TestKernel(std::string op_type, RunFunction run, KernelTraits traits, int overwrites)
      : op_type_(std::move(op_type)), run_(run), traits_(traits), overwrites_(overwrites) {}
  KernelTraits traits() const override { return traits_; }
  int InputToOverwrite(size_t i) const override { return i == 0 ? overwrites_ : -1; }
  Status InferShapes(ShapeContext& context) const override {
    return TestShapeFunctions().Find(context.node())(context.node(), context);
  }
  Status Run(KernelContext& context) const override {
    {
      const MutexLock lock(runs_mutex);
      ++Runs()[op_type_];
    }
    return run_(context);
  }

 private:
  std::string op_type_;
  RunFunction run_;
  KernelTraits traits_;
  int overwrites_;
};

Status RunAdd(KernelContext& context) {
  const float* a = context.Input(0).data<float>();
  const float* b = context.Input(1).data<float>();
  float* y = context.Output(0).data<float>();
  for (int64_t i = 0; i < context.Output(0).size(); ++i) y[i] = a[i] + b[i];
  return OkStatus();
}

Status RunScale(KernelContext& context) {
  const float* x = context.Input(0).data<float>();
  float* y = context.Output(0).data<float>();
  for (int64_t i = 0; i < context.Output(0).size(); ++i) y[i] = 2 * x[i];
  return OkStatus();
}

Status RunBorrow(KernelContext& context) {
  const Tensor& x = context.Input(0);
  void* const memory = context.Scratch(x.bytes());
  if (memory == nullptr) return Fail("no memory");
  std::copy_n(x.data<float>(), x.size(), static_cast<float*>(memory));
  return RunScale(context);
}

Status RunReuse(KernelContext& context) {
  const Shape shape = context.Input(0).shape();
  TENON_RETURN_IF_ERROR(context.AllocateOutput(0, DataType::kFloat, shape));
  return RunScale(context);
}

Status RunPositive(KernelContext& context) {
  std::vector<float> kept;
  for (const float x : context.Input(0).values<float>()) {
    if (x > 0) kept.push_back(x);
  }
  TENON_ASSIGN_OR_RETURN(
      Tensor * y,
      context.AllocateOutput(0, DataType::kFloat, Shape({static_cast<int64_t>(kept.size())})));
  std::copy(kept.begin(), kept.end(), y->data<float>());
  return OkStatus();
}

Status RunFold(KernelContext& context) {
  const float* x = context.Input(0).data<float>();
  const float* z = context.Input(1).data<float>();
  float* y = context.Output(0).data<float>();
  const int64_t n = context.Output(0).size();
  for (int64_t i = 0; i < n; ++i) y[i] = x[n - 1 - i] + z[i];
  return OkStatus();
}

Status RunRepeat(KernelContext& context) {
  const Tensor& x = context.Input(0);
  float* y = context.Output(0).data<float>();
  for (int64_t i = 0; i < context.Output(0).size(); ++i) y[i] = x.data<float>()[i % x.size()];
  return OkStatus();
}

Status RunFail(KernelContext&) { return InvalidArgument("wanted to"); }

Status RunThrow(KernelContext&) { throw std::runtime_error("thrown by a kernel"); }

Status RunWait(KernelContext& context) {
  while (!StopSignal::Current()->is_terminated()) {
  }
  return RunScale(context);
}

Status RunSpread(KernelContext& context) {
  const float* x = context.Input(0).data<float>();
  float* y = context.Output(0).data<float>();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const int wanted = context.threads().threads();
  std::atomic<int> here = 0;
  context.threads().ParallelFor(static_cast<size_t>(context.Output(0).size()), 1,
                                [&](size_t begin, size_t) {
                                  ++here;
                                  while (here < wanted && std::chrono::steady_clock::now() < end)
                                    SleepFor(std::chrono::microseconds(1));
                                  y[begin] = 2 * x[begin];
                                });
  return OkStatus();
}

Status RunWatch(KernelContext& context) {
  float* y = context.Output(0).data<float>();
  std::fill_n(y, context.Output(0).size(), LoopStats::Current() != nullptr ? 1.0f : 0.0f);
  return OkStatus();
}

struct TestOp {
  const char* name;
  RunFunction run;
  KernelTraits traits;
  ShapeFunction infer;
  int overwrites = -1;  // the input that output 0 may be written over
};

constexpr TestOp kOps[] = {
    {"Add", RunAdd, {.in_place_input = 0, .in_place_also = 1}, SameShape},
    {"Joined", RunAdd, {.contiguous_inputs = true}, SameShape},
    {"Scale", RunScale, {.in_place_input = 0}, SameShape},
    {"Borrow", RunBorrow, {}, SameShape},
    {"Reuse", RunReuse, {.allocates_outputs = true}, SameShape, 0},
    {"Positive", RunPositive, {.allocates_outputs = true}, AnyLength},
    {"Fold", RunFold, {.in_place_input = 1}, SameShape},
    {"Repeat", RunRepeat, {}, TimesAsLong},
    {"Fail", RunFail, {}, SameShape},
    {"Throw", RunThrow, {}, SameShape},
    {"Wait", RunWait, {}, SameShape},
    {"Spread", RunSpread, {}, SameShape},
    {"Watch", RunWatch, {}, SameShape},
    {"Yield", RunFail, {.yields = true}, SameShape},
};

const TestOp* FindOp(const Node& node) {
  for (const TestOp& op : kOps) {
    if (node.domain == "test" && node.op_type == op.name) return &op;
  }
  return nullptr;
}

class TestProvider final : public ExecutionProvider {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* node = graph.FindNode(static_cast<NodeId>(i));
      if (node && FindOp(*node)) claims.push_back({{node->id}});
    }
    return claims;
  }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    const TestOp* op = FindOp(info.node());
    return std::make_unique<TestKernel>(op->name, op->run, op->traits, op->overwrites);
  }

 private:
  const std::string name_ = "TestExecutionProvider";
};

class TestShapes final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    const TestOp* op = FindOp(node);
    return op ? op->infer : OpShapeFunctions().Find(node);
  }
};

}  // namespace

int RunsOf(const std::string& op_type) {
  const MutexLock lock(runs_mutex);
  return Runs()[op_type];
}

void ResetRuns() {
  const MutexLock lock(runs_mutex);
  Runs().clear();
}

std::unique_ptr<ExecutionProvider> MakeTestProvider() { return std::make_unique<TestProvider>(); }

const ShapeFunctionTable& TestShapeFunctions() {
  static const TestShapes shapes;
  return shapes;
}

ModelBuilder::ModelBuilder() {
  model_.ir_version = 10;
  model_.opsets = {{"", 21}, {"test", 1}};
  model_.graph = std::make_unique<Graph>();
  model_.graph->name = "graph";
}

ValueId ModelBuilder::ValueOf(const std::string& name) {
  if (name.empty()) return ValueId::kNone;
  const ValueId id = graph().FindValue(name);
  return id != ValueId::kNone ? id : graph().AddValue(name);
}

ModelBuilder& ModelBuilder::Input(const std::string& name, Dims shape, DataType type) {
  const ValueId id = ValueOf(name);
  graph().value(id).type = ValueType::Tensor(type, SymbolicShape(std::move(shape)));
  graph().AddInput(id);
  return *this;
}

ModelBuilder& ModelBuilder::Constant(const std::string& name, Tensor tensor) {
  graph().AddInitializer(name, std::move(tensor));
  return *this;
}

ModelBuilder& ModelBuilder::Node(const std::string& op_type, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs, const std::string& domain,
                                 int opset) {
  NodeSpec spec;
  spec.op_type = op_type;
  spec.domain = domain;
  spec.opset = opset;
  spec.name = "node_" + outputs[0];
  for (const std::string& input : inputs) spec.inputs.push_back(ValueOf(input));
  for (const std::string& output : outputs) spec.outputs.push_back(ValueOf(output));
  tenon::Node& node = graph().AddNode(std::move(spec));
  node.schema = FindSchema(domain, op_type, opset);
  return *this;
}

ModelBuilder& ModelBuilder::Output(const std::string& name) {
  graph().AddOutput(name, ValueOf(name));
  return *this;
}

Result<std::unique_ptr<Session>> MakeSession(
    Environment& environment, Model model, SessionOptions options,
    std::vector<std::unique_ptr<ExecutionProvider>> preferred) {
  SessionParts parts;
  parts.providers = std::move(preferred);
  parts.providers.push_back(MakeTestProvider());
  parts.providers.push_back(MakeCpuProvider());
  parts.shape_functions = &TestShapeFunctions();
  return Session::Create(environment, std::move(model), std::move(options), std::move(parts));
}

}  // namespace tenon
