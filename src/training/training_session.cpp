#include "training/training_session.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace tenon {
namespace {

constexpr std::string_view kResetInput = "lazy_reset_grad";
constexpr std::string_view kBufferSuffix = "_grad.accumulation.buffer";
constexpr std::string_view kGradientSuffixes[] = {kBufferSuffix, "_grad", "_grad.accumulation.out"};
constexpr std::string_view kOptimizerInputs[] = {"learning_rate", "step", "params", "gradients"};

bool IsGradientOf(std::string_view name, const Checkpoint& checkpoint) {
  return std::any_of(
      std::begin(kGradientSuffixes), std::end(kGradientSuffixes), [&](std::string_view suffix) {
        return name.ends_with(suffix) &&
               checkpoint.parameters.contains(name.substr(0, name.size() - suffix.size()));
      });
}

const SessionValue* Find(std::span<const SessionValue> values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const SessionValue& value) { return value.name == name; });
  return found == values.end() ? nullptr : &*found;
}

Result<Tensor> ZerosLike(const Tensor& tensor) {
  TENON_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(tensor.type(), tensor.shape()));
  if (zeros.bytes() != 0) std::memset(zeros.raw(), 0, zeros.bytes());
  return zeros;
}

// That the model can be fed the parameter.
Status CheckFits(const SessionValue& input, const Tensor& value) {
  const ValueType& type = input.type;
  bool fits = type.kind == Value::Kind::kTensor && type.element_type == value.type();
  if (fits && type.shape) {
    fits = type.shape->rank() == value.rank();
    for (size_t axis = 0; fits && axis < value.rank(); ++axis) {
      const Dim& dim = (*type.shape)[axis];
      fits = !dim.is_number() || dim.value() == value.shape()[axis];
    }
  }
  if (fits) return OkStatus();
  return InvalidArgument("parameter '{}': the model expects {}, the checkpoint has tensor({}) {}",
                         input.name, type.ToString(), DataTypeName(value.type()), value.shape());
}

// That memory for the parameter can be made by its declaration alone.
Status CheckHasSizes(const SessionValue& input) {
  const auto& shape = input.type.shape;
  bool has_all = input.type.kind == Value::Kind::kTensor && shape.has_value();
  Shape sizes;
  for (size_t axis = 0; has_all && axis < shape->rank(); ++axis) {
    has_all = (*shape)[axis].is_number();
    if (has_all) sizes.Append((*shape)[axis].value());
  }
  if (has_all && sizes.CheckedNumElements()) return OkStatus();
  return InvalidArgument(
      "parameter '{}': the checkpoint is nominal, so the model must declare all sizes; it says {}",
      input.name, input.type.ToString());
}

Value SequenceOf(const std::vector<Tensor>& tensors) {
  auto sequence = std::make_shared<Sequence>();
  sequence->element_type = tensors.empty() ? DataType::kFloat : tensors.front().type();
  sequence->elements.assign(tensors.begin(), tensors.end());
  return sequence;
}

}  // namespace

Result<std::unique_ptr<TrainingSession>> TrainingSession::Create(TrainingModels models,
                                                                 Checkpoint& checkpoint) {
  std::unique_ptr<TrainingSession> session(new TrainingSession(models, checkpoint));
  TENON_RETURN_IF_ERROR(session->DescribeTraining());
  session->DescribeEvaluation();
  TENON_RETURN_IF_ERROR(session->CheckOptimizer());
  if (!checkpoint.is_nominal) TENON_RETURN_IF_ERROR(session->MakeGradients());
  return session;
}

