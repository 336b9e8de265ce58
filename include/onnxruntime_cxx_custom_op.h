// Custom operators in C++: the classes that a kernel uses, and the base class CustomOpBase.
// Part of onnxruntime_cxx_api.h.
//
//   struct Kernel {
//     void Compute(OrtKernelContext* context);
//   };
//   struct Op : Ort::CustomOpBase<Op, Kernel> {
//     void* CreateKernel(const OrtApi& api, const OrtKernelInfo* info) const;
//     const char* GetName() const { return "Op"; }
//     size_t GetInputTypeCount() const { return 1; }
//     ONNXTensorElementDataType GetInputType(size_t) const;
//     size_t GetOutputTypeCount() const { return 1; }
//     ONNXTensorElementDataType GetOutputType(size_t) const;
//   };
#pragma once

#include <climits>

namespace Ort {

// Where a kernel or provider writes log lines; owned by the library.
struct Logger {
  Logger() = default;
  explicit Logger(std::nullptr_t) {}
  explicit Logger(const OrtLogger* logger);
  OrtLoggingLevel GetLoggingSeverityLevel() const noexcept { return level_; }
  // Writes nothing if `level` is not severe enough.
  Status LogMessage(OrtLoggingLevel level, const ORTCHAR_T* file, int line, const char* function,
                    const char* message) const noexcept;
  // The same with arguments as printf takes them.
  template <class... Args>
  Status LogFormattedMessage(OrtLoggingLevel level, const ORTCHAR_T* file, int line,
                             const char* function, const char* format, Args&&... args) const;

 private:
  const OrtLogger* logger_ = nullptr;
  OrtLoggingLevel level_ = ORT_LOGGING_LEVEL_FATAL;
};

#define ORT_CXX_LOG(logger, level, message) \
  Ort::ThrowOnError((logger).LogMessage(level, ORT_FILE, __LINE__, __func__, message))
#define ORT_CXX_LOGF(logger, level, ...) \
  Ort::ThrowOnError((logger).LogFormattedMessage(level, ORT_FILE, __LINE__, __func__, __VA_ARGS__))
#define ORT_CXX_LOG_NOEXCEPT(logger, level, message) \
  static_cast<void>((logger).LogMessage(level, ORT_FILE, __LINE__, __func__, message))

struct KernelInfo;
namespace detail {
inline void Attribute(const OrtKernelInfo* info, const char* name, float& out);
inline void Attribute(const OrtKernelInfo* info, const char* name, int64_t& out);
inline void Attribute(const OrtKernelInfo* info, const char* name, std::string& out);
inline void Attributes(const OrtKernelInfo* info, const char* name, std::vector<float>& out);
inline void Attributes(const OrtKernelInfo* info, const char* name, std::vector<int64_t>& out);
inline void Attributes(const OrtKernelInfo* info, const char* name, std::vector<std::string>& out);

template <class T>
struct KernelInfoImpl : Base<T> {
  using Base<T>::Base;
  KernelInfo Copy() const;

  // R: float, int64_t or std::string. A missing attribute is an error.
  template <class R>
  R GetAttribute(const char* name) const {
    R value;
    Attribute(this->p_, name, value);
    return value;
  }
  template <class R>
  std::vector<R> GetAttributes(const char* name) const {
    std::vector<R> values;
    Attributes(this->p_, name, values);
    return values;
  }
  Value GetTensorAttribute(const char* name, OrtAllocator* allocator) const;

