#include "ir/onnx_reader.h"

#include <cstring>
#include <limits>

#include "base/confined_path.h"
#include "base/mapped_file.h"
#include "ir/graph_reader.h"
#include "ir/onnx_fields.h"
#include "ir/ort_reader.h"
#include "ir/schema.h"
#include "ir/tensor_reader.h"

namespace tenon {
namespace {

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ReadContext MakeContext(std::string_view bytes, std::shared_ptr<void> owner,
                        std::vector<std::string> external_data_folders,
                        const ReadOptions& options = {}) {
  ExternalData external_data(std::move(external_data_folders), options.access);
  for (const auto& [name, content] : options.external_files) {
    void* const owned =
        options.do_external_files_stay ? const_cast<std::byte*>(content.data()) : nullptr;
    external_data.Add(name, content, {std::shared_ptr<void>(), owned});
  }
  return {WireErrors(bytes.data()),
          std::move(owner),
          std::move(external_data),
          kNewestIrVersion,
          nullptr,
          options.initializers.empty() ? nullptr : &options.initializers,
          options.other_domains,
          options.takes_any_domain};
}

Status ReadOpsetImport(std::string_view bytes, WireErrors& errors, OpsetImports& opsets) {
  std::string_view domain;
  int64_t version = 0;
  WireReader reader("OperatorSetIdProto", bytes, errors);
  while (reader.Next()) {
    if (reader.field<OpsetField>() == OpsetField::kDomain) {
      domain = reader.Bytes();
    } else if (reader.field<OpsetField>() == OpsetField::kVersion) {
      version = reader.Int();
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  if (domain == "ai.onnx") domain = "";
  if (version < 0 || version > std::numeric_limits<int32_t>::max()) {
    return InvalidGraph("opset import of domain '{}': {} is not a version", domain, version);
  }
  // Of several for one domain the last counts, as with onnxruntime.
  opsets.insert_or_assign(std::string(domain), static_cast<int32_t>(version));
  return OkStatus();
}

Result<std::unique_ptr<Graph>> ReadGraph(std::string_view bytes, const GraphScope& scope,
                                         ReadContext& context) {
  TENON_ASSIGN_OR_RETURN(GraphFields fields, ReadGraphFields(bytes, context));
  return BuildGraph(std::move(fields), scope, context);
}

// The parts of a FunctionProto that need its opset imports, and those of its graph.
struct FunctionFields {
  GraphFields graph;
  std::vector<std::string_view> attributes;
};

Result<FunctionFields> ReadFunctionFields(std::string_view bytes, ReadContext& context,
                                          Function& function) {
  FunctionFields fields;
  const auto declaration = [](std::string_view name) { return ValueDeclaration{name, {}, "", {}}; };
  WireReader reader("FunctionProto", bytes, context.errors);
  while (reader.Next()) {
    switch (reader.field<FunctionField>()) {
      case FunctionField::kName:
        function.name = reader.Bytes();
        break;
      case FunctionField::kInput:
        fields.graph.inputs.push_back(declaration(reader.Bytes()));
        break;
      case FunctionField::kOutput:
        fields.graph.outputs.push_back(declaration(reader.Bytes()));
        break;
      case FunctionField::kAttribute:
        function.required_attributes.emplace_back(reader.Bytes());
        break;
      case FunctionField::kNode:
        fields.graph.nodes.push_back(reader.Bytes());
        break;
      case FunctionField::kDocString:
        function.doc_string = reader.Bytes();
        break;
      case FunctionField::kOpsetImport:
        TENON_RETURN_IF_ERROR(ReadOpsetImport(reader.Bytes(), context.errors, function.opsets));
        break;
      case FunctionField::kDomain:
        function.domain = reader.Bytes();
        break;
      case FunctionField::kAttributeProto:
        fields.attributes.push_back(reader.Bytes());
        break;
      case FunctionField::kValueInfo:
        fields.graph.value_infos.push_back(reader.Bytes());
        break;
      case FunctionField::kOverload:
        function.overload = reader.Bytes();
        break;
      case FunctionField::kMetadata:
        function.metadata.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  if (function.domain == "ai.onnx") function.domain = "";
  return fields;
}

Status BuildFunction(FunctionFields fields, ReadContext& context, Function& function) {
  const GraphScope scope = {
      .opsets = &function.opsets, .in_function = true, .importer = "function"};
  for (const std::string_view bytes : fields.attributes) {
    TENON_ASSIGN_OR_RETURN(Attribute attribute, ReadFunctionAttribute(bytes, scope, context));
    function.attributes.push_back(std::move(attribute));
  }
  fields.graph.name = function.name;
  TENON_ASSIGN_OR_RETURN(function.body, BuildGraph(std::move(fields.graph), scope, context));
  return OkStatus();
}

Result<Function> ReadFunctionProto(std::string_view bytes, ReadContext& context) {
  Function function;
  TENON_ASSIGN_OR_RETURN(FunctionFields fields, ReadFunctionFields(bytes, context, function));
  Status status = BuildFunction(std::move(fields), context, function);
  if (!status.ok() && !context.errors.failed()) {
    return Error(std::move(status).WithContext(Format("function '{}'", function.name)));
  }
  TENON_RETURN_IF_ERROR(status);
  return function;
}

Result<TrainingInfo> ReadTrainingInfo(std::string_view bytes, const OpsetImports& opsets,
                                      ReadContext& context) {
  TrainingInfo info;
  const GraphScope scope = {.opsets = &opsets, .may_use_others_values = true};
  WireReader reader("TrainingInfoProto", bytes, context.errors);
  while (reader.Next()) {
    switch (reader.field<TrainingField>()) {
      case TrainingField::kInitialization: {
        TENON_ASSIGN_OR_RETURN(info.initialization, ReadGraph(reader.Bytes(), scope, context));
        break;
      }
      case TrainingField::kAlgorithm: {
        TENON_ASSIGN_OR_RETURN(info.algorithm, ReadGraph(reader.Bytes(), scope, context));
        break;
      }
      case TrainingField::kInitializationBinding:
        info.initialization_binding.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
      case TrainingField::kUpdateBinding:
        info.update_binding.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  return info;
}

// The messages of a ModelProto that need its IR version and opset imports, in whatever order the
// file has them.
struct ModelFields {
  std::vector<std::string_view> graphs;
  std::vector<std::string_view> functions;
  std::vector<std::string_view> training_info;
};

Result<ModelFields> ReadModelFields(std::string_view bytes, ReadContext& context, Model& model) {
  ModelFields fields;
  WireReader reader("ModelProto", bytes, context.errors);
  while (reader.Next()) {
    switch (reader.field<ModelField>()) {
      case ModelField::kIrVersion:
        model.ir_version = reader.Int();
        break;
      case ModelField::kProducerName:
        model.producer_name = reader.Bytes();
        break;
      case ModelField::kProducerVersion:
        model.producer_version = reader.Bytes();
        break;
      case ModelField::kDomain:
        model.domain = reader.Bytes();
        break;
      case ModelField::kModelVersion:
        model.model_version = reader.Int();
        break;
      case ModelField::kDocString:
        model.doc_string = reader.Bytes();
        break;
      case ModelField::kGraph:
        fields.graphs.push_back(reader.Bytes());
        break;
      case ModelField::kOpsetImport:
        TENON_RETURN_IF_ERROR(ReadOpsetImport(reader.Bytes(), context.errors, model.opsets));
        break;
      case ModelField::kMetadata:
        model.metadata.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
      case ModelField::kTrainingInfo:
        fields.training_info.push_back(reader.Bytes());
        break;
      case ModelField::kFunctions:
        fields.functions.push_back(reader.Bytes());
        break;
      case ModelField::kConfiguration:
        model.device_configurations.emplace_back(reader.Bytes());
        break;
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  return fields;
}

Status CheckVersions(const Model& model, const ModelFields& fields) {
  if (fields.graphs.size() != 1) {
    return InvalidProtobuf("expected an ONNX model with one graph, got {} graphs",
                           fields.graphs.size());
  }
  if (model.ir_version <= 0) return Fail("the model has no IR version");
  if (model.ir_version > kNewestIrVersion) {
    return Fail("the model has IR version {}; the newest supported one is {}", model.ir_version,
                kNewestIrVersion);
  }
  if (model.opsets.empty()) {
    return Fail(
        "the model has no opset import: it must say which version of each operator set it uses");
  }
  return OkStatus();
}

Result<Model> ReadModelProto(std::string_view bytes, ReadContext& context) {
  if (bytes.starts_with("version https://git-lfs")) {
    return InvalidProtobuf("this is a pointer of Git LFS: 'git lfs pull' fetches the model");
  }
  Model model;
  TENON_ASSIGN_OR_RETURN(const ModelFields fields, ReadModelFields(bytes, context, model));
  TENON_RETURN_IF_ERROR(CheckVersions(model, fields));
  context.ir_version = model.ir_version;
  for (const std::string& domain : context.other_domains) {
    if (NewestOpset(domain) == 0) model.opsets.try_emplace(domain, kNewestOtherOpset);
  }
  for (const std::string_view function_bytes : fields.functions) {
    TENON_ASSIGN_OR_RETURN(Function function, ReadFunctionProto(function_bytes, context));
    if (!function.opsets.empty()) {
      model.functions.push_back(std::move(function));
      continue;
    }
    return InvalidGraph("function '{}' has no opset import", function.name);
  }
  TENON_ASSIGN_OR_RETURN(
      model.graph,
      ReadGraph(fields.graphs[0], {.opsets = &model.opsets, .is_main = true}, context));
  for (const std::string_view info_bytes : fields.training_info) {
    TENON_ASSIGN_OR_RETURN(TrainingInfo info, ReadTrainingInfo(info_bytes, model.opsets, context));
    model.training_info.push_back(std::move(info));
  }
  model.external_places = context.external_places;
  return model;
}

// The same for a file in the ORT format.
Result<Model> ReadOrtModel(std::span<const std::byte> bytes, std::shared_ptr<void> owner,
                           const ReadOptions& options) {
  // FlatBuffers align numbers in relation to the first byte.
  std::vector<uint64_t> aligned;
  const void* start = bytes.data();
  if (reinterpret_cast<uintptr_t>(start) % sizeof(uint64_t) != 0) {
    aligned.resize(bytes.size() / sizeof(uint64_t) + 1);
    start = std::memcpy(aligned.data(), bytes.data(), bytes.size());
  }
  TENON_ASSIGN_OR_RETURN(const std::string message,
                         OrtModelMessage({static_cast<const std::byte*>(start), bytes.size()}));
  ReadContext context = MakeContext(message, nullptr, {}, options);
  context.external_data.Add(kOrtElements, bytes, std::move(owner));
  return ReadModelProto(message, context);
}

std::vector<std::string> FoldersOf(const std::string& model_path, const ReadOptions& options) {
  if (!options.external_data_folder.empty()) return {options.external_data_folder};
  return ExternalDataFolders(model_path);
}

bool IsOrt(std::span<const std::byte> bytes, const ReadOptions& options) {
  if (options.format == ModelFormat::kUnspecified) return HasOrtIdentifier(bytes);
  return options.format == ModelFormat::kOrt;
}

Result<Model> ReadMapped(const std::shared_ptr<MappedFile>& file, const std::string& path,
                         const ReadOptions& options) {
  const bool has_ort_name = options.format == ModelFormat::kUnspecified && HasOrtName(path);
  if (has_ort_name || IsOrt(file->bytes(), options)) {
    return ReadOrtModel(file->bytes(), file, options);
  }
  const std::string_view bytes = TextOf(file->bytes());
  ReadContext context = MakeContext(bytes, file, FoldersOf(path, options), options);
  return ReadModelProto(bytes, context);
}

}  // namespace

Result<Model> ReadModel(const std::string& path, const ReadOptions& options) {
  TENON_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path, options.access));
  const auto file = MappedFile::Share(std::move(mapped));
  Result<Model> model = ReadMapped(file, path, options);
  if (!model) return Error(std::move(model.error()).WithContext(Format("model '{}'", path)));
  model->path = path;
  return model;
}

Result<Model> ReadModel(std::span<const std::byte> bytes, std::shared_ptr<void> owner,
                        const ReadOptions& options) {
  if (IsOrt(bytes, options)) return ReadOrtModel(bytes, std::move(owner), options);
  std::vector<std::string> folders;
  if (!options.external_data_folder.empty()) folders = {options.external_data_folder};
  ReadContext context = MakeContext(TextOf(bytes), std::move(owner), std::move(folders), options);
  return ReadModelProto(TextOf(bytes), context);
}

Result<Tensor> ReadTensor(std::span<const std::byte> bytes) {
  ReadContext context = MakeContext(TextOf(bytes), nullptr, {});
  TENON_ASSIGN_OR_RETURN(NamedTensor named, ReadTensorProto(TextOf(bytes), context));
  return std::move(named.tensor);
}

Result<Function> ReadFunction(std::span<const std::byte> bytes) {
  ReadContext context = MakeContext(TextOf(bytes), nullptr, {});
  return ReadFunctionProto(TextOf(bytes), context);
}

}  // namespace tenon
