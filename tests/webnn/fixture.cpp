#include "webnn/fixture.h"

#include <cmath>

#include "ops/cpu_provider.h"
#include "webnn/channels_last_shapes.h"
#include "webnn/provider.h"

namespace tenon::webnn {
namespace {

Result<std::unique_ptr<Session>> OpenSession(
    Environment& environment, Model model, SessionOptions options,
    std::vector<std::unique_ptr<ExecutionProvider>> preferred = {}) {
  SessionParts parts;
  parts.providers = std::move(preferred);
  parts.providers.push_back(MakeCpuProvider());
  parts.shape_functions = &ShapeFunctions();
  return Session::Create(environment, std::move(model), std::move(options), std::move(parts));
}

template <class List>
std::vector<std::string_view> NamesOf(const List& values) {
  std::vector<std::string_view> names;
  for (const auto& value : values) names.push_back(value.name);
  return names;
}

}  // namespace

Model ModelOf(const Graph& graph, int32_t opset) {
  Model model;
  model.ir_version = 10;
  model.opsets = {{"", opset}, {"com.microsoft", 1}};
  model.graph = graph.Clone();
  return model;
}

Value SomeValue(DataType type, const Shape& shape, int seed) {
  Tensor tensor = *Tensor::Allocate(type, shape);
  for (int64_t i = 0; i < shape.NumElements(); ++i) {
    const auto at = static_cast<size_t>(i);
    const double wave = std::sin(0.7 * static_cast<double>(i) + seed);
    switch (type) {
      case DataType::kFloat:
        tensor.data<float>()[at] = static_cast<float>(wave);
        break;
      case DataType::kFloat16:
        tensor.data<Float16>()[at] = Float16(static_cast<float>(wave));
        break;
      case DataType::kBool:
        tensor.data<bool>()[at] = wave > 0;
        break;
      case DataType::kInt64:
        tensor.data<int64_t>()[at] = std::lround(std::abs(wave));
        break;
      case DataType::kInt32:
        tensor.data<int32_t>()[at] = static_cast<int32_t>(std::lround(3 * wave));
        break;
      default:
        tensor.data<uint8_t>()[at] = static_cast<uint8_t>(std::lround(100 + 90 * wave));
    }
  }
  return tensor;
}

void ExpectSame(const Value& expected, const Value& got, double tolerance,
                const std::string& what) {
  ASSERT_TRUE(expected.is_tensor() && got.is_tensor()) << what;
  const Tensor& a = expected.tensor();
  const Tensor& b = got.tensor();
  ASSERT_EQ(a.type(), b.type()) << what;
  ASSERT_EQ(a.shape(), b.shape()) << what;
  for (int64_t i = 0; i < a.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (a.type() == DataType::kFloat) {
      const float x = a.data<float>()[at], y = b.data<float>()[at];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ASSERT_NEAR(x, y, tolerance * std::max(1.0F, std::abs(x))) << what << " at " << i;
    } else {
      const size_t size = a.bytes() / static_cast<size_t>(a.size());
      const auto* const x = static_cast<const char*>(a.raw()) + at * size;
      const auto* const y = static_cast<const char*>(b.raw()) + at * size;
      ASSERT_TRUE(std::equal(x, x + size, y)) << what << " at " << i;
    }
  }
}

void WebnnTest::Open(const Graph& graph, OpenOptions options) {
  run_.reset();
  plan_.reset();
  bodies_.clear();
  auto cpu = OpenSession(environment_, ModelOf(graph, options.opset), options.session);
  ASSERT_TRUE(cpu) << cpu.error().message();
  cpu_ = std::move(*cpu);
  auto provider =
      MakeProvider({{"limits", options.limits}, {"excluded_partitions", options.excluded}});
  ASSERT_TRUE(provider) << provider.error().message();
  std::vector<std::unique_ptr<ExecutionProvider>> preferred;
  preferred.push_back(std::move(*provider));
  auto session = OpenSession(environment_, ModelOf(graph, options.opset), options.session,
                             std::move(preferred));
  ASSERT_TRUE(session) << session.error().message();
  session_ = std::move(*session);
  auto plan = BarrierPlan::Create(*session_);
  ASSERT_TRUE(plan) << plan.error().message();
  plan_ = std::move(*plan);
  run_ = std::make_unique<BarrierRun>(*plan_);
}

std::vector<Value> WebnnTest::RunOnCpu(std::span<const Value> feeds) {
  std::vector<Value> fetches(cpu_->outputs().size());
  const auto inputs = NamesOf(cpu_->inputs()), outputs = NamesOf(cpu_->outputs());
  const Status status = cpu_->Run({}, inputs, feeds, outputs, fetches);
  EXPECT_TRUE(status.ok()) << status.message();
  return fetches;
}

// Feeds as the glue gives them: without memory where only partitions read them.
std::span<const Value> WebnnTest::Hidden(std::span<const Value> feeds) {
  feeds_.assign(feeds.begin(), feeds.end());
  hidden_ = feeds_;
  for (size_t i = 0; i < hidden_.size(); ++i) {
    if (plan_->host_feeds()[i]) continue;
    hidden_[i] = Tensor::View(feeds[i].tensor().type(), feeds[i].tensor().shape(), nullptr);
  }
  return hidden_;
}

std::vector<Value> WebnnTest::Compute(const std::map<std::string, Value>& inputs) {
  const BarrierStage& stage = plan_->stages()[run_->position()];
  auto& body = bodies_[stage.partition];
  if (body == nullptr) {
    Model model = ModelOf(*stage.partition->body());
    model.opsets = session_->model().opsets;
    auto session = OpenSession(environment_, std::move(model), {});
    EXPECT_TRUE(session) << session.error().message();
    body = std::move(*session);
  }
  std::vector<Value> feeds, fetches(stage.outputs.size());
  for (const SessionValue& input : body->inputs()) feeds.push_back(inputs.at(input.name));
  const auto names = NamesOf(body->inputs()), outputs = NamesOf(body->outputs());
  const Status status = body->Run({}, names, feeds, outputs, fetches);
  EXPECT_TRUE(status.ok()) << status.message();
  return fetches;
}

Status WebnnTest::Step() {
  TENON_RETURN_IF_ERROR(run_->Next());
  if (!run_->is_at_barrier()) return OkStatus();
  const BarrierStage& stage = plan_->stages()[run_->position()];
  // It can be written for the shapes that are there.
  const auto program = stage.partition->Program(run_->binding());
  EXPECT_TRUE(program) << program.error().message();
  std::map<std::string, Value> inputs;
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const BarrierInput& input = stage.inputs[i];
    switch (input.source) {
      case BarrierInput::Source::kFeed:
        inputs[input.name] = feeds_[input.index];
        break;
      case BarrierInput::Source::kPartition:
        inputs[input.name] = values_.at(plan_->stages()[input.index].outputs[input.output].name);
        break;
      case BarrierInput::Source::kHost:
        EXPECT_NE(run_->input(i).tensor().raw(), nullptr) << input.name;
        inputs[input.name] = run_->input(i);
    }
    EXPECT_EQ(run_->input(i).tensor().shape(), inputs[input.name].tensor().shape()) << input.name;
  }
  const std::vector<Value> made = Compute(inputs);
  for (size_t i = 0; i < made.size(); ++i) {
    const BarrierOutput& output = stage.outputs[i];
    const Tensor& wanted = run_->output(i).tensor();
    EXPECT_EQ(wanted.type(), made[i].tensor().type()) << output.name;
    EXPECT_EQ(wanted.shape(), made[i].tensor().shape()) << output.name;
    EXPECT_EQ(wanted.raw() != nullptr, output.is_read_by_host) << output.name;
    values_[output.name] = made[i];
    if (!output.is_read_by_host) continue;
    std::copy_n(static_cast<const char*>(made[i].tensor().raw()), wanted.bytes(),
                static_cast<char*>(const_cast<void*>(wanted.raw())));
  }
  return OkStatus();
}