  size_t GetInputCount() const;
  size_t GetOutputCount() const;
  std::string GetInputName(size_t index) const;
  std::string GetOutputName(size_t index) const;
  TypeInfo GetInputTypeInfo(size_t index) const;
  TypeInfo GetOutputTypeInfo(size_t index) const;
  // The value of a constant input; else empty, and `*is_constant` is 0.
  ConstValue GetTensorConstantInput(size_t index, int* is_constant) const;
  std::string GetNodeName() const;
  std::string GetOperatorDomain() const;
  std::string GetOperatorType() const;
  int GetOperatorSinceVersion() const;
  KeyValuePairs GetConfigEntries() const;
  Logger GetLogger() const;
  // The plugin's provider that the kernel belongs to.
  const OrtEp* GetEp() const { return Query<const OrtEp*>(GetEpApi().KernelInfo_GetEp, this->p_); }
};
}  // namespace detail
using ConstKernelInfo = detail::KernelInfoImpl<detail::Unowned<const OrtKernelInfo>>;

// The node that a kernel is made for.
struct KernelInfo : detail::KernelInfoImpl<OrtKernelInfo> {
  using KernelInfoImpl::KernelInfoImpl;
  explicit KernelInfo(std::nullptr_t) {}
  ConstKernelInfo GetConst() const { return ConstKernelInfo(p_); }
};

// One call of a kernel.
struct KernelContext {
  explicit KernelContext(OrtKernelContext* context) : context_(context) {}
  size_t GetInputCount() const;
  size_t GetOutputCount() const;
  // Empty if an optional input is missing.
  ConstValue GetInput(size_t index) const;
  UnownedValue GetOutput(size_t index, const int64_t* shape, size_t shape_len) const;
  UnownedValue GetOutput(size_t index, const std::vector<int64_t>& shape) const;
  void* GetGPUComputeStream() const;
  // Of the kernel's provider; null if it has none.
  OrtSyncStream* GetSyncStream() const;
  Logger GetLogger() const;
  Allocator GetAllocator(const OrtMemoryInfo& info) const;
  OrtKernelContext* GetOrtKernelContext() const { return context_; }
  // fn(user_data, i) for i in [0, total), on the session's threads.
  void ParallelFor(void (*fn)(void*, size_t), size_t total, size_t num_batch,
                   void* user_data) const;

 private:
  OrtKernelContext* context_;
};

namespace detail {
template <class T>
struct ConstOpAttrImpl : Base<T> {
  using Base<T>::Base;
  std::string GetName() const { return Query<const char*>(GetApi().OpAttr_GetName, this->p_); }
  OrtOpAttrType GetType() const { return Query<OrtOpAttrType>(GetApi().OpAttr_GetType, this->p_); }
  // R: int64_t, float or std::string.
  template <class R>
  Status GetValue(R& value) const;
  template <class R>
  Status GetValueArray(std::vector<R>& values) const;
  Status GetTensorAttributeAsOrtValue(Value& value) const {
    OrtValue* found = nullptr;
    Status status(GetApi().OpAttr_GetTensorAttributeAsOrtValue(this->p_, &found));
    if (status.IsOK()) value = Value(found);
    return status;
  }

