// The mock's compiled models.
#include <fstream>
#include <iterator>
#include <vector>

#include "plugin/mock_parts.h"

namespace tenon::test {
namespace {

constexpr const char* kCompiled = "squares";

std::string Entry(const OrtSessionOptions* options, const char* key) {
  char value[512] = "";
  size_t size = sizeof(value);
  OrtStatus* const status = api->GetSessionConfigEntry(options, key, value, &size);
  const bool has_entry = status == nullptr;
  api->ReleaseStatus(status);
  const std::string text = has_entry ? value : "";
  const std::lock_guard lock(control.mutex);
  control.entries[key] = text;
  return text;
}

OrtStatus* NamesOf(const OrtNode* node, bool outputs, std::vector<std::string>& names) {
  size_t count = 0;
  CHECK_OK(outputs ? api->Node_GetNumOutputs(node, &count) : api->Node_GetNumInputs(node, &count));
  std::vector<const OrtValueInfo*> values(count);
  CHECK_OK(outputs ? api->Node_GetOutputs(node, values.data(), count)
                   : api->Node_GetInputs(node, values.data(), count));
  for (const OrtValueInfo* const value : values) {
    const char* name = nullptr;
    CHECK_OK(api->GetValueInfoName(value, &name));
    names.emplace_back(name);
  }
  return nullptr;
}

std::string Text(const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* status = api->Node_GetAttributeByName(node, name, &attribute);
  size_t size = 0;
  if (status == nullptr && attribute != nullptr) {
    api->ReleaseStatus(api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, nullptr, 0, &size));
    std::string text(size, '\0');
    status = api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, text.data(), size, &size);
    if (status == nullptr) return text.c_str();
  }
  api->ReleaseStatus(status);
  return "";
}

int64_t Number(const OrtNode* node, const char* name, int64_t fallback) {
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* status = api->Node_GetAttributeByName(node, name, &attribute);
  int64_t number = fallback;
  if (status == nullptr && attribute != nullptr) {
    size_t size = 0;
    status = api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &number, sizeof(number), &size);
  }
  api->ReleaseStatus(status);
  return number;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

OrtStatus* Fail(const std::string& text) { return api->CreateStatus(ORT_EP_FAIL, text.c_str()); }

}  // namespace

ContextSettings::ContextSettings(const OrtSessionOptions* options)
    : is_on(Entry(options, "ep.context_enable") == "1"),
      embeds(Entry(options, "ep.context_embed_mode") == "1"),
      is_weightless(Entry(options, "ep.enable_weightless") == "1"),
      path(Entry(options, "ep.context_file_path")),
      prefix(Entry(options, "ep.context_node_name_prefix")),
      source_path(Entry(options, "ep.context_source_model_path")) {
  Entry(options, "ep.share_ep_contexts");
  Entry(options, "ep.stop_share_ep_contexts");
  size_t size = 0;
  api->ReleaseStatus(ep_api->SessionOptionsGetWeightlessSourceModelBuffer(options, &source, &size));
}

bool IsContextNode(const OrtNode* node) {
  const char* op_type = nullptr;
  OrtStatus* const status = api->Node_GetOperatorType(node, &op_type);
  const bool is_one = status == nullptr && std::string(op_type) == "EPContext";
  api->ReleaseStatus(status);
  return is_one && Text(node, "source") == kName;
}

OrtStatus* MakeContextNode(const ContextSettings& settings, const OrtGraph* group,
                           const OrtNode* fused, OrtNode** out) {
  if (control.context_nodes == MockContextNodes::kNone) return nullptr;
  if (control.context_nodes == MockContextNodes::kForeign) {
    *out = const_cast<OrtNode*>(fused);
    return nullptr;
  }
  std::vector<std::string> inputs, outputs;
  CHECK_OK(NamesOf(fused, false, inputs));
  CHECK_OK(NamesOf(fused, true, outputs));
  if (control.context_nodes == MockContextNodes::kOtherValues) outputs = {"nothing"};
  if (control.context_nodes == MockContextNodes::kOtherInputs) inputs = {"nothing"};
  const char* fused_name = nullptr;
  CHECK_OK(api->Node_GetName(fused, &fused_name));
  const char* source_file = nullptr;
  CHECK_OK(api->Graph_GetModelPath(group, &source_file));
  const std::string name = settings.prefix + fused_name;
  std::string content = kCompiled;
  if (!settings.embeds) {
    content = name + ".mock";
    std::ofstream(FolderOf(settings.path) + content) << kCompiled;
  }
  const int64_t embed_mode = settings.embeds ? 1 : 0;
  std::vector<OrtOpAttr*> attributes;
  const auto add = [&](const char* key, const void* data, size_t size, OrtOpAttrType type) {
    attributes.push_back(nullptr);
    return api->CreateOpAttr(key, data, static_cast<int>(size), type, &attributes.back());
  };
  const auto add_text = [&](const char* key, const std::string& text) {
    return add(key, text.data(), text.size(), ORT_OP_ATTR_STRING);
  };
  CHECK_OK(add("embed_mode", &embed_mode, 1, ORT_OP_ATTR_INT));
  CHECK_OK(add_text("ep_cache_context", content));
  CHECK_OK(add_text("source", kName));
  CHECK_OK(add_text("partition_name", fused_name));
  CHECK_OK(add_text("onnx_model_filename", source_file));
  std::vector<const char*> input_names, output_names;
  for (const std::string& input : inputs) input_names.push_back(input.c_str());
  for (const std::string& output : outputs) output_names.push_back(output.c_str());
  const bool is_other = control.context_nodes == MockContextNodes::kOtherOperator;
  return api->GetModelEditorApi()->CreateNode(
      is_other ? "Identity" : "EPContext", is_other ? "" : "com.microsoft", name.c_str(),
      input_names.data(), input_names.size(), output_names.data(), output_names.size(),
      attributes.data(), attributes.size(), out);
}

OrtStatus* ReadContextNode(const ContextSettings& settings, const OrtGraph* group,
                           const OrtNode* node) {
  if (Number(node, "main_context", 1) != 1) return Fail("not the main context");
  std::string content = Text(node, "ep_cache_context");
  const bool is_embedded = Number(node, "embed_mode", 1) == 1;
  if (!is_embedded) {
    const char* model_path = nullptr;
    CHECK_OK(api->Graph_GetModelPath(group, &model_path));
    std::ifstream file(FolderOf(model_path) + content);
    content.assign(std::istreambuf_iterator<char>(file), {});
  }
  if (content != kCompiled) return Fail("got '" + content + "' for what was compiled");
  const char* name = nullptr;
  CHECK_OK(api->Node_GetName(node, &name));
  const std::lock_guard lock(control.mutex);
  control.context_read = name + std::string(is_embedded ? " embedded" : " beside");
  if (!settings.is_weightless) return nullptr;
  // The most specific source has precedence.
  if (settings.source != nullptr) {
    control.weight_source = "buffer";
  } else if (!settings.source_path.empty()) {
    control.weight_source = "entry " + settings.source_path;
  } else {
    control.weight_source = "node " + Text(node, "onnx_model_filename");
  }
  return nullptr;
}

}  // namespace tenon::test
