// Definitions of onnxruntime_cxx_api.h, continued: types, values, sessions and bindings.
#pragma once

namespace Ort {

// Types

inline TensorTypeAndShapeInfo::TensorTypeAndShapeInfo(ONNXTensorElementDataType type,
                                                      const std::vector<int64_t>& shape,
                                                      const std::vector<std::string>* symbolic) {
  ThrowOnError(GetApi().CreateTensorTypeAndShapeInfo(&p_));
  ThrowOnError(GetApi().SetTensorElementType(p_, type));
  ThrowOnError(GetApi().SetDimensions(p_, shape.data(), shape.size()));
  if (symbolic == nullptr) return;
  std::vector<const char*> names;
  names.reserve(symbolic->size());
  for (const std::string& name : *symbolic) names.push_back(name.c_str());
  ThrowOnError(GetApi().SetSymbolicDimensions(p_, names.data(), names.size()));
}

namespace detail {
template <class T>
ONNXTensorElementDataType TensorTypeAndShapeInfoImpl<T>::GetElementType() const {
  return Query<ONNXTensorElementDataType>(GetApi().GetTensorElementType, this->p_);
}
template <class T>
size_t TensorTypeAndShapeInfoImpl<T>::GetElementCount() const {
  return Query<size_t>(GetApi().GetTensorShapeElementCount, this->p_);
}
template <class T>
size_t TensorTypeAndShapeInfoImpl<T>::GetDimensionsCount() const {
  return Query<size_t>(GetApi().GetDimensionsCount, this->p_);
}
template <class T>
void TensorTypeAndShapeInfoImpl<T>::GetDimensions(int64_t* values, size_t count) const {
  ThrowOnError(GetApi().GetDimensions(this->p_, values, count));
}
template <class T>
std::vector<int64_t> TensorTypeAndShapeInfoImpl<T>::GetShape() const {
  std::vector<int64_t> shape(GetDimensionsCount());
  GetDimensions(shape.data(), shape.size());
  return shape;
}
template <class T>
void TensorTypeAndShapeInfoImpl<T>::GetSymbolicDimensions(const char** values, size_t count) const {
  ThrowOnError(GetApi().GetSymbolicDimensions(this->p_, values, count));
}
template <class T>
std::vector<const char*> TensorTypeAndShapeInfoImpl<T>::GetSymbolicDimensions() const {
  std::vector<const char*> names(GetDimensionsCount());
  GetSymbolicDimensions(names.data(), names.size());
  return names;
}

template <class T>
TypeInfo SequenceTypeInfoImpl<T>::GetSequenceElementType() const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().GetSequenceElementType, this->p_));
}
template <class T>
TypeInfo OptionalTypeInfoImpl<T>::GetOptionalElementType() const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().GetOptionalContainedTypeInfo, this->p_));
}
template <class T>
ONNXTensorElementDataType MapTypeInfoImpl<T>::GetMapKeyType() const {
  return Query<ONNXTensorElementDataType>(GetApi().GetMapKeyType, this->p_);
}
template <class T>
TypeInfo MapTypeInfoImpl<T>::GetMapValueType() const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().GetMapValueType, this->p_));
}

template <class T>
ConstTensorTypeAndShapeInfo TypeInfoImpl<T>::GetTensorTypeAndShapeInfo() const {
  return ConstTensorTypeAndShapeInfo(
      Query<const OrtTensorTypeAndShapeInfo*>(GetApi().CastTypeInfoToTensorInfo, this->p_));
}
template <class T>
ConstSequenceTypeInfo TypeInfoImpl<T>::GetSequenceTypeInfo() const {
  return ConstSequenceTypeInfo(
      Query<const OrtSequenceTypeInfo*>(GetApi().CastTypeInfoToSequenceTypeInfo, this->p_));
}
template <class T>
ConstMapTypeInfo TypeInfoImpl<T>::GetMapTypeInfo() const {
  return ConstMapTypeInfo(
      Query<const OrtMapTypeInfo*>(GetApi().CastTypeInfoToMapTypeInfo, this->p_));
}
template <class T>
ConstOptionalTypeInfo TypeInfoImpl<T>::GetOptionalTypeInfo() const {
  return ConstOptionalTypeInfo(
      Query<const OrtOptionalTypeInfo*>(GetApi().CastTypeInfoToOptionalTypeInfo, this->p_));
}
template <class T>
ONNXType TypeInfoImpl<T>::GetONNXType() const {
  return Query<ONNXType>(GetApi().GetOnnxTypeFromTypeInfo, this->p_);
}
}  // namespace detail

