#include "ir/onnx_writer.h"

#include "base/mapped_file.h"
#include "ir/graph_writer.h"
#include "ir/inference.h"
#include "ir/ort_writer.h"

namespace tenon {
namespace {

Status WriteTrainingInfo(const TrainingInfo& info, const WriteScope& scope,
                         MessageBuilder<TrainingField>& message) {
  if (info.initialization) {
    MessageBuilder<GraphField> graph(message, TrainingField::kInitialization);
    TENON_RETURN_IF_ERROR(WriteGraph(*info.initialization, nullptr, scope, graph));
  }
  if (info.algorithm) {
    MessageBuilder<GraphField> graph(message, TrainingField::kAlgorithm);
    TENON_RETURN_IF_ERROR(WriteGraph(*info.algorithm, nullptr, scope, graph));
  }
  WriteEntries(info.initialization_binding, message, TrainingField::kInitializationBinding);
  WriteEntries(info.update_binding, message, TrainingField::kUpdateBinding);
  return OkStatus();
}

Status WriteGraphs(const Model& model, const WriteScope& scope,
                   MessageBuilder<ModelField>& message) {
  {
    MessageBuilder<GraphField> graph(message, ModelField::kGraph);
    TENON_RETURN_IF_ERROR(WriteGraph(*model.graph, nullptr, scope, graph));
  }
  for (const TrainingInfo& info : model.training_info) {
    MessageBuilder<TrainingField> builder(message, ModelField::kTrainingInfo);
    TENON_RETURN_IF_ERROR(WriteTrainingInfo(info, scope, builder));
  }
  for (const Function& function : model.functions) {
    MessageBuilder<FunctionField> builder(message, ModelField::kFunctions);
    Status status = WriteFunction(function, *scope.context, builder);
    if (!status.ok()) {
      return std::move(status).WithContext(Format("function '{}'", function.name));
    }
  }
  return OkStatus();
}

Result<std::string> Serialize(const Model& model, const WriteOptions& options,
                              ExternalDataFile* external_data) {
  std::string bytes;
  MessageBuilder<ModelField> message(bytes);
  message.add_int64(ModelField::kIrVersion, model.ir_version);
  WriteText(model.producer_name, message, ModelField::kProducerName);
  WriteText(model.producer_version, message, ModelField::kProducerVersion);
  WriteText(model.domain, message, ModelField::kDomain);
  if (model.model_version) message.add_int64(ModelField::kModelVersion, *model.model_version);
  WriteText(model.doc_string, message, ModelField::kDocString);
  OpsetImports opsets = model.opsets;
  WriteContext context = {.ir_version = model.ir_version,
                          .external_data = external_data,
                          .place = &options.place_initializer};
  TENON_RETURN_IF_ERROR(WriteGraphs(model, {&opsets, &context}, message));
  for (const auto& [domain, version] : opsets) {
    MessageBuilder<OpsetField> import(message, ModelField::kOpsetImport);
    import.add_string(OpsetField::kDomain, domain);
    import.add_int64(OpsetField::kVersion, version);
  }
  WriteEntries(model.metadata, message, ModelField::kMetadata);
  for (const std::string& configuration : model.device_configurations) {
    message.add_message(ModelField::kConfiguration, configuration);
  }
  if (bytes.size() > kMaxMessageBytes) {
    return InvalidArgument("the model has {} bytes; no protobuf reader takes 2 GiB or more",
                           bytes.size());
  }
  return bytes;
}

bool IsPlainFileName(const std::string& name) {
  return name != "." && name != ".." && name.find_first_of("/\\") == std::string::npos;
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Status WriteOrt(const Model& model, const WriteOptions& options,
                FunctionRef<Status(std::span<const std::byte>)> use) {
  if (!options.external_data_file.empty() || options.place_initializer) {
    return InvalidArgument("a file in the ORT format cannot have external data");
  }
  if (options.shape_functions == nullptr) return WriteOrtModel(model, use);
  Model replaced = model.CopyWithoutGraphs();
  replaced.graph = model.graph->Clone();
  TENON_RETURN_IF_ERROR(ReplaceForOrt(replaced));
  TENON_RETURN_IF_ERROR(InferTypes(*replaced.graph, *options.shape_functions));
  return WriteOrtModel(replaced, use);
}

}  // namespace

Result<std::string> WriteModel(const Model& model, const WriteOptions& options,
                               const std::string& folder) {
  if (options.format == ModelFormat::kOrt) {
    std::string bytes;
    TENON_RETURN_IF_ERROR(WriteOrt(model, options, [&](std::span<const std::byte> written) {
      bytes.assign(reinterpret_cast<const char*>(written.data()), written.size());
      return OkStatus();
    }));
    return bytes;
  }
  if (options.external_data_file.empty()) return Serialize(model, options, nullptr);
  if (!IsPlainFileName(options.external_data_file)) {
    return InvalidArgument(
        "expected the name of a file beside the model for external data, got '{}'",
        options.external_data_file);
  }
  ExternalDataFile file = {options.external_data_file, options.external_data_threshold, {}, 0};
  TENON_ASSIGN_OR_RETURN(std::string bytes, Serialize(model, options, &file));
  TENON_RETURN_IF_ERROR(WriteFileAtomically(folder + file.name, file.parts));
  return bytes;
}

Result<std::string> WriteTensorMessage(const std::string& name, const Tensor& tensor) {
  std::string bytes;
  MessageBuilder<TensorField> message(bytes);
  WriteContext context;
  TENON_RETURN_IF_ERROR(WriteTensor(name, tensor, context, message));
  return bytes;
}

Status WriteModelFile(const Model& model, const std::string& path, const WriteOptions& options) {
  const bool has_ort_name = options.format == ModelFormat::kUnspecified && HasOrtName(path);
  if (has_ort_name || options.format == ModelFormat::kOrt) {
    return WriteOrt(model, options, [&](std::span<const std::byte> bytes) {
      return WriteFileAtomically(path, {&bytes, 1});
    });
  }
  const std::string folder = path.substr(0, path.find_last_of('/') + 1);
  TENON_ASSIGN_OR_RETURN(const std::string bytes, WriteModel(model, options, folder));
  const std::span<const std::byte> parts[] = {BytesOf(bytes)};
  return WriteFileAtomically(path, parts);
}

}  // namespace tenon