 private:
  Status Read(OrtOpAttrType type, std::string& bytes) const;
};

// The bytes of an attribute's data; of a list of strings, each with the null character behind it.
template <class T>
Status ConstOpAttrImpl<T>::Read(OrtOpAttrType type, std::string& bytes) const {
  size_t size = 0;
  Status status(GetApi().ReadOpAttr(this->p_, type, nullptr, 0, &size));
  if (size == 0) return status;
  bytes.resize(size);
  return Status(GetApi().ReadOpAttr(this->p_, type, bytes.data(), size, &size));
}

template <class T>
template <class R>
Status ConstOpAttrImpl<T>::GetValue(R& value) const {
  if constexpr (std::is_same_v<R, std::string>) {
    return Read(ORT_OP_ATTR_STRING, value);
  } else {
    static_assert(std::is_same_v<R, int64_t> || std::is_same_v<R, float>);
    constexpr OrtOpAttrType kType = std::is_same_v<R, float> ? ORT_OP_ATTR_FLOAT : ORT_OP_ATTR_INT;
    size_t size = 0;
    return Status(GetApi().ReadOpAttr(this->p_, kType, &value, sizeof(value), &size));
  }
}

template <class T>
template <class R>
Status ConstOpAttrImpl<T>::GetValueArray(std::vector<R>& values) const {
  std::string bytes;
  if constexpr (std::is_same_v<R, std::string>) {
    Status status = Read(ORT_OP_ATTR_STRINGS, bytes);
    if (!status.IsOK()) return status;
    values.clear();
    for (size_t i = 0; i < bytes.size(); i += values.back().size() + 1) {
      values.emplace_back(bytes.c_str() + i);
    }
    return status;
  } else {
    static_assert(std::is_same_v<R, int64_t> || std::is_same_v<R, float>);
    Status status = Read(std::is_same_v<R, float> ? ORT_OP_ATTR_FLOATS : ORT_OP_ATTR_INTS, bytes);
    if (!status.IsOK()) return status;
    values.resize(bytes.size() / sizeof(R));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return status;
  }
}
}  // namespace detail
using ConstOpAttr = detail::ConstOpAttrImpl<detail::Unowned<const OrtOpAttr>>;

// A named setting of an operator.
struct OpAttr : detail::ConstOpAttrImpl<OrtOpAttr> {
  using ConstOpAttrImpl::ConstOpAttrImpl;
  explicit OpAttr(std::nullptr_t) {}
  OpAttr(const char* name, const void* data, int len, OrtOpAttrType type) {
    ThrowOnError(GetApi().CreateOpAttr(name, data, len, type, &p_));
  }
  ConstOpAttr GetConst() const { return ConstOpAttr(p_); }
};

// An operator that a custom kernel calls.
struct Op : detail::Base<OrtOp> {
  using Base::Base;
  explicit Op(std::nullptr_t) {}
  static Op Create(const OrtKernelInfo* info, const char* name, const char* domain, int version,
                   const char** type_constraint_names,
                   const ONNXTensorElementDataType* type_constraint_values,
                   size_t type_constraint_count, const OpAttr* attributes, size_t attribute_count,
                   size_t input_count, size_t output_count);
  void Invoke(const OrtKernelContext* context, const Value* inputs, size_t input_count,
              Value* outputs, size_t output_count);
  void Invoke(const OrtKernelContext* context, const OrtValue* const* inputs, size_t input_count,
              OrtValue* const* outputs, size_t output_count);
};

// The shape function's view of a custom operator.
struct ShapeInferContext {
  // A dimension: a number, or a name.
  struct SymbolicInteger {
    SymbolicInteger(int64_t number) : number_(number), is_number_(true) {}
    SymbolicInteger(const char* name) : name_(name), is_number_(false) {}
    bool IsInt() const { return is_number_; }
    int64_t AsInt() const { return number_; }
    const char* AsSym() const { return name_.c_str(); }
    bool operator==(const SymbolicInteger& other) const {
      return is_number_ == other.is_number_ && number_ == other.number_ && name_ == other.name_;
    }

   private:
    int64_t number_ = 0;
    std::string name_;
    bool is_number_;
  };
  using Shape = std::vector<SymbolicInteger>;
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<float>;
  using Strings = std::vector<std::string>;

  ShapeInferContext(const OrtApi* api, OrtShapeInferContext* context);
  size_t GetInputCount() const { return input_shapes_.size(); }
  const Shape& GetInputShape(size_t index) const { return input_shapes_.at(index); }
  Status SetOutputShape(size_t index, const Shape& shape,
                        ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) const;
  int64_t GetAttrInt(const char* name) const;
  Ints GetAttrInts(const char* name) const;
  float GetAttrFloat(const char* name) const;
  Floats GetAttrFloats(const char* name) const;
  std::string GetAttrString(const char* name) const;
  Strings GetAttrStrings(const char* name) const;

 private:
  // The attribute's bytes; Element: what they are.
  template <class Element>
  std::vector<Element> Read(const char* name, OrtOpAttrType type) const;

