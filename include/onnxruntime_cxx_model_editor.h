// Models in C++: reading and building graphs, sessions whose models are changed before they run,
// and compilation. Part of onnxruntime_cxx_api.h.
#pragma once

namespace Ort {

struct Graph;
struct Node;
struct ExternalInitializerInfo;

namespace detail {
template <class T>
struct NodeImpl;
template <class T>
struct ConstGraphImpl;
template <class T>
struct ValueInfoImpl;

// A list of handles: its length by one function, its content by another.
template <class Wrapper, class Object, class Handle>
std::vector<Wrapper> ListOf(const Object* object,
                            OrtStatusPtr(ORT_API_CALL* count)(const Object*, size_t*) NO_EXCEPTION,
                            OrtStatusPtr(ORT_API_CALL* list)(const Object*, const Handle**, size_t)
                                NO_EXCEPTION) {
  std::vector<const Handle*> handles(Query<size_t>(count, object));
  if (!handles.empty()) ThrowOnError(list(object, handles.data(), handles.size()));
  return std::vector<Wrapper>(handles.begin(), handles.end());
}
}  // namespace detail

using ConstNode = detail::NodeImpl<detail::Unowned<const OrtNode>>;
using ConstGraph = detail::ConstGraphImpl<detail::Unowned<const OrtGraph>>;
using ConstValueInfo = detail::ValueInfoImpl<detail::Unowned<const OrtValueInfo>>;

// The position of an initializer's elements in a file.
struct ExternalInitializerInfo : detail::Base<OrtExternalInitializerInfo> {
  using Base::Base;
  explicit ExternalInitializerInfo(std::nullptr_t) {}
  ExternalInitializerInfo(const ORTCHAR_T* path, int64_t offset, size_t size) {
    ThrowOnError(GetApi().CreateExternalInitializerInfo(path, offset, size, &p_));
  }
  std::basic_string<ORTCHAR_T> GetFilePath() const {
    return GetApi().ExternalInitializerInfo_GetFilePath(p_);
  }
  int64_t GetFileOffset() const { return GetApi().ExternalInitializerInfo_GetFileOffset(p_); }
  size_t GetByteSize() const { return GetApi().ExternalInitializerInfo_GetByteSize(p_); }
};

// A node and the index of one of its inputs or outputs; index -1: an implicit input.
struct ValueInfoConsumerProducerInfo {
  ValueInfoConsumerProducerInfo(ConstNode node_of_value, int64_t index_of_value);
  ConstNode GetNode() const;
  const OrtNode* node = nullptr;
  int64_t index = -1;
};

namespace detail {
template <class T>
struct ValueInfoImpl : Base<T> {
  using Base<T>::Base;
  std::string GetName() const { return Query<const char*>(GetApi().GetValueInfoName, this->p_); }
  ConstTypeInfo TypeInfo() const {
    return ConstTypeInfo(Query<const OrtTypeInfo*>(GetApi().GetValueInfoTypeInfo, this->p_));
  }
  ValueInfoConsumerProducerInfo GetProducerNode() const;
  std::vector<ValueInfoConsumerProducerInfo> GetConsumers() const;
  // Empty if the value is no initializer.
  Status GetInitializer(ConstValue& value) const {
    const OrtValue* found = nullptr;
    Status status(GetApi().ValueInfo_GetInitializerValue(this->p_, &found));
    if (status.IsOK()) value = ConstValue(found);
    return status;
  }
  Status GetExternalInitializerInfo(ExternalInitializerInfo& info) const {
    OrtExternalInitializerInfo* found = nullptr;
    Status status(GetApi().ValueInfo_GetExternalInitializerInfo(this->p_, &found));
    if (status.IsOK()) info = ExternalInitializerInfo(found);
    return status;
  }
  bool IsRequiredGraphInput() const { return Is(GetApi().ValueInfo_IsRequiredGraphInput); }
  bool IsOptionalGraphInput() const { return Is(GetApi().ValueInfo_IsOptionalGraphInput); }
  bool IsGraphOutput() const { return Is(GetApi().ValueInfo_IsGraphOutput); }
  bool IsConstantInitializer() const { return Is(GetApi().ValueInfo_IsConstantInitializer); }
  bool IsFromOuterScope() const { return Is(GetApi().ValueInfo_IsFromOuterScope); }