std::vector<Value> WebnnTest::RunWithBarriers(std::span<const Value> feeds) {
  values_.clear();
  std::vector<Value> fetches(session_->outputs().size());
  const auto is_fetched = std::make_unique<bool[]>(fetches.size());
  std::fill_n(is_fetched.get(), fetches.size(), true);
  Status status = run_->Begin({}, Hidden(feeds), {is_fetched.get(), fetches.size()}, fetches);
  do {
    if (status.ok()) status = Step();
  } while (status.ok() && run_->is_at_barrier());
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < fetches.size(); ++i) fetches[i] = run_->fetch(i);
  for (size_t i = 0; i < plan_->partition_count(); ++i) {
    for (const BarrierOutput& output : plan_->stages()[i].outputs) {
      for (const size_t fetch : output.fetches) fetches[fetch] = values_[output.name];
    }
  }
  run_->End();
  return fetches;
}

void WebnnTest::ExpectSameAsCpu(double tolerance, const std::vector<Shape>& shapes) {
  std::vector<Value> feeds;
  for (size_t i = 0; i < cpu_->inputs().size(); ++i) {
    const ValueType& type = cpu_->inputs()[i].type;
    const Shape shape = i < shapes.size() ? shapes[i] : *type.shape->ToShape();
    feeds.push_back(SomeValue(type.element_type, shape, static_cast<int>(i)));
  }
  const std::vector<Value> expected = RunOnCpu(feeds);
  const std::vector<Value> got = RunWithBarriers(feeds);
  for (size_t i = 0; i < expected.size(); ++i) {
    ExpectSame(expected[i], got[i], tolerance, cpu_->outputs()[i].name);
  }
}

}  // namespace tenon::webnn
