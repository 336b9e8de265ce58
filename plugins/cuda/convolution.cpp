// Conv by cuDNN, with the channels innermost.

#include "operators.h"
#include "product.h"
#include "window.h"

namespace cuda {
namespace {

int DnnType(DataType type) {
  return type == DataType::kFloat16    ? CUDNN_DATA_HALF
         : type == DataType::kBFloat16 ? CUDNN_DATA_BFLOAT16
                                       : CUDNN_DATA_FLOAT;
}

struct ConvolutionShape {
  int images = 0;
  int channels = 0;  // of the input
  int filters = 0;
  int groups = 1;
  Window window;
};

// What cuDNN's objects describe; released with it.
class Descriptors {
 public:
  Descriptors() = default;
  ~Descriptors() {
    const DnnLibrary& dnn = *LoadDnn();
    for (cudnnTensorDescriptor_t tensor : {x, y, bias}) {
      if (tensor) dnn.cudnnDestroyTensorDescriptor(tensor);
    }
    if (w) dnn.cudnnDestroyFilterDescriptor(w);
    if (convolution) dnn.cudnnDestroyConvolutionDescriptor(convolution);
    if (activation) dnn.cudnnDestroyActivationDescriptor(activation);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  cudnnTensorDescriptor_t x = nullptr;
  cudnnTensorDescriptor_t y = nullptr;
  cudnnTensorDescriptor_t bias = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
};

class ConvolutionCall : public EpilogueCall {
 public:
  // Operands: x, w, then the bias and the residual if there are such.
  ConvolutionCall(Context& context, const TensorRef& x, const TensorRef& w,
                  const ConvolutionShape& shape)
      : EpilogueCall({x, w}), context_(context), type_(x->type), shape_(shape) {}
  ConvolutionCall(const ConvolutionCall& other)
      : EpilogueCall(other),
        context_(other.context_),
        type_(other.type_),
        shape_(other.shape_),
        has_bias_(other.has_bias_),
        has_residual_(other.has_residual_),
        has_relu_(other.has_relu_) {}

  const char* name() const override { return "convolution"; }
  std::shared_ptr<Call> Add(Planner& planner, const Shape& shape,
                            const TensorRef& other) const override;
  std::shared_ptr<Call> Activate(Activation activation) const override;
  Status Prepare() override;
  Status Run(CUstream stream, std::span<void* const> arguments) override;
  std::shared_ptr<Call> WithBias(const TensorRef& bias) const;

 private:
  Status Describe();
  Status ChooseAlgorithm();
  Status AskForAlgorithm(Context::ChosenConvolution& chosen);