 private:
  template <class Slot>
  bool Is(Slot slot) const {
    return Query<bool>(slot, this->p_);
  }
};
}  // namespace detail

// A named value of a type.
struct ValueInfo : detail::ValueInfoImpl<OrtValueInfo> {
  using ValueInfoImpl::ValueInfoImpl;
  explicit ValueInfo(std::nullptr_t) {}
  ValueInfo(const std::string& name, const ConstTypeInfo& type) {
    ThrowOnError(GetModelEditorApi().CreateValueInfo(name.c_str(), type, &p_));
  }
  ConstValueInfo GetConst() const { return ConstValueInfo(p_); }
};

struct AttrNameSubgraph;

namespace detail {
template <class T>
struct NodeImpl : Base<T> {
  using Base<T>::Base;
  size_t GetId() const { return Query<size_t>(GetApi().Node_GetId, this->p_); }
  std::string GetName() const { return Text(GetApi().Node_GetName); }
  std::string GetOperatorType() const { return Text(GetApi().Node_GetOperatorType); }
  std::string GetDomain() const { return Text(GetApi().Node_GetDomain); }
  std::string GetEpName() const { return Text(GetApi().Node_GetEpName); }
  int GetSinceVersion() const { return Query<int>(GetApi().Node_GetSinceVersion, this->p_); }
  // An empty value stands for an absent input or output.
  std::vector<ConstValueInfo> GetInputs() const {
    return Values(GetApi().Node_GetNumInputs, GetApi().Node_GetInputs);
  }
  std::vector<ConstValueInfo> GetOutputs() const {
    return Values(GetApi().Node_GetNumOutputs, GetApi().Node_GetOutputs);
  }
  std::vector<ConstValueInfo> GetImplicitInputs() const {
    return Values(GetApi().Node_GetNumImplicitInputs, GetApi().Node_GetImplicitInputs);
  }
  std::vector<ConstOpAttr> GetAttributes() const {
    return ListOf<ConstOpAttr, OrtNode, OrtOpAttr>(this->p_, GetApi().Node_GetNumAttributes,
                                                   GetApi().Node_GetAttributes);
  }
  // `attribute` is empty if it is not set.
  Status GetAttributeByName(const std::string& name, ConstOpAttr& attribute) const {
    const OrtOpAttr* found = nullptr;
    Status status(GetApi().Node_GetAttributeByName(this->p_, name.c_str(), &found));
    attribute = ConstOpAttr(found);
    return status;
  }
  std::vector<AttrNameSubgraph> GetSubgraphs() const;
  ConstGraph GetGraph() const;

 private:
  template <class Slot>
  std::string Text(Slot slot) const {
    return Query<const char*>(slot, this->p_);
  }
  template <class Count, class List>
  std::vector<ConstValueInfo> Values(Count count, List list) const {
    return ListOf<ConstValueInfo, OrtNode, OrtValueInfo>(this->p_, count, list);
  }
};
}  // namespace detail

// An operator instance with named inputs and outputs.
struct Node : detail::NodeImpl<OrtNode> {
  using NodeImpl::NodeImpl;
  Node() = default;
  explicit Node(std::nullptr_t) {}
  Node(const std::string& operator_name, const std::string& operator_domain,
       const std::string& node_name, const std::vector<std::string>& input_names,
       const std::vector<std::string>& output_names) {
    std::vector<OpAttr> none;
    Create(operator_name, operator_domain, node_name, input_names, output_names, none);
  }
  // Takes over the attributes.
  Node(const std::string& operator_name, const std::string& operator_domain,
       const std::string& node_name, const std::vector<std::string>& input_names,
       const std::vector<std::string>& output_names, std::vector<OpAttr>& attributes) {
    Create(operator_name, operator_domain, node_name, input_names, output_names, attributes);
  }
  ConstNode GetConst() const { return ConstNode(p_); }

 private:
  static std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    return pointers;
  }
  void Create(const std::string& operator_name, const std::string& operator_domain,
              const std::string& node_name, const std::vector<std::string>& input_names,
              const std::vector<std::string>& output_names, std::vector<OpAttr>& attributes) {
    const std::vector<const char*> inputs = Pointers(input_names), outputs = Pointers(output_names);
    std::vector<OrtOpAttr*> handles(attributes.begin(), attributes.end());
    ThrowOnError(GetModelEditorApi().CreateNode(
        operator_name.c_str(), operator_domain.c_str(), node_name.c_str(), inputs.data(),
        inputs.size(), outputs.data(), outputs.size(), handles.data(), handles.size(), &p_));
    for (OpAttr& attribute : attributes) attribute.release();
  }
};