inline TypeInfo TypeInfo::CreateTensorInfo(ConstTensorTypeAndShapeInfo info) {
  return TypeInfo(detail::Query<OrtTypeInfo*>(GetModelEditorApi().CreateTensorTypeInfo, info));
}
inline TypeInfo TypeInfo::CreateSparseTensorInfo(ConstTensorTypeAndShapeInfo info) {
  return TypeInfo(
      detail::Query<OrtTypeInfo*>(GetModelEditorApi().CreateSparseTensorTypeInfo, info));
}
inline TypeInfo TypeInfo::CreateSequenceTypeInfo(ConstTypeInfo element) {
  return TypeInfo(detail::Query<OrtTypeInfo*>(GetModelEditorApi().CreateSequenceTypeInfo, element));
}
inline TypeInfo TypeInfo::CreateMapTypeInfo(ONNXTensorElementDataType key, ConstTypeInfo value) {
  return TypeInfo(detail::Query<OrtTypeInfo*>(GetModelEditorApi().CreateMapTypeInfo, key, value));
}
inline TypeInfo TypeInfo::CreateOptionalTypeInfo(ConstTypeInfo contained) {
  return TypeInfo(
      detail::Query<OrtTypeInfo*>(GetModelEditorApi().CreateOptionalTypeInfo, contained));
}

// Values, to read

namespace detail {
template <class T>
template <class R>
void ConstValueImpl<T>::GetOpaqueData(const char* domain, const char* type_name, R& out) const {
  ThrowOnError(GetApi().GetOpaqueValue(domain, type_name, this->p_, &out, sizeof(R)));
}
template <class T>
bool ConstValueImpl<T>::IsTensor() const {
  return Query<int>(GetApi().IsTensor, this->p_) != 0;
}
template <class T>
bool ConstValueImpl<T>::HasValue() const {
  return Query<int>(GetApi().HasValue, this->p_) != 0;
}
template <class T>
size_t ConstValueImpl<T>::GetCount() const {
  return Query<size_t>(GetApi().GetValueCount, this->p_);
}
template <class T>
Value ConstValueImpl<T>::GetValue(int index, OrtAllocator* allocator) const {
  return Value(Query<OrtValue*>(GetApi().GetValue, this->p_, index, allocator));
}
template <class T>
TypeInfo ConstValueImpl<T>::GetTypeInfo() const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().GetTypeInfo, this->p_));
}
template <class T>
ConstMemoryInfo ConstValueImpl<T>::GetTensorMemoryInfo() const {
  return ConstMemoryInfo(Query<const OrtMemoryInfo*>(GetApi().GetTensorMemoryInfo, this->p_));
}
template <class T>
TensorTypeAndShapeInfo ConstValueImpl<T>::GetTensorTypeAndShapeInfo() const {
  return TensorTypeAndShapeInfo(
      Query<OrtTensorTypeAndShapeInfo*>(GetApi().GetTensorTypeAndShape, this->p_));
}
template <class T>
void ConstValueImpl<T>::GetTensorElementTypeAndShapeDataReference(
    ONNXTensorElementDataType& element_type, Shape& shape) const {
  ThrowOnError(GetApi().GetTensorElementTypeAndShapeDataReference(this->p_, &element_type,
                                                                  &shape.shape, &shape.shape_len));
}
template <class T>
size_t ConstValueImpl<T>::GetTensorSizeInBytes() const {
  return Query<size_t>(GetApi().GetTensorSizeInBytes, this->p_);
}
template <class T>
const void* ConstValueImpl<T>::GetTensorRawData() const {
  return Query<const void*>(GetApi().GetTensorData, this->p_);
}
template <class T>
template <class R>
const R* ConstValueImpl<T>::GetTensorData() const {
  return static_cast<const R*>(GetTensorRawData());
}
template <class T>
template <class R>
const R& ConstValueImpl<T>::At(const std::vector<int64_t>& location) const {
  static_assert(!std::is_same_v<R, std::string>, "strings: GetStringTensorElement");
  // The slot takes a value to write to and writes nothing.
  OrtValue* const value = const_cast<OrtValue*>(static_cast<const OrtValue*>(this->p_));
  return *static_cast<const R*>(
      Query<void*>(GetApi().TensorAt, value, location.data(), location.size()));
}