  Context& context_;
  DataType type_;
  ConvolutionShape shape_;
  bool has_bias_ = false;
  bool has_residual_ = false;
  bool has_relu_ = false;
  std::unique_ptr<Descriptors> descriptors_;
  cudnnHandle_t handle_ = nullptr;
  int algorithm_ = 0;
};

std::shared_ptr<Call> ConvolutionCall::WithBias(const TensorRef& bias) const {
  auto extended = std::make_shared<ConvolutionCall>(*this);
  extended->operands.push_back(bias);
  extended->has_bias_ = true;
  return extended;
}

// cuDNN adds a residual where it adds a bias.
std::shared_ptr<Call> ConvolutionCall::Add(Planner& planner, const Shape& shape,
                                           const TensorRef& other) const {
  if (has_relu_ || !has_bias_ || has_residual_ || other->type != type_ || other->shape != shape) {
    return nullptr;
  }
  if (!planner.Store(other).ok()) return nullptr;
  if (!AreSameLayout(shape, other->strides, strides) || other->stored_type != type_) return nullptr;
  auto extended = std::make_shared<ConvolutionCall>(*this);
  extended->operands.push_back(other);
  extended->has_residual_ = true;
  return extended;
}

std::shared_ptr<Call> ConvolutionCall::Activate(Activation activation) const {
  if (has_relu_ || !has_bias_ || activation != Activation::kRelu) return nullptr;
  auto extended = std::make_shared<ConvolutionCall>(*this);
  extended->has_relu_ = true;
  return extended;
}

Status ConvolutionCall::Describe() {
  const DnnLibrary& dnn = *LoadDnn();
  descriptors_ = std::make_unique<Descriptors>();
  Descriptors& d = *descriptors_;
  const Window& w = shape_.window;
  const int type = DnnType(type_);
  const auto number = [](int64_t value) { return static_cast<int>(value); };
  const auto tensor = [&](cudnnTensorDescriptor_t& made, int n, int c, int64_t height,
                          int64_t width) {
    PLUGIN_RETURN_IF_ERROR(
        CheckDnn(dnn.cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor"));
    return CheckDnn(dnn.cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NHWC, type, n, c,
                                                   number(height), number(width)),
                    "cudnnSetTensor4dDescriptor");
  };
  PLUGIN_RETURN_IF_ERROR(tensor(d.x, shape_.images, shape_.channels, w.input[0], w.input[1]));
  PLUGIN_RETURN_IF_ERROR(tensor(d.y, shape_.images, shape_.filters, w.output[0], w.output[1]));
  PLUGIN_RETURN_IF_ERROR(tensor(d.bias, 1, shape_.filters, 1, 1));
  PLUGIN_RETURN_IF_ERROR(
      CheckDnn(dnn.cudnnCreateFilterDescriptor(&d.w), "cudnnCreateFilterDescriptor"));
  PLUGIN_RETURN_IF_ERROR(
      CheckDnn(dnn.cudnnSetFilter4dDescriptor(d.w, type, CUDNN_TENSOR_NHWC, shape_.filters,
                                              shape_.channels / shape_.groups, number(w.kernel[0]),
                                              number(w.kernel[1])),
               "cudnnSetFilter4dDescriptor"));
  PLUGIN_RETURN_IF_ERROR(CheckDnn(dnn.cudnnCreateConvolutionDescriptor(&d.convolution),
                                  "cudnnCreateConvolutionDescriptor"));
  PLUGIN_RETURN_IF_ERROR(CheckDnn(
      dnn.cudnnSetConvolution2dDescriptor(d.convolution, number(w.pads[0]), number(w.pads[1]),
                                          number(w.strides[0]), number(w.strides[1]),
                                          number(w.dilations[0]), number(w.dilations[1]),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
      "cudnnSetConvolution2dDescriptor"));
  PLUGIN_RETURN_IF_ERROR(CheckDnn(dnn.cudnnSetConvolutionGroupCount(d.convolution, shape_.groups),
                                  "cudnnSetConvolutionGroupCount"));
  const int math = type_ != DataType::kFloat   ? CUDNN_TENSOR_OP_MATH
                   : context_.options.use_tf32 ? CUDNN_DEFAULT_MATH
                                               : CUDNN_FMA_MATH;
  PLUGIN_RETURN_IF_ERROR(CheckDnn(dnn.cudnnSetConvolutionMathType(d.convolution, math),
                                  "cudnnSetConvolutionMathType"));
  PLUGIN_RETURN_IF_ERROR(CheckDnn(dnn.cudnnCreateActivationDescriptor(&d.activation),
                                  "cudnnCreateActivationDescriptor"));
  return CheckDnn(dnn.cudnnSetActivationDescriptor(
                      d.activation, has_relu_ ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                      CUDNN_PROPAGATE_NAN, 0),
                  "cudnnSetActivationDescriptor");
}

// cuDNN takes milliseconds to answer, and networks repeat their convolutions.
Status ConvolutionCall::ChooseAlgorithm() {
  const Window& window = shape_.window;
  std::vector<int64_t> key = {
      static_cast<int64_t>(type_), shape_.images, shape_.channels, shape_.filters, shape_.groups,
      has_bias_ && !has_relu_};
  for (const auto& pair : {window.input, window.output, window.kernel, window.strides,
                           window.dilations, window.pads}) {
    key.insert(key.end(), pair, pair + 2);
  }
  auto [it, is_new] = context_.convolutions.try_emplace(std::move(key));
  if (is_new) {
    if (const Status status = AskForAlgorithm(it->second); !status.ok()) {
      context_.convolutions.erase(it);
      return status;
    }
  }
  algorithm_ = it->second.algorithm;
  workspace_bytes = it->second.workspace_bytes;
  return Status();
}

// The quickest by cuDNN's own estimate. Without an activation only one algorithm adds a bias.
Status ConvolutionCall::AskForAlgorithm(Context::ChosenConvolution& chosen) {
  const DnnLibrary& dnn = *LoadDnn();
  const Descriptors& d = *descriptors_;
  cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {};
  int count = 0;
  PLUGIN_RETURN_IF_ERROR(CheckDnn(
      dnn.cudnnGetConvolutionForwardAlgorithm(handle_, d.x, d.w, d.convolution, d.y,
                                              CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found),
      "cudnnGetConvolutionForwardAlgorithm_v7"));
  const bool is_restricted = has_bias_ && !has_relu_;
  for (int i = 0; i < count; ++i) {
    if (found[i].status != 0) continue;
    if (is_restricted && found[i].algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
      continue;
    chosen.algorithm = found[i].algo;
    return CheckDnn(
        dnn.cudnnGetConvolutionForwardWorkspaceSize(handle_, d.x, d.w, d.convolution, d.y,
                                                    chosen.algorithm, &chosen.workspace_bytes),
        "cudnnGetConvolutionForwardWorkspaceSize");
  }
  return Failure("cuDNN has no algorithm for the convolution");
}

Status ConvolutionCall::Prepare() {
  const std::lock_guard lock(context_.device.dnn_mutex());
  PLUGIN_ASSIGN_OR_RETURN(handle_, context_.device.dnn());
  PLUGIN_RETURN_IF_ERROR(Describe());
  return ChooseAlgorithm();
}

Status ConvolutionCall::Run(CUstream stream, std::span<void* const> arguments) {
  const DnnLibrary& dnn = *LoadDnn();
  const Descriptors& d = *descriptors_;
  size_t next = 2;
  const void* bias = has_bias_ ? arguments[next++] : nullptr;
  const void* residual = has_residual_ ? arguments[next++] : nullptr;
  void* y = arguments[next++];
  void* workspace = workspace_bytes > 0 ? arguments[next] : nullptr;
  const float one = 1;
  const float zero = 0;
  const std::lock_guard lock(context_.device.dnn_mutex());
  PLUGIN_RETURN_IF_ERROR(CheckDnn(dnn.cudnnSetStream(handle_, stream), "cudnnSetStream"));
  if (!bias) {
    return CheckDnn(dnn.cudnnConvolutionForward(handle_, &one, d.x, arguments[0], d.w, arguments[1],
                                                d.convolution, algorithm_, workspace,
                                                workspace_bytes, &zero, d.y, y),
                    "cudnnConvolutionForward");
  }
  return CheckDnn(dnn.cudnnConvolutionBiasActivationForward(
                      handle_, &one, d.x, arguments[0], d.w, arguments[1], d.convolution,
                      algorithm_, workspace, workspace_bytes, residual ? &one : &zero, d.y,
                      residual ? residual : y, d.bias, bias, d.activation, d.y, y),
                  "cudnnConvolutionBiasActivationForward");
}

// The tensor with its channels innermost.
Result<TensorRef> ChannelsLast(Planner& planner, const TensorRef& tensor) {
  TensorRef source = tensor;
  if (tensor->stored_type != tensor->type) {  // a view of a shorter type
    source = planner.Expression(tensor->type, tensor->shape, "$0", {tensor});
  }
  return planner.InLayout(source, ChannelsLastStrides(tensor->shape));
}

// cuDNN pads both ends of an axis alike. Zeros that only the end has are added to the input.
bool IsPaddedAlike(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t extent = (w.kernel[axis] - 1) * w.dilations[axis] + 1;
    if ((w.input[axis] + 2 * w.pads[axis] - extent) / w.strides[axis] + 1 != w.output[axis]) {
      return false;
    }
  }
  return true;
}

Status LowerConv(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const TensorRef w = planner.Input(node, 1);
  const Shape& xs = x->shape;
  const Shape& ws = w->shape;
  const int64_t groups = node.Int("group", 1);
  if (xs.size() < 3 || xs.size() > 4 || ws.size() != xs.size()) {
    return Failure("expected one or two spatial axes, got {} and {}", xs, ws);
  }
  if (groups < 1 || xs[1] != ws[1] * groups || ws[0] % groups != 0) {
    return Failure("expected {} groups of {} channels, got {} and {}", groups, ws[1], xs, ws);
  }
  PLUGIN_ASSIGN_OR_RETURN(const Window window,
                          ReadWindow(node, xs, {ws.begin() + 2, ws.end()}, /*ceil_mode=*/false));
  Shape shape = WindowResult(window, xs, ws[0]);
  if (!IsPaddedAlike(window) || ElementCount(shape) == 0 || !ContextOf(planner).HasDnn()) {
    return FindGenerated(node)->lower(planner, node);
  }
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef input, ChannelsLast(planner, x));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef filters, ChannelsLast(planner, w));
  const ConvolutionShape described{.images = static_cast<int>(xs[0]),
                                   .channels = static_cast<int>(xs[1]),
                                   .filters = static_cast<int>(ws[0]),
                                   .groups = static_cast<int>(groups),
                                   .window = window};
  auto plain = std::make_shared<ConvolutionCall>(ContextOf(planner), input, filters, described);
  plain->strides = ChannelsLastStrides(shape);
  if (!plain->Prepare().ok()) return FindGenerated(node)->lower(planner, node);
  std::shared_ptr<Call> call = plain;
  if (planner.HasInput(node, 2)) {
    PLUGIN_ASSIGN_OR_RETURN(const TensorRef bias, planner.Contiguous(planner.Input(node, 2)));
    call = plain->WithBias(bias);
  }
  return planner.SetOutput(node, 0, planner.FromCall(x->type, std::move(shape), std::move(call)));
}

bool HasOneOrTwoSpatialAxes(const Graph& graph, const Node& node) {
  const auto& shape = graph.value(node.inputs[1]).shape;
  return shape && (shape->size() == 3 || shape->size() == 4);
}

}  // namespace

std::span<const Operator> ConvolutionOperators() {
  static constexpr Operator kRows[] = {
      {.type = "Conv", .lower = LowerConv, .types = kFloats, .accepts = HasOneOrTwoSpatialAxes},
  };
  return kRows;
}

}  // namespace cuda