// A version of an operator set.
struct OperatorSet {
  std::string domain;
  int64_t version;
};

namespace detail {
template <class T>
struct ConstGraphImpl : Base<T> {
  using Base<T>::Base;
  std::string GetName() const { return Query<const char*>(GetApi().Graph_GetName, this->p_); }
  std::basic_string<ORTCHAR_T> GetModelPath() const {
    return Query<const ORTCHAR_T*>(GetApi().Graph_GetModelPath, this->p_);
  }
  int64_t GetOnnxIRVersion() const {
    return Query<int64_t>(GetApi().Graph_GetOnnxIRVersion, this->p_);
  }
  std::vector<OperatorSet> GetOperatorSets() const {
    const size_t count = Query<size_t>(GetApi().Graph_GetNumOperatorSets, this->p_);
    std::vector<const char*> domains(count);
    std::vector<int64_t> versions(count);
    std::vector<OperatorSet> sets;
    if (count == 0) return sets;
    ThrowOnError(GetApi().Graph_GetOperatorSets(this->p_, domains.data(), versions.data(), count));
    for (size_t i = 0; i < count; ++i) sets.push_back({domains[i], versions[i]});
    return sets;
  }
  std::vector<ConstValueInfo> GetInputs() const {
    return Values(GetApi().Graph_GetNumInputs, GetApi().Graph_GetInputs);
  }
  std::vector<ConstValueInfo> GetOutputs() const {
    return Values(GetApi().Graph_GetNumOutputs, GetApi().Graph_GetOutputs);
  }
  std::vector<ConstValueInfo> GetInitializers() const {
    return Values(GetApi().Graph_GetNumInitializers, GetApi().Graph_GetInitializers);
  }
  // In topological order.
  std::vector<ConstNode> GetNodes() const {
    return ListOf<ConstNode, OrtGraph, OrtNode>(this->p_, GetApi().Graph_GetNumNodes,
                                                GetApi().Graph_GetNodes);
  }
  ConstNode GetParentNode() const {
    return ConstNode(Query<const OrtNode*>(GetApi().Graph_GetParentNode, this->p_));
  }
  Graph GetGraphView(const std::vector<ConstNode>& nodes) const;
  ModelMetadata GetModelMetadata() const {
    return ModelMetadata(Query<OrtModelMetadata*>(GetApi().Graph_GetModelMetadata, this->p_));
  }

 private:
  template <class Count, class List>
  std::vector<ConstValueInfo> Values(Count count, List list) const {
    return ListOf<ConstValueInfo, OrtGraph, OrtValueInfo>(this->p_, count, list);
  }
};

template <class T>
struct GraphImpl : ConstGraphImpl<T> {
  using ConstGraphImpl<T>::ConstGraphImpl;
  // These take ownership of their arguments.
  void SetInputs(std::vector<ValueInfo>& inputs) {
    Set(GetModelEditorApi().SetGraphInputs, inputs);
  }
  void SetOutputs(std::vector<ValueInfo>& outputs) {
    Set(GetModelEditorApi().SetGraphOutputs, outputs);
  }
  void AddInitializer(const std::string& name, Value& initializer, bool data_is_external) {
    ThrowOnError(GetModelEditorApi().AddInitializerToGraph(this->p_, name.c_str(), initializer,
                                                           data_is_external));
    initializer.release();
  }
  void AddNode(Node& node) {
    ThrowOnError(GetModelEditorApi().AddNodeToGraph(this->p_, node));
    node.release();
  }

 private:
  template <class Slot>
  void Set(Slot slot, std::vector<ValueInfo>& values) {
    std::vector<OrtValueInfo*> handles(values.begin(), values.end());
    ThrowOnError(slot(this->p_, handles.data(), handles.size()));
    for (ValueInfo& value : values) value.release();
  }
};
}  // namespace detail

