// Runs a model with profiling in a build whose traces go to the console, for console_trace_test.py.
// Usage: profiled_run MODEL PICTURE
// PICTURE holds the values of the one input of shape [1, 1, 8, 8] as little-endian floats.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/mapped_file.h"
#include "ir/onnx_reader.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/environment.h"
#include "runtime/profiler.h"
#include "runtime/session.h"

namespace tenon {
namespace {

constexpr int kRuns = 2;

Result<Tensor> ReadPicture(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(path));
  TENON_ASSIGN_OR_RETURN(Tensor picture, Tensor::Allocate(DataType::kFloat, {1, 1, 8, 8}));
  if (bytes.size() != picture.bytes()) return InvalidArgument("'{}': no 8 x 8 floats", path);
  std::memcpy(picture.data<float>(), bytes.data(), bytes.size());
  return picture;
}

Status RunProfiled(const std::string& model_path, const std::string& picture_path) {
  Environment environment;
  // Each node of the model runs unchanged, because the test counts them.
  SessionOptions options{.optimization_level = OptimizationLevel::kNone};
  SessionParts parts;
  parts.shape_functions = &OpShapeFunctions();
  parts.providers.push_back(MakeCpuProvider());
  TENON_ASSIGN_OR_RETURN(
      parts.profiler, Profiler::Open("no/such/folder/trace", options.config, environment.logger()));
  TENON_ASSIGN_OR_RETURN(Model model, ReadModel(model_path));
  TENON_ASSIGN_OR_RETURN(const auto session, Session::Create(environment, std::move(model),
                                                             std::move(options), std::move(parts)));
  TENON_ASSIGN_OR_RETURN(const Value picture, ReadPicture(picture_path));
  const std::string_view input = session->inputs()[0].name, output = session->outputs()[0].name;
  for (int run = 0; run < kRuns; ++run) {
    Value scores;
    TENON_RETURN_IF_ERROR(session->Run({}, {&input, 1}, {&picture, 1}, {&output, 1}, {&scores, 1}));
    const float* const score = scores.tensor().data<float>();
    const float* const end = score + scores.tensor().size();
    std::printf("digit %d\n", static_cast<int>(std::max_element(score, end) - score));
  }
  std::printf("before the end\n");
  TENON_ASSIGN_OR_RETURN(const std::string name, session->EndProfiling());
  std::printf("after the end '%s'\n", name.c_str());
  return OkStatus();
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: profiled_run MODEL PICTURE\n", stderr);
    return 2;
  }
  const tenon::Status status = tenon::RunProfiled(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