template <class T>
size_t ConstValueImpl<T>::GetStringTensorDataLength() const {
  return Query<size_t>(GetApi().GetStringTensorDataLength, this->p_);
}
template <class T>
void ConstValueImpl<T>::GetStringTensorContent(void* buffer, size_t size, size_t* offsets,
                                               size_t count) const {
  ThrowOnError(GetApi().GetStringTensorContent(this->p_, buffer, size, offsets, count));
}
template <class T>
size_t ConstValueImpl<T>::GetStringTensorElementLength(size_t index) const {
  return Query<size_t>(GetApi().GetStringTensorElementLength, this->p_, index);
}
template <class T>
void ConstValueImpl<T>::GetStringTensorElement(size_t size, size_t index, void* buffer) const {
  ThrowOnError(GetApi().GetStringTensorElement(this->p_, size, index, buffer));
}
template <class T>
std::string ConstValueImpl<T>::GetStringTensorElement(size_t index) const {
  std::string text(GetStringTensorElementLength(index), '\0');
  GetStringTensorElement(text.size(), index, text.data());
  return text;
}

template <class T>
bool ConstValueImpl<T>::IsSparseTensor() const {
  return Query<int>(GetApi().IsSparseTensor, this->p_) != 0;
}
template <class T>
OrtSparseFormat ConstValueImpl<T>::GetSparseFormat() const {
  return Query<OrtSparseFormat>(GetApi().GetSparseTensorFormat, this->p_);
}
template <class T>
TensorTypeAndShapeInfo ConstValueImpl<T>::GetSparseTensorValuesTypeAndShapeInfo() const {
  return TensorTypeAndShapeInfo(
      Query<OrtTensorTypeAndShapeInfo*>(GetApi().GetSparseTensorValuesTypeAndShape, this->p_));
}
template <class T>
TensorTypeAndShapeInfo ConstValueImpl<T>::GetSparseTensorIndicesTypeShapeInfo(
    OrtSparseIndicesFormat format) const {
  return TensorTypeAndShapeInfo(Query<OrtTensorTypeAndShapeInfo*>(
      GetApi().GetSparseTensorIndicesTypeShape, this->p_, format));
}
template <class T>
template <class R>
const R* ConstValueImpl<T>::GetSparseTensorIndicesData(OrtSparseIndicesFormat format,
                                                       size_t& count) const {
  return static_cast<const R*>(
      Query<const void*>(GetApi().GetSparseTensorIndices, this->p_, format, &count));
}
template <class T>
template <class R>
const R* ConstValueImpl<T>::GetSparseTensorValues() const {
  return static_cast<const R*>(Query<const void*>(GetApi().GetSparseTensorValues, this->p_));
}

// Values, to write