// Nodes and the values between them.
struct Graph : detail::GraphImpl<OrtGraph> {
  using GraphImpl::GraphImpl;
  explicit Graph(std::nullptr_t) {}
  Graph() { ThrowOnError(GetModelEditorApi().CreateGraph(&p_)); }
  ConstGraph GetConst() const { return ConstGraph(p_); }
};

// A subgraph of a node, and the attribute that holds it.
struct AttrNameSubgraph {
  std::string attr_name;
  ConstGraph sub_graph;
};

// A graph and the versions of its operator sets.
struct Model : detail::Base<OrtModel> {
  using DomainOpsetPair = std::pair<std::string, int>;
  using Base::Base;
  explicit Model(std::nullptr_t) {}
  explicit Model(const std::vector<DomainOpsetPair>& opsets) {
    std::vector<const char*> domains;
    std::vector<int> versions;
    for (const auto& [domain, version] : opsets) {
      domains.push_back(domain.c_str());
      versions.push_back(version);
    }
    ThrowOnError(
        GetModelEditorApi().CreateModel(domains.data(), versions.data(), opsets.size(), &p_));
  }
  // Takes over the graph.
  void AddGraph(Graph& graph) {
    ThrowOnError(GetModelEditorApi().AddGraphToModel(p_, graph));
    graph.release();
  }
};

// Settings of a compilation.
struct ModelCompilationOptions : detail::Base<OrtModelCompilationOptions> {
  using Base::Base;
  explicit ModelCompilationOptions(std::nullptr_t) {}
  ModelCompilationOptions(const Env& env, const SessionOptions& session_options) {
    ThrowOnError(
        GetCompileApi().CreateModelCompilationOptionsFromSessionOptions(env, session_options, &p_));
  }
  ModelCompilationOptions& SetInputModelPath(const ORTCHAR_T* path) {
    return Do(GetCompileApi().ModelCompilationOptions_SetInputModelPath, path);
  }
  ModelCompilationOptions& SetInputModelFromBuffer(const void* data, size_t size) {
    return Do(GetCompileApi().ModelCompilationOptions_SetInputModelFromBuffer, data, size);
  }
  ModelCompilationOptions& SetInputModel(const OrtModel* model) {
    return Do(GetCompileApi().ModelCompilationOptions_SetInputModel, model);
  }
  ModelCompilationOptions& SetOutputModelPath(const ORTCHAR_T* path) {
    return Do(GetCompileApi().ModelCompilationOptions_SetOutputModelPath, path);
  }
  ModelCompilationOptions& SetOutputModelExternalInitializersFile(const ORTCHAR_T* path,
                                                                  size_t threshold) {
    return Do(GetCompileApi().ModelCompilationOptions_SetOutputModelExternalInitializersFile, path,
              threshold);
  }
  ModelCompilationOptions& SetOutputModelBuffer(OrtAllocator* allocator, void** buffer,
                                                size_t* size) {
    return Do(GetCompileApi().ModelCompilationOptions_SetOutputModelBuffer, allocator, buffer,
              size);
  }
  ModelCompilationOptions& SetOutputModelWriteFunc(OrtWriteBufferFunc write, void* state) {
    return Do(GetCompileApi().ModelCompilationOptions_SetOutputModelWriteFunc, write, state);
  }
  ModelCompilationOptions& SetOutputModelGetInitializerLocationFunc(
      OrtGetInitializerLocationFunc location, void* state) {
    return Do(GetCompileApi().ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc,
              location, state);
  }
  ModelCompilationOptions& SetEpContextEmbedMode(bool embed) {
    return Do(GetCompileApi().ModelCompilationOptions_SetEpContextEmbedMode, embed);
  }
  ModelCompilationOptions& SetWeightlessEnabled(bool enabled) {
    return Do(GetCompileApi().ModelCompilationOptions_SetWeightlessEnabled, enabled);
  }
  ModelCompilationOptions& SetEpContextBinaryInformation(const ORTCHAR_T* directory,
                                                         const ORTCHAR_T* model_name) {
    return Do(GetCompileApi().ModelCompilationOptions_SetEpContextBinaryInformation, directory,
              model_name);
  }
  ModelCompilationOptions& SetFlags(uint32_t flags) {
    return Do(GetCompileApi().ModelCompilationOptions_SetFlags, flags);
  }
  ModelCompilationOptions& SetGraphOptimizationLevel(GraphOptimizationLevel level) {
    return Do(GetCompileApi().ModelCompilationOptions_SetGraphOptimizationLevel, level);
  }

