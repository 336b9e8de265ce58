// Training through the C and C++ interface: y = w x, whose gradient by w is x, and SGD.
#include <gtest/gtest.h>
#include <onnxruntime_training_cxx_api.h>
#include <tenon_training_c_api.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

constexpr auto kBool = ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;

std::vector<uint8_t> Bytes(const ModelBuilder& builder) {
  const std::string bytes = builder.Bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<uint8_t> TrainModel() {
  return Bytes(ModelBuilder()
                   .Input("x", TensorType(kFloat, {2}))
                   .Input("w", TensorType(kFloat, {2}))
                   .Input("w_grad.accumulation.buffer", TensorType(kFloat, {2}))
                   .Input("lazy_reset_grad", TensorType(kBool, {1}))
                   .Node("Mul", {"w", "x"}, {"y"})
                   .CustomNode("com.microsoft", "InPlaceAccumulatorV2",
                               {"w_grad.accumulation.buffer", "x", "lazy_reset_grad"},
                               {"w_grad.accumulation.out"})
                   .Output("y", TensorType(kFloat, {2}))
                   .Output("w_grad.accumulation.out", TensorType(kBool, {1})));
}

std::vector<uint8_t> EvalModel() {
  return Bytes(ModelBuilder()
                   .Input("x", TensorType(kFloat, {2}))
                   .Input("label", TensorType(kFloat, {2}))
                   .Input("w", TensorType(kFloat, {2}))
                   .Node("Mul", {"w", "x"}, {"y"})
                   .Node("Sub", {"y", "label"}, {"error"})
                   .Output("error", TensorType(kFloat, {2})));
}

std::vector<uint8_t> SgdModel() {
  const std::string sequence = SequenceType(TensorTypeWithoutShape(kFloat));
  return Bytes(ModelBuilder()
                   .Input("learning_rate", TensorType(kFloat, {1}))
                   .Input("step", TensorType(kInt64, {1}))
                   .Input("params", sequence)
                   .Input("gradients", sequence)
                   .CustomNode("com.microsoft", "SGDOptimizerV2",
                               {"learning_rate", "params", "gradients"}, {"was_done"})
                   .Output("was_done", TensorType(kBool, {})));
}

Ort::CheckpointState StateOf(std::vector<float> w) {
  const Ort::Value value = TensorOver(w, {static_cast<int64_t>(w.size())});
  const char* const names[] = {"w"};
  const OrtValue* const values[] = {value};
  const bool is_trained[] = {true};
  const auto create = reinterpret_cast<TenonCreateCheckpoint>(
      Ort::GetApi().GetExperimentalFunction(TENON_CREATE_CHECKPOINT));
  OrtCheckpointState* state = nullptr;
  Ort::ThrowOnError(create(names, values, is_trained, 1, &state));
  return state;
}

class OnDeviceTrainingTest : public ::testing::Test {
 protected:
  std::vector<Ort::Value> Inputs() {
    std::vector<Ort::Value> inputs;
    inputs.push_back(TensorOver(x_, {2}));
    return inputs;
  }
  std::vector<float> Parameter() { return ElementsOf<float>(state_.GetParameter("w")); }

  std::vector<float> x_ = {3, 5};
  Ort::CheckpointState state_ = StateOf({1, 2});
  Ort::TrainingSession session_{Env(),        Ort::SessionOptions(), state_,
                                TrainModel(), EvalModel(),           SgdModel()};
};

TEST_F(OnDeviceTrainingTest, NamesAreThoseOfTheUser) {
  using Names = std::vector<std::string>;
  Ort::SetSeed(1);  // of sessions without random operators: has no effect here
  EXPECT_EQ(session_.InputNames(true), Names{"x"});
  EXPECT_EQ(session_.OutputNames(true), Names{"y"});
  EXPECT_EQ(session_.InputNames(false), (Names{"x", "label"}));
  EXPECT_EQ(session_.OutputNames(false), Names{"error"});
}

TEST_F(OnDeviceTrainingTest, StepsChangeTheParameters) {
  session_.SetLearningRate(0.5f);
  EXPECT_EQ(ElementsOf<float>(session_.TrainStep(Inputs())[0]), (std::vector<float>{3, 10}));
  EXPECT_EQ(Parameter(), (std::vector<float>{1, 2}));
  session_.OptimizerStep();
  EXPECT_EQ(Parameter(), (std::vector<float>{-0.5f, -0.5f}));  // w - 0.5 x
  // Gradients add up, until they are reset.
  session_.TrainStep(Inputs());
  session_.OptimizerStep();
  EXPECT_EQ(Parameter(), (std::vector<float>{-3.5f, -5.5f}));
  session_.LazyResetGrad();
  session_.TrainStep(Inputs());
  session_.OptimizerStep();
  EXPECT_EQ(Parameter(), (std::vector<float>{-5, -8}));
}

TEST_F(OnDeviceTrainingTest, EvaluationUsesTheParameters) {
  std::vector<float> label = {1, 1};
  std::vector<Ort::Value> inputs = Inputs();
  inputs.push_back(TensorOver(label, {2}));
  EXPECT_EQ(ElementsOf<float>(session_.EvalStep(inputs)[0]), (std::vector<float>{2, 9}));
  std::vector<float> w = {0, 1};
  state_.UpdateParameter("w", TensorOver(w, {2}));
  EXPECT_EQ(ElementsOf<float>(session_.EvalStep(inputs)[0]), (std::vector<float>{-1, 4}));
}

TEST_F(OnDeviceTrainingTest, TheLearningRateFollowsTheSchedule) {
  EXPECT_EQ(session_.GetLearningRate(), 0.001f);
  session_.RegisterLinearLRScheduler(2, 6, 1.0f);
  std::vector<float> rates;
  for (int step = 0; step < 7; ++step) {
    session_.TrainStep(Inputs());
    session_.OptimizerStep();
    session_.SchedulerStep();
    rates.push_back(session_.GetLearningRate());
  }
  EXPECT_EQ(rates, (std::vector<float>{0.5f, 1, 0.75f, 0.5f, 0.25f, 0, 0}));
}

TEST_F(OnDeviceTrainingTest, ParametersAreCopiedToABufferAndBack) {
  Ort::Value buffer = session_.ToBuffer(true);
  EXPECT_EQ(ElementsOf<float>(buffer), (std::vector<float>{1, 2}));
  buffer.GetTensorMutableData<float>()[1] = 7;
  session_.FromBuffer(buffer);
  EXPECT_EQ(Parameter(), (std::vector<float>{1, 7}));
}

TEST_F(OnDeviceTrainingTest, CheckpointsContinueWhereTheyWereSaved) {
  const std::string path = testing::TempDir() + "tenon_on_device_checkpoint";
  session_.SetLearningRate(0.5f);
  session_.TrainStep(Inputs());
  session_.OptimizerStep();
  state_.AddProperty("epoch", int64_t{4});
  state_.AddProperty("rate", 0.25f);
  state_.AddProperty("name", std::string("run"));
  Ort::CheckpointState::SaveCheckpoint(state_, path, true);
  Ort::CheckpointState read = Ort::CheckpointState::LoadCheckpoint(path);
  EXPECT_EQ(ElementsOf<float>(read.GetParameter("w")), Parameter());
  EXPECT_EQ(std::get<int64_t>(read.GetProperty("epoch")), 4);
  EXPECT_EQ(std::get<float>(read.GetProperty("rate")), 0.25f);
  EXPECT_EQ(std::get<std::string>(read.GetProperty("name")), "run");
  Ort::TrainingSession again(Env(), Ort::SessionOptions(), read, TrainModel(), EvalModel(),
                             SgdModel());
  again.SetLearningRate(0.5f);
  again.TrainStep(Inputs());
  again.OptimizerStep();
  EXPECT_EQ(ElementsOf<float>(read.GetParameter("w")), (std::vector<float>{-2, -3}));
  std::filesystem::remove(path);
}

TEST_F(OnDeviceTrainingTest, NominalCheckpointsAreFilledFromABuffer) {
  const char* const names[] = {"w", "w"};
  const bool is_trained[] = {true, true};
  const auto create = reinterpret_cast<TenonCreateNominalCheckpoint>(
      Ort::GetApi().GetExperimentalFunction(TENON_CREATE_NOMINAL_CHECKPOINT));
  OrtCheckpointState* state = nullptr;
  EXPECT_EQ(ErrorOf([&] { Ort::ThrowOnError(create(names, is_trained, 2, &state)); }),
            "2: parameter 'w' is there twice");
  Ort::ThrowOnError(create(names, is_trained, 1, &state));
  const std::string path = testing::TempDir() + "tenon_on_device_nominal";
  Ort::CheckpointState::SaveCheckpoint(Ort::CheckpointState(state), path);
  Ort::CheckpointState read = Ort::CheckpointState::LoadCheckpoint(path);
  std::filesystem::remove(path);

  Ort::TrainingSession nominal(Env(), Ort::SessionOptions(), read, TrainModel(), EvalModel(),
                               SgdModel());
  EXPECT_EQ(ErrorOf([&] { nominal.TrainStep(Inputs()); }),
            "2: the parameters of a nominal checkpoint have no values yet: copy them from a buffer "
            "first");
  Ort::Value buffer = session_.ToBuffer(false);
  Ort::ThrowOnError(Ort::GetTrainingApi().CopyBufferToParameters(nominal, buffer, false));
  EXPECT_EQ(ElementsOf<float>(read.GetParameter("w")), Parameter());
  nominal.SetLearningRate(0.5f);
  EXPECT_EQ(ElementsOf<float>(nominal.TrainStep(Inputs())[0]), (std::vector<float>{3, 10}));
  nominal.OptimizerStep();
  EXPECT_EQ(ElementsOf<float>(read.GetParameter("w")), (std::vector<float>{-0.5f, -0.5f}));
}

TEST_F(OnDeviceTrainingTest, ExportsAModelForInference) {
  const std::string path = testing::TempDir() + "tenon_on_device_inference.onnx";
  session_.ExportModelForInferencing(path, {"y"});
  Ort::Session inference(Env(), path.c_str(), Ort::SessionOptions());
  ASSERT_EQ(inference.GetInputCount(), 1u);  // neither the parameter nor the label
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"y"};
  const Ort::Value x = TensorOver(x_, {2});
  const auto y = inference.Run(Ort::RunOptions(), inputs, &x, 1, outputs, 1);
  EXPECT_EQ(ElementsOf<float>(y[0]), (std::vector<float>{3, 10}));
  std::filesystem::remove(path);
}