template <class T>
void* ValueImpl<T>::GetTensorMutableRawData() {
  return Query<void*>(GetApi().GetTensorMutableData, this->p_);
}
template <class T>
template <class R>
R* ValueImpl<T>::GetTensorMutableData() {
  return static_cast<R*>(GetTensorMutableRawData());
}
template <class T>
template <class R>
R& ValueImpl<T>::At(const std::vector<int64_t>& location) {
  static_assert(!std::is_same_v<R, std::string>, "strings: FillStringTensorElement");
  return *static_cast<R*>(
      Query<void*>(GetApi().TensorAt, this->p_, location.data(), location.size()));
}
template <class T>
void ValueImpl<T>::FillStringTensor(const char* const* texts, size_t count) {
  ThrowOnError(GetApi().FillStringTensor(this->p_, texts, count));
}
template <class T>
void ValueImpl<T>::FillStringTensorElement(const char* text, size_t index) {
  ThrowOnError(GetApi().FillStringTensorElement(this->p_, text, index));
}
template <class T>
char* ValueImpl<T>::GetResizedStringTensorElementBuffer(size_t index, size_t size) {
  return Query<char*>(GetApi().GetResizedStringTensorElementBuffer, this->p_, index, size);
}
template <class T>
void ValueImpl<T>::UseCooIndices(int64_t* indices, size_t count) {
  ThrowOnError(GetApi().UseCooIndices(this->p_, indices, count));
}
template <class T>
void ValueImpl<T>::UseCsrIndices(int64_t* inner, size_t inner_count, int64_t* outer,
                                 size_t outer_count) {
  ThrowOnError(GetApi().UseCsrIndices(this->p_, inner, inner_count, outer, outer_count));
}
template <class T>
void ValueImpl<T>::UseBlockSparseIndices(const Shape& indices_shape, int32_t* indices) {
  ThrowOnError(GetApi().UseBlockSparseIndices(this->p_, indices_shape.shape,
                                              indices_shape.shape_len, indices));
}
template <class T>
void ValueImpl<T>::FillSparseTensorCoo(const OrtMemoryInfo* info,
                                       const OrtSparseValuesParam& values, const int64_t* indices,
                                       size_t count) {
  ThrowOnError(GetApi().FillSparseTensorCoo(this->p_, info, values.values_shape,
                                            values.values_shape_len, values.data.p_data, indices,
                                            count));
}
template <class T>
void ValueImpl<T>::FillSparseTensorCsr(const OrtMemoryInfo* info,
                                       const OrtSparseValuesParam& values, const int64_t* inner,
                                       size_t inner_count, const int64_t* outer,
                                       size_t outer_count) {
  ThrowOnError(GetApi().FillSparseTensorCsr(this->p_, info, values.values_shape,
                                            values.values_shape_len, values.data.p_data, inner,
                                            inner_count, outer, outer_count));
}
template <class T>
void ValueImpl<T>::FillSparseTensorBlockSparse(const OrtMemoryInfo* info,
                                               const OrtSparseValuesParam& values,
                                               const Shape& indices_shape, const int32_t* indices) {
  ThrowOnError(GetApi().FillSparseTensorBlockSparse(
      this->p_, info, values.values_shape, values.values_shape_len, values.data.p_data,
      indices_shape.shape, indices_shape.shape_len, indices));
}
}  // namespace detail

// Values, to make

template <class T>
Value Value::CreateTensor(const OrtMemoryInfo* info, T* data, size_t count, const int64_t* shape,
                          size_t shape_len) {
  return CreateTensor(info, data, count * sizeof(T), shape, shape_len, TypeToTensorType<T>::type);
}
inline Value Value::CreateTensor(const OrtMemoryInfo* info, void* data, size_t size,
                                 const int64_t* shape, size_t shape_len,
                                 ONNXTensorElementDataType type) {
  return Value(detail::Query<OrtValue*>(GetApi().CreateTensorWithDataAsOrtValue, info, data, size,
                                        shape, shape_len, type));
}
inline Value Value::CreateTensor(OrtAllocator* deleter, void* data, size_t size,
                                 const int64_t* shape, size_t shape_len,
                                 ONNXTensorElementDataType type) {
  return Value(detail::Query<OrtValue*>(GetApi().CreateTensorWithDataAndDeleterAsOrtValue, deleter,
                                        data, size, shape, shape_len, type));
}
template <class T>
Value Value::CreateTensor(OrtAllocator* allocator, const int64_t* shape, size_t shape_len) {
  return CreateTensor(allocator, shape, shape_len, TypeToTensorType<T>::type);
}
inline Value Value::CreateTensor(OrtAllocator* allocator, const int64_t* shape, size_t shape_len,
                                 ONNXTensorElementDataType type) {
  return Value(
      detail::Query<OrtValue*>(GetApi().CreateTensorAsOrtValue, allocator, shape, shape_len, type));
}
inline Value Value::CreateMap(const Value& keys, const Value& values) {
  const OrtValue* const parts[] = {keys, values};
  return Value(detail::Query<OrtValue*>(GetApi().CreateValue, parts, size_t{2}, ONNX_TYPE_MAP));
}
inline Value Value::CreateSequence(const std::vector<Value>& values) {
  return Value(detail::Query<OrtValue*>(GetApi().CreateValue, detail::Pointers(values.data()),
                                        values.size(), ONNX_TYPE_SEQUENCE));
}
template <class T>
Value Value::CreateOpaque(const char* domain, const char* type_name, const T& data) {
  return Value(detail::Query<OrtValue*>(GetApi().CreateOpaqueValue, domain, type_name,
                                        static_cast<const void*>(&data), sizeof(T)));
}
template <class T>
Value Value::CreateSparseTensor(const OrtMemoryInfo* info, T* data, const Shape& dense_shape,
                                const Shape& values_shape) {
  return CreateSparseTensor(info, data, dense_shape, values_shape, TypeToTensorType<T>::type);
}
inline Value Value::CreateSparseTensor(const OrtMemoryInfo* info, void* data,
                                       const Shape& dense_shape, const Shape& values_shape,
                                       ONNXTensorElementDataType type) {
  return Value(detail::Query<OrtValue*>(GetApi().CreateSparseTensorWithValuesAsOrtValue, info, data,
                                        dense_shape.shape, dense_shape.shape_len,
                                        values_shape.shape, values_shape.shape_len, type));
}
template <class T>
Value Value::CreateSparseTensor(OrtAllocator* allocator, const Shape& dense_shape) {
  return CreateSparseTensor(allocator, dense_shape, TypeToTensorType<T>::type);
}
inline Value Value::CreateSparseTensor(OrtAllocator* allocator, const Shape& dense_shape,
                                       ONNXTensorElementDataType type) {
  return Value(detail::Query<OrtValue*>(GetApi().CreateSparseTensorAsOrtValue, allocator,
                                        dense_shape.shape, dense_shape.shape_len, type));
}

