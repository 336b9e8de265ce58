// A client of the C++ classes: calls the library with the given path and prints the results, so
// that two libraries can be compared line by line.
//   capi_transcript_cxx LIBRARY MODEL
#define ORT_API_MANUAL_INIT
#include <dlfcn.h>
#include <onnxruntime_cxx_api.h>

#include <cstdio>
#include <string>
#include <vector>

#include "capi/model_builder.h"

namespace {

// Prints the code of the exception of `body`, 0 if there is none.
template <class Body>
void Note(const char* what, Body&& body) {
  int code = ORT_OK;
  try {
    body();
  } catch (const Ort::Exception& exception) {
    code = exception.GetOrtErrorCode();
  }
  std::printf("%s: %d\n", what, code);
}

void Print(const char* what, const Ort::Value& value) {
  const Ort::TensorTypeAndShapeInfo info = value.GetTensorTypeAndShapeInfo();
  std::printf("%s: type %d, shape", what, info.GetElementType());
  for (const int64_t dim : info.GetShape()) std::printf(" %lld", static_cast<long long>(dim));
  std::printf(", values");
  const float* const data = value.GetTensorData<float>();
  for (size_t i = 0; i < info.GetElementCount(); ++i) std::printf(" %.4f", data[i] + 0.0F);
  std::printf("\n");
}

Ort::Value TensorOver(std::vector<float>& values, const std::vector<int64_t>& shape) {
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  return Ort::Value::CreateTensor<float>(cpu, values.data(), values.size(), shape.data(),
                                         shape.size());
}

void Describe(const Ort::Session& session) {
  const Ort::AllocatorWithDefaultOptions allocator;
  for (size_t i = 0; i < session.GetInputCount(); ++i) {
    const Ort::TypeInfo type = session.GetInputTypeInfo(i);
    std::printf("input '%s':", session.GetInputNameAllocated(i, allocator).get());
    const auto info = type.GetTensorTypeAndShapeInfo();
    for (const int64_t dim : info.GetShape()) std::printf(" %lld", static_cast<long long>(dim));
    for (const char* const name : info.GetSymbolicDimensions()) std::printf(" '%s'", name);
    std::printf("\n");
  }
  const Ort::ModelMetadata metadata = session.GetModelMetadata();
  std::printf("graph '%s' by '%s', version %lld\n", metadata.GetGraphNameAllocated(allocator).get(),
              metadata.GetProducerNameAllocated(allocator).get(),
              static_cast<long long>(metadata.GetVersion()));
}

// Computes z = Relu(x + y) in every way that the classes have.
void RunSmallModel(Ort::Env& env) {
  const std::string model = tenon::test::AddReluModel();
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1).SetGraphOptimizationLevel(ORT_ENABLE_ALL);
  Ort::Session session(env, model.data(), model.size(), options);
  Describe(session);
  std::vector<float> x = {1, -2, 3, 4, 5, -6}, y = {10, 1, -5}, z(6, -1);
  const char* const inputs[] = {"x", "y"};
  const char* const output = "z";
  const Ort::Value feeds[] = {TensorOver(x, {2, 3}), TensorOver(y, {3})};
  Print("new", session.Run(Ort::RunOptions(), inputs, feeds, 2, &output, 1)[0]);
  Ort::Value given = TensorOver(z, {2, 3});
  session.Run(Ort::RunOptions(), inputs, feeds, 2, &output, &given, 1);
  Print("given", given);
  Ort::IoBinding binding(session);
  binding.BindInput("x", feeds[0]);
  binding.BindInput("y", feeds[1]);
  binding.BindOutput("z", Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault));
  session.Run(Ort::RunOptions(), binding);
  Print("bound", binding.GetOutputValues()[0]);
  const Ort::Value wrong = TensorOver(y, {3, 1});
  const Ort::Value wrong_feeds[] = {TensorOver(x, {2, 3}), TensorOver(y, {3, 1})};
  Note("wrong rank", [&] { session.Run(Ort::RunOptions(), inputs, wrong_feeds, 2, &output, 1); });
  Note("missing", [&] { session.Run(Ort::RunOptions(), inputs, feeds, 1, &output, 1); });
  Ort::RunOptions stopped;
  stopped.SetTerminate();
  Note("stopped", [&] { session.Run(stopped, inputs, feeds, 2, &output, 1); });
}