  const OrtApi* api_;
  OrtShapeInferContext* context_;
  std::vector<Shape> input_shapes_;
};

// Fills OrtCustomOp with the methods of TOp; those of this class are the defaults. Kernels are
// TKernel objects. With kWithStatus, TOp has CreateKernelV2 and TKernel ComputeV2, which return an
// OrtStatusPtr instead of throwing.
template <class TOp, class TKernel, bool kWithStatus = false>
struct CustomOpBase : OrtCustomOp {
  CustomOpBase();

  const char* GetExecutionProviderType() const { return nullptr; }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t) const {
    return INPUT_OUTPUT_REQUIRED;
  }
  OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(size_t) const {
    return INPUT_OUTPUT_REQUIRED;
  }
  OrtMemType GetInputMemoryType(size_t) const { return OrtMemTypeDefault; }
  int GetVariadicInputMinArity() const { return 1; }
  bool GetVariadicInputHomogeneity() const { return true; }
  int GetVariadicOutputMinArity() const { return 1; }
  bool GetVariadicOutputHomogeneity() const { return true; }
  // Keys of CustomOpConfigs that the operator knows.
  std::vector<std::string> GetSessionConfigKeys() const { return {}; }

 protected:
  // The values of these keys that are set in `options`.
  void GetSessionConfigs(std::unordered_map<std::string, std::string>& out,
                         ConstSessionOptions options) const;
  // Makes `Op::InferOutputShape(Ort::ShapeInferContext&)`, which is static, the shape function, if
  // there is one.
  template <class Op>
  void SetShapeInferFn(decltype(&Op::InferOutputShape));
  template <class Op>
  void SetShapeInferFn(...) {
    OrtCustomOp::InferOutputShapeFn = nullptr;
  }
  int start_ver_ = 1;
  int end_ver_ = INT_MAX;

 private:
  static const TOp& Self(const OrtCustomOp* op) { return *static_cast<const TOp*>(op); }
  void SetKernelFunctions();
};

// Definitions

inline Logger::Logger(const OrtLogger* logger) : logger_(logger) {
  level_ = detail::Query<OrtLoggingLevel>(GetApi().Logger_GetLoggingSeverityLevel, logger_);
}
inline Status Logger::LogMessage(OrtLoggingLevel level, const ORTCHAR_T* file, int line,
                                 const char* function, const char* message) const noexcept {
  if (level < level_ || logger_ == nullptr) return Status();
  return Status(GetApi().Logger_LogMessage(logger_, level, message, file, line, function));
}
template <class... Args>
Status Logger::LogFormattedMessage(OrtLoggingLevel level, const ORTCHAR_T* file, int line,
                                   const char* function, const char* format, Args&&... args) const {
  if (level < level_ || logger_ == nullptr) return Status();
  const int length = std::snprintf(nullptr, 0, format, args...);
  if (length < 0) return Status("a log message could not be formatted", ORT_INVALID_ARGUMENT);
  std::string text(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, args...);
  return LogMessage(level, file, line, function, text.c_str());
}