Status TrainingSession::DescribeTraining() {
  train_.session = &models_.train;
  std::vector<std::string> buffers;
  bool has_reset = false;
  for (const SessionValue& input : models_.train.inputs()) {
    const std::string_view name = input.name;
    if (checkpoint_.parameters.contains(name)) {
      train_.parameters.push_back(input.name);
      TENON_RETURN_IF_ERROR(checkpoint_.is_nominal ? CheckHasSizes(input)
                                                   : CheckFits(input, Share(name)));
    } else if (name == kResetInput) {
      has_reset = true;
    } else if (name.ends_with(kBufferSuffix) && IsGradientOf(name, checkpoint_)) {
      buffers.push_back(input.name);
      trained_.emplace_back(name.substr(0, name.size() - kBufferSuffix.size()));
    } else {
      train_.feed_names.push_back(input.name);
    }
  }
  if (!has_reset) {
    return InvalidArgument("the training model has no input '{}': is it made for training?",
                           kResetInput);
  }
  for (const std::string& name : train_.parameters) {
    const bool has_buffer = std::find(trained_.begin(), trained_.end(), name) != trained_.end();
    if (has_buffer || !ParameterOf(name).is_trained) continue;
    return InvalidArgument(
        "parameter '{}' is to be trained, but the training model has no input "
        "'{}{}' for its gradient",
        name, name, kBufferSuffix);
  }
  train_.user_inputs = train_.feed_names.size();
  for (const auto* names : {&train_.parameters, &buffers}) {
    train_.feed_names.insert(train_.feed_names.end(), names->begin(), names->end());
  }
  train_.feed_names.emplace_back(kResetInput);
  std::vector<std::string> rest;
  for (const SessionValue& output : models_.train.outputs()) {
    auto& names = IsGradientOf(output.name, checkpoint_) ? rest : train_.fetch_names;
    names.push_back(output.name);
  }
  train_.user_outputs = train_.fetch_names.size();
  // Fetched too, so that the nodes that make them run.
  train_.fetch_names.insert(train_.fetch_names.end(), rest.begin(), rest.end());
  return OkStatus();
}

void TrainingSession::DescribeEvaluation() {
  eval_.session = models_.eval;
  if (models_.eval == nullptr) return;
  for (const SessionValue& input : models_.eval->inputs()) {
    auto& names = checkpoint_.parameters.contains(input.name) ? eval_.parameters : eval_.feed_names;
    names.push_back(input.name);
  }
  eval_.user_inputs = eval_.feed_names.size();
  eval_.feed_names.insert(eval_.feed_names.end(), eval_.parameters.begin(), eval_.parameters.end());
  for (const SessionValue& output : models_.eval->outputs())
    eval_.fetch_names.push_back(output.name);
  eval_.user_outputs = eval_.fetch_names.size();
}

Status TrainingSession::CheckOptimizer() {
  if (models_.optimizer == nullptr) return OkStatus();
  const std::vector<SessionValue>& inputs = models_.optimizer->inputs();
  for (const std::string_view name : kOptimizerInputs) {
    if (Find(inputs, name) == nullptr) {
      return InvalidArgument("the optimizer model has no input '{}'", name);
    }
  }
  optimizer_.session = models_.optimizer;
  optimizer_.feed_names.assign(std::begin(kOptimizerInputs), std::end(kOptimizerInputs));
  for (const SessionValue& input : inputs) {
    const auto* const end = std::end(kOptimizerInputs);
    if (std::find(std::begin(kOptimizerInputs), end, input.name) != end) continue;
    moment_names_.push_back(Format("momentum{}", moment_names_.size()));
    optimizer_.feed_names.push_back(input.name);
  }
  for (const SessionValue& output : models_.optimizer->outputs()) {
    optimizer_.fetch_names.push_back(output.name);
  }
  optimizer_.user_outputs = optimizer_.fetch_names.size();
  if (optimizer_.fetch_names.empty()) {
    return InvalidArgument("the optimizer model has no output that tells whether a step was done");
  }
  return OkStatus();
}

Status TrainingSession::MakeGradients() {
  for (const std::string& name : trained_) {
    TENON_ASSIGN_OR_RETURN(Tensor gradient, ZerosLike(Share(name)));
    gradients_.emplace_back(std::move(gradient));
  }
  return models_.optimizer == nullptr ? OkStatus() : PrepareOptimizer();
}

Status TrainingSession::PrepareOptimizer() {
  auto& moments = checkpoint_.optimizer.moments;
  const bool is_new = moments.empty();
  std::vector<std::vector<Tensor>> lists(2 + moment_names_.size());
  for (size_t i = 0; i < trained_.size(); ++i) {
    if (!ParameterOf(trained_[i]).is_trained) continue;  // its gradient is computed for nothing
    const Tensor parameter = Share(trained_[i]);
    lists[0].push_back(parameter);
    lists[1].push_back(gradients_[i].tensor());
    for (size_t k = 0; k < moment_names_.size(); ++k) {
      Tensor& moment = moments[trained_[i]][moment_names_[k]];
      if (is_new) {
        TENON_ASSIGN_OR_RETURN(moment, ZerosLike(parameter));
      } else if (moment.type() != parameter.type() || moment.shape() != parameter.shape()) {
        return InvalidArgument("the checkpoint has no {} of parameter '{}' with its type and shape",
                               moment_names_[k], trained_[i]);
      }
      lists[2 + k].push_back(moment);
    }
  }
  for (const auto& list : lists) sequences_.push_back(SequenceOf(list));
  return OkStatus();
}