void UseValues() {
  const Ort::AllocatorWithDefaultOptions allocator;
  const int64_t three[] = {3};
  Ort::Value strings =
      Ort::Value::CreateTensor(allocator, three, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const texts[] = {"a", "", "Zapfen"};
  strings.FillStringTensor(texts, 3);
  strings.FillStringTensorElement("b", 1);
  std::printf("strings: %zu bytes", strings.GetStringTensorDataLength());
  for (size_t i = 0; i < 3; ++i) std::printf(" '%s'", strings.GetStringTensorElement(i).c_str());
  std::printf("\n");
  std::vector<float> a = {1, 2}, b = {3};
  std::vector<Ort::Value> elements;
  elements.push_back(TensorOver(a, {2}));
  elements.push_back(TensorOver(b, {1}));
  const Ort::Value sequence = Ort::Value::CreateSequence(elements);
  std::printf("sequence of %zu\n", sequence.GetCount());
  Print("element", sequence.GetValue(1, allocator));
  Note("no element", [&] { sequence.GetValue(2, allocator); });
  std::vector<float> few = {1, 2};
  Note("too few", [&] { TensorOver(few, {3}); });
}

struct TwiceKernel {
  void Compute(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    const Ort::ConstValue x = context.GetInput(0);
    const auto info = x.GetTensorTypeAndShapeInfo();
    float* const y = context.GetOutput(0, info.GetShape()).GetTensorMutableData<float>();
    for (size_t i = 0; i < info.GetElementCount(); ++i) y[i] = 2 * x.GetTensorData<float>()[i];
  }
};

struct Twice : Ort::CustomOpBase<Twice, TwiceKernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo*) const { return new TwiceKernel(); }
  const char* GetName() const { return "Twice"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
};

void RunCustomOp(Ort::Env& env) {
  const std::string type =
      tenon::test::TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {int64_t{3}});
  const std::string model = tenon::test::ModelBuilder()
                                .Input("x", type)
                                .CustomNode("test.ops", "Twice", {"x"}, {"y"})
                                .Output("y", type)
                                .Bytes();
  const Twice op;
  Ort::CustomOpDomain domain("test.ops");
  domain.Add(&op);
  Ort::SessionOptions options;
  options.Add(domain);
  Ort::Session session(env, model.data(), model.size(), options);
  std::vector<float> x = {1, 2, 3};
  const Ort::Value feed = TensorOver(x, {3});
  const char *const input = "x", *const output = "y";
  Print("custom", session.Run(Ort::RunOptions(), &input, &feed, 1, &output, 1)[0]);
}

void RunFile(Ort::Env& env, const char* path) {
  Ort::Session session(env, path, Ort::SessionOptions());
  Describe(session);
  std::vector<int64_t> shape = session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
  size_t count = 1;
  for (int64_t& dim : shape) {
    if (dim < 0) dim = 2;
    count *= static_cast<size_t>(dim);
  }
  std::vector<float> data(count);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i * 37 % 17);
  const Ort::AllocatorWithDefaultOptions allocator;
  const auto input = session.GetInputNameAllocated(0, allocator);
  const auto output = session.GetOutputNameAllocated(0, allocator);
  const char *const input_name = input.get(), *const output_name = output.get();
  const Ort::Value feed = TensorOver(data, shape);
  Print("file", session.Run(Ort::RunOptions(), &input_name, &feed, 1, &output_name, 1)[0]);
}

}  // namespace

int main(int count, char** arguments) {
  void* const library = count == 3 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) {
    std::fprintf(stderr, "usage: capi_transcript_cxx LIBRARY MODEL\n");
    return 2;
  }
  const auto get_base = reinterpret_cast<decltype(&OrtGetApiBase)>(dlsym(library, "OrtGetApiBase"));
  Ort::InitApi(get_base()->GetApi(ORT_API_VERSION));
  Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "transcript");
  RunSmallModel(env);
  UseValues();
  RunCustomOp(env);
  RunFile(env, arguments[2]);
  Note("missing file", [&] { Ort::Session(env, "/none.onnx", Ort::SessionOptions()); });
  return 0;
}