// Sessions

inline PrepackedWeightsContainer::PrepackedWeightsContainer() {
  ThrowOnError(GetApi().CreatePrepackedWeightsContainer(&p_));
}

inline ArenaCfg::ArenaCfg(size_t max_mem, int extend_strategy, int initial_chunk_size_bytes,
                          int max_dead_bytes_per_chunk) {
  ThrowOnError(GetApi().CreateArenaCfg(max_mem, extend_strategy, initial_chunk_size_bytes,
                                       max_dead_bytes_per_chunk, &p_));
}
inline ArenaCfg::ArenaCfg(const std::unordered_map<std::string, size_t>& settings) {
  std::vector<const char*> names;
  std::vector<size_t> values;
  for (const auto& [name, value] : settings) {
    names.push_back(name.c_str());
    values.push_back(value);
  }
  ThrowOnError(GetApi().CreateArenaCfgV2(names.data(), values.data(), names.size(), &p_));
}

inline Session::Session(const Env& env, const ORTCHAR_T* path, const SessionOptions& options) {
  ThrowOnError(GetApi().CreateSession(env, path, options, &p_));
}
inline Session::Session(const Env& env, const ORTCHAR_T* path, const SessionOptions& options,
                        OrtPrepackedWeightsContainer* container) {
  ThrowOnError(
      GetApi().CreateSessionWithPrepackedWeightsContainer(env, path, options, container, &p_));
}
inline Session::Session(const Env& env, const void* model, size_t size,
                        const SessionOptions& options) {
  ThrowOnError(GetApi().CreateSessionFromArray(env, model, size, options, &p_));
}
inline Session::Session(const Env& env, const void* model, size_t size,
                        const SessionOptions& options, OrtPrepackedWeightsContainer* container) {
  ThrowOnError(GetApi().CreateSessionFromArrayWithPrepackedWeightsContainer(
      env, model, size, options, container, &p_));
}