const Parameter& TrainingSession::ParameterOf(std::string_view name) const {
  return checkpoint_.parameters.find(name)->second;
}

Status TrainingSession::CheckHasValues() const {
  if (!checkpoint_.is_nominal) return OkStatus();
  return InvalidArgument(
      "the parameters of a nominal checkpoint have no values yet: copy them from "
      "a buffer first");
}

Status TrainingSession::CheckHasOptimizer() const {
  if (models_.optimizer != nullptr) return OkStatus();
  return InvalidArgument("the training session was made without an optimizer model");
}

Status TrainingSession::Run(const Call& call, const RunOptions& options,
                            std::span<const Value> inputs, std::span<Value> fetches,
                            std::vector<Value> more) const {
  TENON_RETURN_IF_ERROR(CheckHasValues());
  if (inputs.size() != call.user_inputs || fetches.size() != call.user_outputs) {
    return InvalidArgument("expected {} inputs and {} outputs, got {} and {}", call.user_inputs,
                           call.user_outputs, inputs.size(), fetches.size());
  }
  std::vector<Value> feeds(inputs.begin(), inputs.end());
  for (const std::string& name : call.parameters) feeds.emplace_back(Share(name));
  std::move(more.begin(), more.end(), std::back_inserter(feeds));
  std::vector<Value> all_fetches(fetches.begin(), fetches.end());
  all_fetches.resize(call.fetch_names.size());
  const std::vector<std::string_view> feed_names(call.feed_names.begin(), call.feed_names.end());
  const std::vector<std::string_view> fetch_names(call.fetch_names.begin(), call.fetch_names.end());
  RunOptions once = options;
  once.not_repeatable = "a step of training changes gradients or parameters";
  TENON_RETURN_IF_ERROR(call.session->Run(once, feed_names, feeds, fetch_names, all_fetches));
  std::move(all_fetches.begin(), all_fetches.begin() + static_cast<ptrdiff_t>(fetches.size()),
            fetches.begin());
  return OkStatus();
}

Status TrainingSession::TrainStep(const RunOptions& options, std::span<const Value> inputs,
                                  std::span<Value> fetches) {
  std::vector<Value> more = gradients_;
  more.emplace_back(Tensor::Of<bool>({1}, {overwrites_}));
  TENON_RETURN_IF_ERROR(Run(train_, options, inputs, fetches, std::move(more)));
  overwrites_ = false;
  return OkStatus();
}

Status TrainingSession::EvalStep(const RunOptions& options, std::span<const Value> inputs,
                                 std::span<Value> fetches) {
  if (models_.eval == nullptr) {
    return InvalidArgument("the training session was made without an evaluation model");
  }
  return Run(eval_, options, inputs, fetches, {});
}

Status TrainingSession::OptimizerStep(const RunOptions& options) {
  TENON_RETURN_IF_ERROR(CheckHasOptimizer());
  OptimizerState& state = checkpoint_.optimizer;
  const int64_t step = state.step + 1;  // corrections of bias are powers of it
  std::vector<Value> feeds = {Tensor::Of<float>({1}, {state.learning_rate}),
                              Tensor::Of<int64_t>({1}, {step})};
  feeds.insert(feeds.end(), sequences_.begin(), sequences_.end());
  std::vector<Value> fetches(optimizer_.fetch_names.size());
  TENON_RETURN_IF_ERROR(Run(optimizer_, options, {}, fetches, std::move(feeds)));
  const Value& was_done = fetches.front();
  if (!was_done.is_tensor() || was_done.tensor().type() != DataType::kBool ||
      was_done.tensor().size() != 1) {
    return Fail("output '{}' of the optimizer model: expected one bool, got {}",
                optimizer_.fetch_names.front(), ValueType::Of(was_done).ToString());
  }
  if (*was_done.tensor().data<bool>()) state.step = step;
  return OkStatus();
}

const Tensor* TrainingSession::FindGradient(std::string_view parameter) const {
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (trained_[i] == parameter) return &gradients_[i].tensor();
  }
  return nullptr;
}

Status TrainingSession::SetLearningRate(float rate) {
  TENON_RETURN_IF_ERROR(CheckHasOptimizer());
  checkpoint_.optimizer.learning_rate = rate;
  return OkStatus();
}

Result<float> TrainingSession::learning_rate() const {
  TENON_RETURN_IF_ERROR(CheckHasOptimizer());
  return checkpoint_.optimizer.learning_rate;
}