namespace detail {
inline void Attribute(const OrtKernelInfo* info, const char* name, float& out) {
  ThrowOnError(GetApi().KernelInfoGetAttribute_float(info, name, &out));
}
inline void Attribute(const OrtKernelInfo* info, const char* name, int64_t& out) {
  ThrowOnError(GetApi().KernelInfoGetAttribute_int64(info, name, &out));
}
inline void Attribute(const OrtKernelInfo* info, const char* name, std::string& out) {
  out = QueryText(GetApi().KernelInfoGetAttribute_string, info, name);
}
inline void Attributes(const OrtKernelInfo* info, const char* name, std::vector<float>& out) {
  size_t count = 0;
  ThrowOnError(GetApi().KernelInfoGetAttributeArray_float(info, name, nullptr, &count));
  out.resize(count);
  ThrowOnError(GetApi().KernelInfoGetAttributeArray_float(info, name, out.data(), &count));
}
inline void Attributes(const OrtKernelInfo* info, const char* name, std::vector<int64_t>& out) {
  size_t count = 0;
  ThrowOnError(GetApi().KernelInfoGetAttributeArray_int64(info, name, nullptr, &count));
  out.resize(count);
  ThrowOnError(GetApi().KernelInfoGetAttributeArray_int64(info, name, out.data(), &count));
}
inline void Attributes(const OrtKernelInfo* info, const char* name, std::vector<std::string>& out) {
  OrtAllocator* const allocator = AllocatorWithDefaultOptions();
  char** texts = nullptr;
  size_t count = 0;
  ThrowOnError(GetApi().KernelInfoGetAttributeArray_string(info, name, allocator, &texts, &count));
  const std::unique_ptr<void, AllocatedFree> array(texts, AllocatedFree(allocator));
  for (size_t i = 0; i < count; ++i) {
    out.emplace_back(AllocatedStringPtr(texts[i], AllocatedFree(allocator)).get());
  }
}

template <class T>
KernelInfo KernelInfoImpl<T>::Copy() const {
  return KernelInfo(Query<OrtKernelInfo*>(GetApi().CopyKernelInfo, this->p_));
}
template <class T>
Value KernelInfoImpl<T>::GetTensorAttribute(const char* name, OrtAllocator* allocator) const {
  return Value(Query<OrtValue*>(GetApi().KernelInfoGetAttribute_tensor, this->p_, name, allocator));
}
template <class T>
size_t KernelInfoImpl<T>::GetInputCount() const {
  return Query<size_t>(GetApi().KernelInfo_GetInputCount, this->p_);
}
template <class T>
size_t KernelInfoImpl<T>::GetOutputCount() const {
  return Query<size_t>(GetApi().KernelInfo_GetOutputCount, this->p_);
}
template <class T>
std::string KernelInfoImpl<T>::GetInputName(size_t index) const {
  return QueryText(GetApi().KernelInfo_GetInputName, this->p_, index);
}
template <class T>
std::string KernelInfoImpl<T>::GetOutputName(size_t index) const {
  return QueryText(GetApi().KernelInfo_GetOutputName, this->p_, index);
}
template <class T>
TypeInfo KernelInfoImpl<T>::GetInputTypeInfo(size_t index) const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().KernelInfo_GetInputTypeInfo, this->p_, index));
}
template <class T>
TypeInfo KernelInfoImpl<T>::GetOutputTypeInfo(size_t index) const {
  return TypeInfo(Query<OrtTypeInfo*>(GetApi().KernelInfo_GetOutputTypeInfo, this->p_, index));
}
template <class T>
ConstValue KernelInfoImpl<T>::GetTensorConstantInput(size_t index, int* is_constant) const {
  return ConstValue(Query<const OrtValue*>(GetApi().KernelInfoGetConstantInput_tensor, this->p_,
                                           index, is_constant));
}
template <class T>
std::string KernelInfoImpl<T>::GetNodeName() const {
  return QueryText(GetApi().KernelInfo_GetNodeName, this->p_);
}
template <class T>
std::string KernelInfoImpl<T>::GetOperatorDomain() const {
  return QueryText(GetApi().KernelInfo_GetOperatorDomain, this->p_);
}
template <class T>
std::string KernelInfoImpl<T>::GetOperatorType() const {
  return QueryText(GetApi().KernelInfo_GetOperatorType, this->p_);
}
template <class T>
int KernelInfoImpl<T>::GetOperatorSinceVersion() const {
  return Query<int>(GetApi().KernelInfo_GetOperatorSinceVersion, this->p_);
}
template <class T>
KeyValuePairs KernelInfoImpl<T>::GetConfigEntries() const {
  return KeyValuePairs(Query<OrtKeyValuePairs*>(GetApi().KernelInfo_GetConfigEntries, this->p_));
}
template <class T>
Logger KernelInfoImpl<T>::GetLogger() const {
  return Logger(Query<const OrtLogger*>(GetApi().KernelInfo_GetLogger, this->p_));
}
}  // namespace detail