namespace detail {
template <class T>
size_t ConstSessionImpl<T>::GetInputCount() const {
  return Query<size_t>(GetApi().SessionGetInputCount, this->p_);
}
template <class T>
size_t ConstSessionImpl<T>::GetOutputCount() const {
  return Query<size_t>(GetApi().SessionGetOutputCount, this->p_);
}
template <class T>
size_t ConstSessionImpl<T>::GetOverridableInitializerCount() const {
  return Query<size_t>(GetApi().SessionGetOverridableInitializerCount, this->p_);
}
template <class T>
std::vector<std::string> ConstSessionImpl<T>::GetInputNames() const {
  return QueryNames(GetApi().SessionGetInputName, this->p_, GetInputCount());
}
template <class T>
std::vector<std::string> ConstSessionImpl<T>::GetOutputNames() const {
  return QueryNames(GetApi().SessionGetOutputName, this->p_, GetOutputCount());
}
template <class T>
std::vector<std::string> ConstSessionImpl<T>::GetOverridableInitializerNames() const {
  return QueryNames(GetApi().SessionGetOverridableInitializerName, this->p_,
                    GetOverridableInitializerCount());
}
template <class T>
AllocatedStringPtr ConstSessionImpl<T>::GetInputNameAllocated(size_t index,
                                                              OrtAllocator* allocator) const {
  return QueryString(GetApi().SessionGetInputName, allocator, this->p_, index);
}
template <class T>
AllocatedStringPtr ConstSessionImpl<T>::GetOutputNameAllocated(size_t index,
                                                               OrtAllocator* allocator) const {
  return QueryString(GetApi().SessionGetOutputName, allocator, this->p_, index);
}
template <class T>
AllocatedStringPtr ConstSessionImpl<T>::GetOverridableInitializerNameAllocated(
    size_t index, OrtAllocator* allocator) const {
  return QueryString(GetApi().SessionGetOverridableInitializerName, allocator, this->p_, index);
}
template <class T>
TypeInfo ConstSessionImpl<T>::GetInputTypeInfo(size_t index) const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().SessionGetInputTypeInfo, this->p_, index));
}
template <class T>
TypeInfo ConstSessionImpl<T>::GetOutputTypeInfo(size_t index) const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().SessionGetOutputTypeInfo, this->p_, index));
}
template <class T>
TypeInfo ConstSessionImpl<T>::GetOverridableInitializerTypeInfo(size_t index) const {
  return TypeInfo(
      Query<OrtTypeInfo*>(GetApi().SessionGetOverridableInitializerTypeInfo, this->p_, index));
}
template <class T>
ModelMetadata ConstSessionImpl<T>::GetModelMetadata() const {
  return ModelMetadata(Query<OrtModelMetadata*>(GetApi().SessionGetModelMetadata, this->p_));
}
template <class T>
uint64_t ConstSessionImpl<T>::GetProfilingStartTimeNs() const {
  return Query<uint64_t>(GetApi().SessionGetProfilingStartTimeNs, this->p_);
}
template <class T>
int ConstSessionImpl<T>::GetOpset(const std::string& domain) const {
  return Query<int>(GetModelEditorApi().SessionGetOpsetForDomain, this->p_, domain.c_str());
}
template <class T>
std::vector<ConstMemoryInfo> ConstSessionImpl<T>::GetMemoryInfoForInputs() const {
  return QueryObjects<ConstMemoryInfo, OrtMemoryInfo>(GetApi().SessionGetMemoryInfoForInputs,
                                                      this->p_, GetInputCount());
}
template <class T>
std::vector<ConstMemoryInfo> ConstSessionImpl<T>::GetMemoryInfoForOutputs() const {
  return QueryObjects<ConstMemoryInfo, OrtMemoryInfo>(GetApi().SessionGetMemoryInfoForOutputs,
                                                      this->p_, GetOutputCount());
}
template <class T>
std::vector<ConstEpDevice> ConstSessionImpl<T>::GetEpDeviceForInputs() const {
  return QueryObjects<ConstEpDevice, OrtEpDevice>(GetApi().SessionGetEpDeviceForInputs, this->p_,
                                                  GetInputCount());
}
template <class T>
std::vector<ConstEpDevice> ConstSessionImpl<T>::GetEpDeviceForOutputs() const {
  return QueryObjects<ConstEpDevice, OrtEpDevice>(GetApi().SessionGetEpDeviceForOutputs, this->p_,
                                                  GetOutputCount());
}