 private:
  template <class Slot, class... Args>
  ModelCompilationOptions& Do(Slot slot, Args... args) {
    ThrowOnError(slot(p_, args...));
    return *this;
  }
};

inline Status CompileModel(const Env& env, const ModelCompilationOptions& options) {
  return Status(GetCompileApi().CompileModel(env, options));
}

// Definitions

inline ValueInfoConsumerProducerInfo::ValueInfoConsumerProducerInfo(ConstNode node_of_value,
                                                                    int64_t index_of_value)
    : node(node_of_value), index(index_of_value) {}
inline ConstNode ValueInfoConsumerProducerInfo::GetNode() const { return ConstNode(node); }

inline Session::Session(const Env& env, const Model& model, const SessionOptions& options) {
  ThrowOnError(GetModelEditorApi().CreateSessionFromModel(env, model, options, &p_));
}
inline Session Session::CreateModelEditorSession(const Env& env, const ORTCHAR_T* path,
                                                 const SessionOptions& options) {
  OrtSession* session = nullptr;
  ThrowOnError(GetModelEditorApi().CreateModelEditorSession(env, path, options, &session));
  return Session(session);
}
inline Session Session::CreateModelEditorSession(const Env& env, const void* model, size_t size,
                                                 const SessionOptions& options) {
  OrtSession* session = nullptr;
  ThrowOnError(
      GetModelEditorApi().CreateModelEditorSessionFromArray(env, model, size, options, &session));
  return Session(session);
}

namespace detail {
template <class T>
void SessionImpl<T>::FinalizeModelEditorSession(const Model& model, const SessionOptions& options,
                                                OrtPrepackedWeightsContainer* container) {
  ThrowOnError(GetModelEditorApi().ApplyModelToModelEditorSession(this->p_, model));
  ThrowOnError(GetModelEditorApi().FinalizeModelEditorSession(this->p_, options, container));
}

template <class T>
ValueInfoConsumerProducerInfo ValueInfoImpl<T>::GetProducerNode() const {
  const OrtNode* node = nullptr;
  size_t index = 0;
  ThrowOnError(GetApi().ValueInfo_GetValueProducer(this->p_, &node, &index));
  return {ConstNode(node), static_cast<int64_t>(index)};
}
template <class T>
std::vector<ValueInfoConsumerProducerInfo> ValueInfoImpl<T>::GetConsumers() const {
  const size_t count = Query<size_t>(GetApi().ValueInfo_GetValueNumConsumers, this->p_);
  std::vector<const OrtNode*> nodes(count);
  std::vector<int64_t> indices(count);
  std::vector<ValueInfoConsumerProducerInfo> consumers;
  if (count == 0) return consumers;
  ThrowOnError(GetApi().ValueInfo_GetValueConsumers(this->p_, nodes.data(), indices.data(), count));
  for (size_t i = 0; i < count; ++i) consumers.emplace_back(ConstNode(nodes[i]), indices[i]);
  return consumers;
}

template <class T>
std::vector<AttrNameSubgraph> NodeImpl<T>::GetSubgraphs() const {
  const size_t count = Query<size_t>(GetApi().Node_GetNumSubgraphs, this->p_);
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> names(count);
  std::vector<AttrNameSubgraph> subgraphs;
  if (count == 0) return subgraphs;
  ThrowOnError(GetApi().Node_GetSubgraphs(this->p_, graphs.data(), count, names.data()));
  for (size_t i = 0; i < count; ++i) subgraphs.push_back({names[i], ConstGraph(graphs[i])});
  return subgraphs;
}
template <class T>
ConstGraph NodeImpl<T>::GetGraph() const {
  return ConstGraph(Query<const OrtGraph*>(GetApi().Node_GetGraph, this->p_));
}

template <class T>
Graph ConstGraphImpl<T>::GetGraphView(const std::vector<ConstNode>& nodes) const {
  std::vector<const OrtNode*> handles(nodes.begin(), nodes.end());
  OrtGraph* view = nullptr;
  ThrowOnError(GetApi().Graph_GetGraphView(this->p_, handles.data(), handles.size(), &view));
  return Graph(view);
}
}  // namespace detail

}  // namespace Ort