inline size_t KernelContext::GetInputCount() const {
  return detail::Query<size_t>(GetApi().KernelContext_GetInputCount, context_);
}
inline size_t KernelContext::GetOutputCount() const {
  return detail::Query<size_t>(GetApi().KernelContext_GetOutputCount, context_);
}
inline ConstValue KernelContext::GetInput(size_t index) const {
  return ConstValue(
      detail::Query<const OrtValue*>(GetApi().KernelContext_GetInput, context_, index));
}
inline UnownedValue KernelContext::GetOutput(size_t index, const int64_t* shape,
                                             size_t shape_len) const {
  return UnownedValue(detail::Query<OrtValue*>(GetApi().KernelContext_GetOutput, context_, index,
                                               shape, shape_len));
}
inline UnownedValue KernelContext::GetOutput(size_t index,
                                             const std::vector<int64_t>& shape) const {
  return GetOutput(index, shape.data(), shape.size());
}
inline void* KernelContext::GetGPUComputeStream() const {
  return detail::Query<void*>(GetApi().KernelContext_GetGPUComputeStream, context_);
}
inline OrtSyncStream* KernelContext::GetSyncStream() const {
  return detail::Query<OrtSyncStream*>(GetApi().KernelContext_GetSyncStream, context_);
}
inline Logger KernelContext::GetLogger() const {
  return Logger(detail::Query<const OrtLogger*>(GetApi().KernelContext_GetLogger, context_));
}
inline Allocator KernelContext::GetAllocator(const OrtMemoryInfo& info) const {
  return Allocator(
      detail::Query<OrtAllocator*>(GetApi().KernelContext_GetAllocator, context_, &info));
}
inline void KernelContext::ParallelFor(void (*fn)(void*, size_t), size_t total, size_t num_batch,
                                       void* user_data) const {
  ThrowOnError(GetApi().KernelContext_ParallelFor(context_, fn, total, num_batch, user_data));
}

inline Op Op::Create(const OrtKernelInfo* info, const char* name, const char* domain, int version,
                     const char** type_constraint_names,
                     const ONNXTensorElementDataType* type_constraint_values,
                     size_t type_constraint_count, const OpAttr* attributes, size_t attribute_count,
                     size_t input_count, size_t output_count) {
  const std::vector<const OrtOpAttr*> pointers(attributes, attributes + attribute_count);
  return Op(detail::Query<OrtOp*>(
      GetApi().CreateOp, info, name, domain, version, type_constraint_names, type_constraint_values,
      static_cast<int>(type_constraint_count), pointers.data(), static_cast<int>(attribute_count),
      static_cast<int>(input_count), static_cast<int>(output_count)));
}
inline void Op::Invoke(const OrtKernelContext* context, const OrtValue* const* inputs,
                       size_t input_count, OrtValue* const* outputs, size_t output_count) {
  ThrowOnError(GetApi().InvokeOp(context, p_, inputs, static_cast<int>(input_count), outputs,
                                 static_cast<int>(output_count)));
}
inline void Op::Invoke(const OrtKernelContext* context, const Value* inputs, size_t input_count,
                       Value* outputs, size_t output_count) {
  Invoke(context, detail::Pointers(inputs), input_count, detail::Pointers(outputs), output_count);
}