Status TrainingSession::SetLinearSchedule(int64_t warmup_steps, int64_t total_steps,
                                          float initial_rate) {
  TENON_RETURN_IF_ERROR(CheckHasOptimizer());
  schedule_ = Schedule{warmup_steps, total_steps};
  checkpoint_.optimizer.initial_learning_rate = initial_rate;
  checkpoint_.optimizer.learning_rate = initial_rate;
  return OkStatus();
}

Status TrainingSession::ScheduleStep() {
  if (!schedule_) return InvalidArgument("no schedule of the learning rate was set");
  OptimizerState& state = checkpoint_.optimizer;
  const auto ratio = [](int64_t part, int64_t whole) {
    return static_cast<float>(part) / std::max(1.0f, static_cast<float>(whole));
  };
  const auto [warmup, total] = *schedule_;
  const float factor = state.step < warmup
                           ? ratio(state.step, warmup)
                           : std::max(0.0f, ratio(total - state.step, total - warmup));
  state.learning_rate = state.initial_learning_rate * factor;
  return OkStatus();
}

int64_t TrainingSession::ParameterCount(bool trained_only) const {
  int64_t count = 0;
  for (const std::string& name : train_.parameters) {
    if (trained_only && !ParameterOf(name).is_trained) continue;
    count += ShapeOf(name).NumElements();
  }
  return count;
}

Status TrainingSession::CheckBuffer(const Tensor& buffer, bool trained_only) const {
  const int64_t count = ParameterCount(trained_only);
  if (!buffer.memory().IsHostAccessible()) {
    return NotImplemented("the buffer of parameters lies in the memory of '{}'; expected the CPU's",
                          buffer.memory().name);
  }
  if (buffer.type() != DataType::kFloat || buffer.size() != count) {
    return InvalidArgument(
        "the buffer of parameters: expected tensor(float) with {} elements, got "
        "tensor({}) with {}",
        count, DataTypeName(buffer.type()), buffer.size());
  }
  for (const std::string& name : train_.parameters) {
    if (trained_only && !ParameterOf(name).is_trained) continue;
    const ValueType& type = Find(models_.train.inputs(), name)->type;
    if (type.element_type != DataType::kFloat) {
      return InvalidArgument(
          "parameter '{}' is tensor({}): only float is copied to and from a buffer", name,
          DataTypeName(type.element_type));
    }
  }
  return OkStatus();
}

Shape TrainingSession::ShapeOf(const std::string& name) const {
  if (!checkpoint_.is_nominal) return Share(name).shape();
  Shape shape;
  for (const Dim& dim : *Find(models_.train.inputs(), name)->type.shape) shape.Append(dim.value());
  return shape;
}

Status TrainingSession::CopyParametersTo(Tensor& buffer, bool trained_only) const {
  TENON_RETURN_IF_ERROR(CheckHasValues());
  TENON_RETURN_IF_ERROR(CheckBuffer(buffer, trained_only));
  auto* place = static_cast<std::byte*>(buffer.raw());
  for (const std::string& name : train_.parameters) {
    const Parameter& parameter = ParameterOf(name);
    if (trained_only && !parameter.is_trained) continue;
    place = std::copy_n(static_cast<const std::byte*>(parameter.value.raw()),
                        parameter.value.bytes(), place);
  }
  return OkStatus();
}

Status TrainingSession::CopyParametersFrom(const Tensor& buffer, bool trained_only) {
  if (trained_only && checkpoint_.is_nominal) {
    return InvalidArgument(
        "a nominal checkpoint needs values for all parameters, not only for those "
        "that are trained");
  }
  TENON_RETURN_IF_ERROR(CheckBuffer(buffer, trained_only));
  const auto* place = static_cast<const std::byte*>(buffer.raw());
  for (const std::string& name : train_.parameters) {
    Parameter& parameter = checkpoint_.parameters.find(name)->second;
    if (trained_only && !parameter.is_trained) continue;
    if (checkpoint_.is_nominal) {
      TENON_ASSIGN_OR_RETURN(parameter.value, Tensor::Allocate(DataType::kFloat, ShapeOf(name)));
    }
    std::copy_n(place, parameter.value.bytes(), static_cast<std::byte*>(parameter.value.raw()));
    place += parameter.value.bytes();
  }
  if (!std::exchange(checkpoint_.is_nominal, false)) return OkStatus();
  return MakeGradients();
}

}  // namespace tenon