template <class T>
std::vector<Value> SessionImpl<T>::Run(const RunOptions& run_options,
                                       const char* const* input_names, const Value* inputs,
                                       size_t input_count, const char* const* output_names,
                                       size_t output_count) {
  std::vector<Value> outputs(output_count);
  Run(run_options, input_names, inputs, input_count, output_names, outputs.data(), output_count);
  return outputs;
}
template <class T>
void SessionImpl<T>::Run(const RunOptions& run_options, const char* const* input_names,
                         const Value* inputs, size_t input_count, const char* const* output_names,
                         Value* outputs, size_t output_count) {
  ThrowOnError(GetApi().Run(this->p_, run_options, input_names, Pointers(inputs), input_count,
                            output_names, output_count, Pointers(outputs)));
}
template <class T>
void SessionImpl<T>::Run(const RunOptions& run_options, const IoBinding& binding) {
  ThrowOnError(GetApi().RunWithBinding(this->p_, run_options, binding));
}
template <class T>
void SessionImpl<T>::RunAsync(const RunOptions& run_options, const char* const* input_names,
                              const Value* inputs, size_t input_count,
                              const char* const* output_names, Value* outputs, size_t output_count,
                              RunAsyncCallbackFn callback, void* user_data) {
  ThrowOnError(GetApi().RunAsync(this->p_, run_options, input_names, Pointers(inputs), input_count,
                                 output_names, output_count, Pointers(outputs), callback,
                                 user_data));
}
template <class T>
AllocatedStringPtr SessionImpl<T>::EndProfilingAllocated(OrtAllocator* allocator) {
  return QueryString(GetApi().SessionEndProfiling, allocator, this->p_);
}
template <class T>
void SessionImpl<T>::SetEpDynamicOptions(const char* const* keys, const char* const* values,
                                         size_t count) {
  ThrowOnError(GetApi().SetEpDynamicOptions(this->p_, keys, values, count));
}
}  // namespace detail

// Bindings

inline IoBinding::IoBinding(Session& session) {
  ThrowOnError(GetApi().CreateIoBinding(session, &p_));
}

namespace detail {
template <class T>
std::vector<std::string> ConstIoBindingImpl<T>::GetOutputNames() const {
  return GetOutputNames(AllocatorWithDefaultOptions());
}
template <class T>
std::vector<std::string> ConstIoBindingImpl<T>::GetOutputNames(OrtAllocator* allocator) const {
  char* text = nullptr;
  size_t* lengths = nullptr;
  size_t count = 0;
  ThrowOnError(GetApi().GetBoundOutputNames(this->p_, allocator, &text, &lengths, &count));
  const std::unique_ptr<void, AllocatedFree> text_owner(text, AllocatedFree(allocator));
  const std::unique_ptr<void, AllocatedFree> lengths_owner(lengths, AllocatedFree(allocator));
  std::vector<std::string> names;
  names.reserve(count);
  for (size_t i = 0; i < count; text += lengths[i], ++i) names.emplace_back(text, lengths[i]);
  return names;
}
template <class T>
std::vector<Value> ConstIoBindingImpl<T>::GetOutputValues() const {
  return GetOutputValues(AllocatorWithDefaultOptions());
}
template <class T>
std::vector<Value> ConstIoBindingImpl<T>::GetOutputValues(OrtAllocator* allocator) const {
  OrtValue** outputs = nullptr;
  size_t count = 0;
  ThrowOnError(GetApi().GetBoundOutputValues(this->p_, allocator, &outputs, &count));
  const std::unique_ptr<void, AllocatedFree> owner(outputs, AllocatedFree(allocator));
  std::vector<Value> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) values.emplace_back(outputs[i]);
  return values;
}

template <class T>
void IoBindingImpl<T>::BindInput(const char* name, const Value& value) {
  ThrowOnError(GetApi().BindInput(this->p_, name, value));
}
template <class T>
void IoBindingImpl<T>::BindOutput(const char* name, const Value& value) {
  ThrowOnError(GetApi().BindOutput(this->p_, name, value));
}
template <class T>
void IoBindingImpl<T>::BindOutput(const char* name, const OrtMemoryInfo* info) {
  ThrowOnError(GetApi().BindOutputToDevice(this->p_, name, info));
}
template <class T>
void IoBindingImpl<T>::SynchronizeInputs() {
  ThrowOnError(GetApi().SynchronizeBoundInputs(this->p_));
}
template <class T>
void IoBindingImpl<T>::SynchronizeOutputs() {
  ThrowOnError(GetApi().SynchronizeBoundOutputs(this->p_));
}
}  // namespace detail

}  // namespace Ort
