// The mock as a provider that prefers an image layout. It runs convolutions with the channels as
// axis 1 or as the last axis, without pads, strides and groups, and Relu.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "plugin/mock_parts.h"

namespace tenon::test {
namespace {

// "Conv", or "nhwc.Conv" in the internal domain.
OrtStatus* NameOf(const OrtNode* node, std::string& name) {
  const char *domain = nullptr, *op_type = nullptr;
  CHECK_OK(api->Node_GetDomain(node, &domain));
  CHECK_OK(api->Node_GetOperatorType(node, &op_type));
  name = (std::string(domain) == kInternalNhwc ? "nhwc." : "") + std::string(op_type);
  return nullptr;
}

// The declared shape of the node's first input.
OrtStatus* ShapeOfImage(const OrtNode* node, std::vector<int64_t>& shape) {
  size_t count = 0, rank = 0;
  CHECK_OK(api->Node_GetNumInputs(node, &count));
  std::vector<const OrtValueInfo*> inputs(count);
  CHECK_OK(api->Node_GetInputs(node, inputs.data(), count));
  const OrtTypeInfo* type = nullptr;
  CHECK_OK(api->GetValueInfoTypeInfo(inputs[0], &type));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  CHECK_OK(api->CastTypeInfoToTensorInfo(type, &tensor));
  CHECK_OK(api->GetDimensionsCount(tensor, &rank));
  shape.resize(rank);
  return api->GetDimensions(tensor, shape.data(), rank);
}

struct Image {
  std::vector<int64_t> shape;
  float* data = nullptr;
};

OrtStatus* Read(OrtKernelContext* context, size_t index, Image& image) {
  const OrtValue* value = nullptr;
  CHECK_OK(api->KernelContext_GetInput(context, index, &value));
  OrtTensorTypeAndShapeInfo* info = nullptr;
  CHECK_OK(api->GetTensorTypeAndShape(value, &info));
  size_t rank = 0;
  CHECK_OK(api->GetDimensionsCount(info, &rank));
  image.shape.resize(rank);
  CHECK_OK(api->GetDimensions(info, image.shape.data(), rank));
  api->ReleaseTensorTypeAndShapeInfo(info);
  const void* data = nullptr;
  CHECK_OK(api->GetTensorData(value, &data));
  image.data = static_cast<float*>(const_cast<void*>(data));
  return nullptr;
}

OrtStatus* Make(OrtKernelContext* context, Image& image) {
  OrtValue* value = nullptr;
  CHECK_OK(
      api->KernelContext_GetOutput(context, 0, image.shape.data(), image.shape.size(), &value));
  void* data = nullptr;
  CHECK_OK(api->GetTensorMutableData(value, &data));
  image.data = static_cast<float*>(data);
  return nullptr;
}

OrtStatus* Relu(OrtKernelContext* context) {
  Image x, y;
  CHECK_OK(Read(context, 0, x));
  y.shape = x.shape;
  CHECK_OK(Make(context, y));
  int64_t size = 1;
  for (const int64_t dim : x.shape) size *= dim;
  for (int64_t i = 0; i < size; ++i) y.data[i] = std::max(x.data[i], 0.0f);
  return nullptr;
}

// x is [1, c, h, w], or [1, h, w, c]; weights are [m, c, kh, kw].
OrtStatus* Convolve(OrtKernelContext* context, bool is_last) {
  Image x, w, y;
  CHECK_OK(Read(context, 0, x));
  CHECK_OK(Read(context, 1, w));
  const size_t row = is_last ? 1 : 2, channel = is_last ? 3 : 1;
  const int64_t rows = x.shape[row] - w.shape[2] + 1;
  const int64_t columns = x.shape[row + 1] - w.shape[3] + 1;
  if (x.shape[channel] != w.shape[1]) return api->CreateStatus(ORT_EP_FAIL, "other channels");
  y.shape = is_last ? std::vector<int64_t>{1, rows, columns, w.shape[0]}
                    : std::vector<int64_t>{1, w.shape[0], rows, columns};
  CHECK_OK(Make(context, y));
  const auto at = [&](const Image& image, int64_t c, int64_t i, int64_t j) -> float& {
    const std::vector<int64_t>& s = image.shape;
    return image.data[is_last ? (i * s[2] + j) * s[3] + c : (c * s[2] + i) * s[3] + j];
  };
  for (int64_t m = 0; m < w.shape[0]; ++m) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t c = 0; c < w.shape[1]; ++c) {
          for (int64_t p = 0; p < w.shape[2]; ++p) {
            for (int64_t q = 0; q < w.shape[3]; ++q) {
              const float weight = w.data[((m * w.shape[1] + c) * w.shape[2] + p) * w.shape[3] + q];
              sum += weight * at(x, c, i + p, j + q);
            }
          }
        }
        at(y, m, i, j) = sum;
      }
    }
  }
  return nullptr;
}