inline ShapeInferContext::ShapeInferContext(const OrtApi* api, OrtShapeInferContext* context)
    : api_(api), context_(context) {
  input_shapes_.resize(detail::Query<size_t>(api_->ShapeInferContext_GetInputCount, context_));
  for (size_t i = 0; i < input_shapes_.size(); ++i) {
    // Owned by the context.
    const ConstTensorTypeAndShapeInfo info(detail::Query<OrtTensorTypeAndShapeInfo*>(
        api_->ShapeInferContext_GetInputTypeShape, context_, i));
    const std::vector<int64_t> numbers = info.GetShape();
    const std::vector<const char*> names = info.GetSymbolicDimensions();
    for (size_t axis = 0; axis < numbers.size(); ++axis) {
      const bool is_named = names[axis] != nullptr && names[axis][0] != '\0';
      input_shapes_[i].push_back(is_named ? SymbolicInteger(names[axis])
                                          : SymbolicInteger(numbers[axis]));
    }
  }
}
inline Status ShapeInferContext::SetOutputShape(size_t index, const Shape& shape,
                                                ONNXTensorElementDataType type) const {
  std::vector<int64_t> numbers;
  std::vector<std::string> names;
  for (const SymbolicInteger& dimension : shape) {
    numbers.push_back(dimension.IsInt() ? dimension.AsInt() : -1);
    names.emplace_back(dimension.AsSym());
  }
  const TensorTypeAndShapeInfo info(type, numbers, &names);
  return Status(api_->ShapeInferContext_SetOutputTypeShape(context_, index, info));
}
template <class Element>
std::vector<Element> ShapeInferContext::Read(const char* name, OrtOpAttrType type) const {
  const auto* attribute =
      detail::Query<const OrtOpAttr*>(api_->ShapeInferContext_GetAttribute, context_, name);
  size_t size = 0;
  // Requests only the size, so the status can only say that there was no room.
  const Status no_room(api_->ReadOpAttr(attribute, type, nullptr, 0, &size));
  std::vector<Element> elements((size + sizeof(Element) - 1) / sizeof(Element));
  ThrowOnError(
      api_->ReadOpAttr(attribute, type, elements.data(), elements.size() * sizeof(Element), &size));
  return elements;
}
inline int64_t ShapeInferContext::GetAttrInt(const char* name) const {
  return Read<int64_t>(name, ORT_OP_ATTR_INT).at(0);
}
inline ShapeInferContext::Ints ShapeInferContext::GetAttrInts(const char* name) const {
  return Read<int64_t>(name, ORT_OP_ATTR_INTS);
}
inline float ShapeInferContext::GetAttrFloat(const char* name) const {
  return Read<float>(name, ORT_OP_ATTR_FLOAT).at(0);
}
inline ShapeInferContext::Floats ShapeInferContext::GetAttrFloats(const char* name) const {
  return Read<float>(name, ORT_OP_ATTR_FLOATS);
}
inline std::string ShapeInferContext::GetAttrString(const char* name) const {
  const std::vector<char> text = Read<char>(name, ORT_OP_ATTR_STRING);
  return std::string(text.begin(), text.end());
}
inline ShapeInferContext::Strings ShapeInferContext::GetAttrStrings(const char* name) const {
  const std::vector<char> texts = Read<char>(name, ORT_OP_ATTR_STRINGS);
  Strings strings;
  // One after the other, each with its terminator.
  for (size_t at = 0; at < texts.size(); at += strings.back().size() + 1) {
    strings.emplace_back(texts.data() + at);
  }
  return strings;
}

