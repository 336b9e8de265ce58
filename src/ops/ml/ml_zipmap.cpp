// ai.onnx.ml: ZipMap, a map from class labels to scores for every row.
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_scores.h"

namespace tenon {
namespace {

struct ZipMapAttrs {
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  static constexpr auto Fields() {
    return std::tuple(Field("classlabels_int64s", &ZipMapAttrs::integers),
                      Field("classlabels_strings", &ZipMapAttrs::strings));
  }
};

Status InferZipMap(const ZipMapAttrs& attrs, ShapeContext& context) {
  const DataType key = attrs.strings.empty() ? DataType::kInt64 : DataType::kString;
  return context.SetOutputType(
      0, ValueType::Sequence(ValueType::Map(key, ValueType::Tensor(DataType::kFloat))));
}

// ZipMap-1. The maps share one tensor of keys.
class ZipMapKernel final : public StatefulKernel<InferZipMap> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    if (attrs_.strings.empty() == attrs_.integers.empty()) {
      return InvalidArgument("expected either integers or strings as labels");
    }
    keys_ = attrs_.strings.empty()
                ? Tensor::Of<int64_t>({static_cast<int64_t>(attrs_.integers.size())},
                                      std::span<const int64_t>(attrs_.integers))
                : Tensor::Of<std::string>({static_cast<int64_t>(attrs_.strings.size())},
                                          std::span<const std::string>(attrs_.strings));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& input = context.Input(0);
    TENON_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(input.shape()));
    if (static_cast<int64_t>(sizes.columns) != keys_.size()) {
      return InvalidArgument("input 0: expected {} columns, one for each label, got shape {}",
                             keys_.size(), input.shape());
    }
    // The input's memory may be reused after the run.
    TENON_ASSIGN_OR_RETURN(Tensor scores, input.Clone());
    auto sequence = std::make_shared<Sequence>();
    sequence->elements.reserve(sizes.rows);
    for (size_t row = 0; row < sizes.rows; ++row) {
      auto map = std::make_shared<Map>();
      map->keys = keys_;
      map->values = Tensor::View(DataType::kFloat, Shape({keys_.size()}),
                                 scores.data<float>() + row * sizes.columns, scores.owner());
      sequence->elements.emplace_back(std::move(map));
    }
    context.SetOutput(0, Value(std::move(sequence)));
    return OkStatus();
  }

 private:
  Tensor keys_;
};

constexpr OpRow kRows[] = {
    OpClass<ZipMapKernel>(
        "ZipMap",
        {.domain = "ai.onnx.ml", .types = kFloat32Only, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(MlZipmap, kRows);

}  // namespace tenon