struct ConvKernel : OrtKernelImpl, Counted {
  ConvKernel() : OrtKernelImpl{} {
    ort_version_supported = control.api_version;
    Compute = [](OrtKernelImpl*, OrtKernelContext* context) noexcept {
      return Convolve(context, true);
    };
    Release = [](OrtKernelImpl* self) noexcept { delete static_cast<ConvKernel*>(self); };
  }
};

}  // namespace

OrtStatus* ClaimByLayout(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  size_t count = 0;
  CHECK_OK(api->Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode*> nodes(count);
  CHECK_OK(api->Graph_GetNodes(graph, nodes.data(), count));
  std::string seen;
  std::vector<const OrtNode*> convolutions;
  for (const OrtNode* const node : nodes) {
    std::string name;
    CHECK_OK(NameOf(node, name));
    seen += (seen.empty() ? "" : " ") + name;
    if (name == "nhwc.Conv") convolutions.push_back(node);
    if (control.layout.takes.count(name) == 0) continue;
    if (name == "nhwc.Conv") {
      std::vector<int64_t> shape;
      CHECK_OK(ShapeOfImage(node, shape));
      if (shape.size() != 4 || shape[3] > control.layout.most_channels) continue;
    }
    if (control.claims != MockClaims::kKernels) {
      CHECK_OK(ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &node, 1, nullptr));
      continue;
    }
    const OrtKernelDef* kernel = nullptr;
    CHECK_OK(ep_api->EpGraphSupportInfo_LookUpKernel(support, node, &kernel));
    // Claiming the standard's form only makes the host offer the other one.
    if (kernel != nullptr || name == "Conv") {
      CHECK_OK(ep_api->EpGraphSupportInfo_AddSingleNode(support, node));
    }
  }
  control.layout.seen.push_back(seen);
  if (control.layout.fails_later && seen.find("nhwc.") != std::string::npos) {
    return api->CreateStatus(ORT_EP_FAIL, "no more");
  }
  // With the Relu between them they cannot be one node.
  if (control.claims == MockClaims::kUnfusable && !convolutions.empty()) {
    return ep_api->EpGraphSupportInfo_AddNodesToFuse(support, convolutions.data(),
                                                     convolutions.size(), nullptr);
  }
  return nullptr;
}

OrtStatus* WorkOf(const OrtGraph* group, std::function<OrtStatus*(OrtKernelContext*)>& work) {
  const OrtNode* node = nullptr;
  CHECK_OK(api->Graph_GetNodes(group, &node, 1));
  std::string name;
  CHECK_OK(NameOf(node, name));
  if (name == "Relu") work = Relu;
  if (name == "Conv") work = [](OrtKernelContext* context) { return Convolve(context, false); };
  if (name == "nhwc.Conv") work = [](OrtKernelContext* context) { return Convolve(context, true); };
  return work == nullptr ? api->CreateStatus(ORT_EP_FAIL, name.c_str()) : nullptr;
}

OrtStatus* ORT_API_CALL CreateConv(void*, const OrtKernelInfo*, OrtKernelImpl** out) noexcept {
  ENTER("CreateConv");
  *out = new ConvKernel();
  return nullptr;
}

}  // namespace tenon::test