template <class TOp, class TKernel, bool kWithStatus>
CustomOpBase<TOp, TKernel, kWithStatus>::CustomOpBase() : OrtCustomOp{} {
  OrtCustomOp::version = ORT_API_VERSION;
  OrtCustomOp::GetName = [](const OrtCustomOp* op) { return Self(op).GetName(); };
  OrtCustomOp::GetExecutionProviderType = [](const OrtCustomOp* op) {
    return Self(op).GetExecutionProviderType();
  };
  OrtCustomOp::GetInputTypeCount = [](const OrtCustomOp* op) {
    return Self(op).GetInputTypeCount();
  };
  OrtCustomOp::GetInputType = [](const OrtCustomOp* op, size_t index) {
    return Self(op).GetInputType(index);
  };
  OrtCustomOp::GetInputMemoryType = [](const OrtCustomOp* op, size_t index) {
    return Self(op).GetInputMemoryType(index);
  };
  OrtCustomOp::GetOutputTypeCount = [](const OrtCustomOp* op) {
    return Self(op).GetOutputTypeCount();
  };
  OrtCustomOp::GetOutputType = [](const OrtCustomOp* op, size_t index) {
    return Self(op).GetOutputType(index);
  };
  OrtCustomOp::GetInputCharacteristic = [](const OrtCustomOp* op, size_t index) {
    return Self(op).GetInputCharacteristic(index);
  };
  OrtCustomOp::GetOutputCharacteristic = [](const OrtCustomOp* op, size_t index) {
    return Self(op).GetOutputCharacteristic(index);
  };
  OrtCustomOp::GetVariadicInputMinArity = [](const OrtCustomOp* op) {
    return Self(op).GetVariadicInputMinArity();
  };
  OrtCustomOp::GetVariadicInputHomogeneity = [](const OrtCustomOp* op) {
    return static_cast<int>(Self(op).GetVariadicInputHomogeneity());
  };
  OrtCustomOp::GetVariadicOutputMinArity = [](const OrtCustomOp* op) {
    return Self(op).GetVariadicOutputMinArity();
  };
  OrtCustomOp::GetVariadicOutputHomogeneity = [](const OrtCustomOp* op) {
    return static_cast<int>(Self(op).GetVariadicOutputHomogeneity());
  };
  OrtCustomOp::GetStartVersion = [](const OrtCustomOp* op) {
    return static_cast<const CustomOpBase*>(op)->start_ver_;
  };
  OrtCustomOp::GetEndVersion = [](const OrtCustomOp* op) {
    return static_cast<const CustomOpBase*>(op)->end_ver_;
  };
  SetShapeInferFn<TOp>(0);
  SetKernelFunctions();
}

template <class TOp, class TKernel, bool kWithStatus>
void CustomOpBase<TOp, TKernel, kWithStatus>::SetKernelFunctions() {
  OrtCustomOp::KernelDestroy = [](void* kernel) { delete static_cast<TKernel*>(kernel); };
  if constexpr (kWithStatus) {
    OrtCustomOp::CreateKernelV2 = [](const OrtCustomOp* op, const OrtApi* api,
                                     const OrtKernelInfo* info, void** kernel) -> OrtStatusPtr {
      return Self(op).CreateKernelV2(*api, info, kernel);
    };
    OrtCustomOp::KernelComputeV2 = [](void* kernel, OrtKernelContext* context) -> OrtStatusPtr {
      return static_cast<TKernel*>(kernel)->ComputeV2(context);
    };
  } else {
    OrtCustomOp::CreateKernel = [](const OrtCustomOp* op, const OrtApi* api,
                                   const OrtKernelInfo* info) -> void* {
      return Self(op).CreateKernel(*api, info);
    };
    OrtCustomOp::KernelCompute = [](void* kernel, OrtKernelContext* context) {
      static_cast<TKernel*>(kernel)->Compute(context);
    };
  }
}

template <class TOp, class TKernel, bool kWithStatus>
template <class Op>
void CustomOpBase<TOp, TKernel, kWithStatus>::SetShapeInferFn(decltype(&Op::InferOutputShape)) {
  OrtCustomOp::InferOutputShapeFn = [](const OrtCustomOp*,
                                       OrtShapeInferContext* context) -> OrtStatusPtr {
    ShapeInferContext shapes(&GetApi(), context);
    return Status(Op::InferOutputShape(shapes)).release();
  };
}

template <class TOp, class TKernel, bool kWithStatus>
void CustomOpBase<TOp, TKernel, kWithStatus>::GetSessionConfigs(
    std::unordered_map<std::string, std::string>& out, ConstSessionOptions options) const {
  const TOp& self = *static_cast<const TOp*>(this);
  for (const std::string& key : self.GetSessionConfigKeys()) {
    const std::string entry =
        CustomOpConfigs::MakeSessionConfigEntryKey(self.GetName(), key.c_str());
    if (options.HasConfigEntry(entry.c_str())) {
      out[key] = options.GetConfigEntry(entry.c_str());
    }
  }
}

}  // namespace Ort