TEST_F(OnDeviceTrainingTest, ErrorsNameWhatIsWrong) {
  std::vector<float> wrong = {1, 2, 3};
  const auto error = [](auto&& body) { return ErrorOf(body); };
  EXPECT_EQ(error([&] { session_.TrainStep({}); }),
            "2: expected 1 inputs and 1 outputs, got 0 and 1");
  EXPECT_EQ(error([&] { state_.GetParameter("v"); }), "2: the checkpoint has no parameter 'v'");
  EXPECT_EQ(error([&] { state_.UpdateParameter("w", TensorOver(wrong, {3})); }),
            "2: parameter 'w': a float tensor of shape [3] cannot be copied into a float tensor of "
            "shape [2]");
  EXPECT_EQ(error([&] { state_.GetProperty("p"); }), "2: the checkpoint has no property 'p'");
  EXPECT_EQ(error([&] { session_.ExportModelForInferencing("/tmp/none.onnx", {"z"}); }),
            "2: the evaluation model has no value 'z'");
  EXPECT_EQ(error([&] { session_.SchedulerStep(); }),
            "2: no schedule of the learning rate was set");
  Ort::CheckpointState other = StateOf({1, 2, 3});
  EXPECT_EQ(error([&] { Ort::TrainingSession(Env(), Ort::SessionOptions(), other, TrainModel()); }),
            "2: parameter 'w': the model expects tensor(float) [2], the checkpoint has "
            "tensor(float) [3]");
  Ort::TrainingSession alone(Env(), Ort::SessionOptions(), state_, TrainModel());
  EXPECT_EQ(error([&] { alone.OptimizerStep(); }),
            "2: the training session was made without an optimizer model");
  EXPECT_EQ(error([&] { alone.EvalStep({}); }),
            "2: the training session was made without an evaluation model");
  EXPECT_EQ(error([&] {
              Ort::CheckpointState::LoadCheckpointFromBuffer({1, 2, 3});
            }),
            "1: these 3 bytes are no checkpoint: they have no identifier ODTC");
}

TEST(InPlaceTest, ConstantsAreNotChangedInPlace) {
  NeedExceptions();
  const std::string model =
      ModelBuilder()
          .Input("x", TensorType(kFloat, {2}))
          .Initializer("sum", {1, 2})
          .CustomNode("com.microsoft", "InPlaceAccumulatorV2", {"sum", "x"}, {"was_done"})
          .Output("was_done", TensorType(kBool, {1}))
          .Bytes();
  const std::string error = ErrorOf([&] { Open(model); });
  EXPECT_NE(error.find("must be an input of the graph without a default; 'sum' is a constant"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace tenon::test
