// Custom operators from functions and structs: their parameters are the inputs and outputs.
//
//   void Scale(const Ort::Custom::Tensor<float>& x, float factor, Ort::Custom::Tensor<float>& y) {
//     float* const to = y.Allocate(x.Shape());
//     for (int64_t i = 0; i < x.NumberOfElement(); ++i) to[i] = factor * x.Data()[i];
//   }
//   std::unique_ptr<Ort::Custom::OrtLiteCustomOp> op(
//       Ort::Custom::CreateLiteCustomOp("Scale", "CPUExecutionProvider", Scale));
//   domain.Add(op.get());
//
// Of an element type E, a parameter may be
//
//   const Tensor<E>&, const Tensor<E>*   an input
//   const Span<E>&, const Span<E>*       an input of rank 1, of numbers
//   E, const std::string&,               an input with one element
//   std::string_view
//   Tensor<E>&, Tensor<E>*               an output
//   const TensorArray&, const TensorArray*   all remaining inputs
//   TensorArray&, TensorArray*           all remaining outputs
//   OrtKernelContext&, OrtKernelContext* the call itself
//
// and those by value or by pointer may be std::optional, which is empty if the node leaves out the
// input or output. A function returns nothing, or an Ort::Status. A failure may also be thrown.
//
// A struct has a constructor that takes (const OrtApi*, const OrtKernelInfo*), a method Compute
// with such parameters, and may have `static Ort::Status
// InferOutputShape(Ort::ShapeInferContext&)`.
#pragma once

// Also what this file does not use, but clients get with onnxruntime's header of this name.
#include <climits>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnxruntime_cxx_api.h"

namespace Ort {
namespace Custom {

// An input or output of one call.
class ArgBase {
 public:
  ArgBase(OrtKernelContext* context, size_t index, bool is_input)
      : ctx_(context), indice_(index), is_input_(is_input) {}
  virtual ~ArgBase() = default;

 protected:
  KernelContext ctx_;
  size_t indice_;
  bool is_input_;
};
using ArgPtr = std::unique_ptr<ArgBase>;
using ArgPtrs = std::vector<ArgPtr>;

// A tensor of any element type. It has no shape before an output is allocated, and if the node
// leaves out the input.
class TensorBase : public ArgBase {
 public:
  TensorBase(OrtKernelContext* context, size_t index, bool is_input);

  operator bool() const { return shape_.has_value(); }
  const std::vector<int64_t>& Shape() const {
    if (!shape_) ORT_CXX_API_THROW("the tensor has no shape yet", ORT_RUNTIME_EXCEPTION);
    return *shape_;
  }
  ONNXTensorElementDataType Type() const { return type_; }
  // 0 without a shape.
  int64_t NumberOfElement() const;
  // "2, 3, ", or "empty" without a shape.
  std::string Shape2Str() const;
  bool IsCpuTensor() const { return is_in_cpu_memory_; }
  // Of strings: those of the one element.
  virtual const void* DataRaw() const = 0;
  virtual size_t SizeInBytes() const = 0;

 protected:
  void CheckOneElement() const {
    if (!shape_ || NumberOfElement() != 1) {
      ORT_CXX_API_THROW("expected a tensor with one element, got shape " + Shape2Str(),
                        ORT_RUNTIME_EXCEPTION);
    }
  }

  std::optional<std::vector<int64_t>> shape_;
  ONNXTensorElementDataType type_ = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  ConstValue input_;  // empty for outputs
  bool is_in_cpu_memory_ = true;
};
using TensorPtr = std::unique_ptr<TensorBase>;
using TensorPtrs = std::vector<TensorPtr>;

// The elements of a tensor of rank 1.
template <class T>
struct Span {
  const T* data_ = nullptr;
  size_t size_ = 0;
  void Assign(const T* data, size_t size) {
    data_ = data;
    size_ = size;
  }
  size_t size() const { return size_; }
  T operator[](size_t index) const { return data_[index]; }
  const T* data() const { return data_; }
};

// A tensor of numbers.
template <class T>
class Tensor : public TensorBase {
 public:
  using TT = std::remove_reference_t<T>;
  Tensor(OrtKernelContext* context, size_t index, bool is_input)
      : TensorBase(context, index, is_input) {
    type_ = TypeToTensorType<TT>::type;
  }

  // Of an input, or of an output that was allocated.
  const TT* Data() const {
    if (!is_input_) return output_;
    return static_cast<const TT*>(input_.GetTensorRawData());
  }
  // The elements of an output. A second call returns those of the first.
  TT* Allocate(const std::vector<int64_t>& shape) {
    if (output_ == nullptr) {
      shape_ = shape;
      output_ = ctx_.GetOutput(indice_, shape).template GetTensorMutableData<TT>();
    }
    return output_;
  }
  const Span<T>& AsSpan() {
    if (!shape_ || shape_->size() != 1) {
      ORT_CXX_API_THROW("expected a tensor of rank 1, got shape " + Shape2Str(),
                        ORT_RUNTIME_EXCEPTION);
    }
    span_.Assign(Data(), static_cast<size_t>(shape_->front()));
    return span_;
  }
  const T& AsScalar() const {
    CheckOneElement();
    return *Data();
  }
  const void* DataRaw() const override { return Data(); }
  size_t SizeInBytes() const override {
    return sizeof(TT) * static_cast<size_t>(NumberOfElement());
  }

 private:
  TT* output_ = nullptr;
  Span<T> span_;
};

// A tensor of strings. Text: std::string, or std::string_view to get no copies of the input.
template <class Text>
class StringTensor : public TensorBase {
 public:
  using strings = std::vector<std::string>;

  StringTensor(OrtKernelContext* context, size_t index, bool is_input)
      : TensorBase(context, index, is_input) {
    type_ = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    if (is_input_ && shape_ && NumberOfElement() > 0) ReadInput();
  }

  // Of an input.
  const std::vector<Text>& Data() const { return texts_; }
  void SetStringOutput(const strings& texts, const std::vector<int64_t>& shape) {
    shape_ = shape;
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    ctx_.GetOutput(indice_, shape).FillStringTensor(pointers.data(), pointers.size());
  }
  const Text& AsScalar() const {
    CheckOneElement();
    return texts_.front();
  }
  const void* DataRaw() const override {
    CheckOneElement();
    return texts_.front().data();
  }
  size_t SizeInBytes() const override {
    CheckOneElement();
    return texts_.front().size();
  }

 private:
  void ReadInput() {
    std::vector<size_t> offsets(static_cast<size_t>(NumberOfElement()));
    chars_.resize(input_.GetStringTensorDataLength());
    input_.GetStringTensorContent(chars_.data(), chars_.size(), offsets.data(), offsets.size());
    offsets.push_back(chars_.size());
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      texts_.emplace_back(chars_.data() + offsets[i], offsets[i + 1] - offsets[i]);
    }
  }

  std::string chars_;
  std::vector<Text> texts_;
};
template <>
class Tensor<std::string> : public StringTensor<std::string> {
 public:
  using StringTensor::StringTensor;
};
template <>
class Tensor<std::string_view> : public StringTensor<std::string_view> {
 public:
  using string_views = std::vector<std::string_view>;
  using StringTensor::StringTensor;
};

// The inputs, or the outputs, from an index on.
struct TensorArray : ArgBase {
  TensorArray(OrtKernelContext* context, size_t start, bool is_input);

  size_t Size() const { return tensors_.size(); }
  const TensorPtr& operator[](size_t index) const { return tensors_.at(index); }
  // Outputs, by their index in this array.
  template <class T>
  T* AllocateOutput(size_t index, const std::vector<int64_t>& shape) {
    return New<T>(index, false).Allocate(shape);
  }
  Tensor<std::string>& AllocateStringTensor(size_t index) { return New<std::string>(index, false); }

 private:
  template <class T>
  Tensor<T>& New(size_t index, bool is_input) {
    auto tensor =
        std::make_unique<Tensor<T>>(ctx_.GetOrtKernelContext(), indice_ + index, is_input);
    Tensor<T>& made = *tensor;
    tensors_.push_back(std::move(tensor));
    return made;
  }
  template <class... Ts>
  void NewOf(ONNXTensorElementDataType type, size_t index) {
    const bool is_known =
        ((type == TypeToTensorType<Ts>::type && (New<Ts>(index, true), true)) || ...);
    if (!is_known) {
      ORT_CXX_API_THROW("there is no Ort::Custom::Tensor of element type " + std::to_string(type),
                        ORT_NOT_IMPLEMENTED);
    }
  }

  TensorPtrs tensors_;
};
using Variadic = TensorArray;

namespace detail {

enum class Role { kContext, kInput, kOutput };

// The arguments of one call, in the order of the parameters.
class Arguments {
 public:
  // `counts`: of the node's inputs and outputs.
  Arguments(OrtKernelContext* context, const std::pair<size_t, size_t>& counts)
      : context_(context), counts_(counts) {}

  OrtKernelContext* context() const { return context_; }
  // Whether the node has the next input or output.
  template <Role kRole>
  bool HasNext() const {
    if (kRole == Role::kOutput) return next_output_ < counts_.second;
    return next_input_ < counts_.first && KernelContext(context_).GetInput(next_input_);
  }
  template <Role kRole>
  void Skip() {
    ++(kRole == Role::kInput ? next_input_ : next_output_);
  }
  template <Role kRole, class Argument>
  Argument& Next() {
    size_t& next = kRole == Role::kInput ? next_input_ : next_output_;
    auto argument = std::make_unique<Argument>(context_, next++, kRole == Role::kInput);
    Argument& made = *argument;
    arguments_.push_back(std::move(argument));
    return made;
  }

 private:
  OrtKernelContext* const context_;
  const std::pair<size_t, size_t> counts_;
  size_t next_input_ = 0, next_output_ = 0;
  ArgPtrs arguments_;
};

template <class T>
constexpr ONNXTensorElementDataType kElementType = TypeToTensorType<T>::type;
template <>
inline constexpr ONNXTensorElementDataType kElementType<std::string_view> =
    ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;

// What an operator has for a parameter of type P: role, element type (undefined: variadic), and the
// value of the next argument.
template <Role kItsRole, ONNXTensorElementDataType kItsType>
struct ParameterOf {
  static constexpr Role kRole = kItsRole;
  static constexpr ONNXTensorElementDataType kType = kItsType;
};
constexpr auto kAnyType = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

template <class P>
struct Parameter : ParameterOf<Role::kInput, kElementType<P>> {
  static P Take(Arguments& call) { return call.Next<Role::kInput, Tensor<P>>().AsScalar(); }
};
template <>
struct Parameter<const std::string&> : ParameterOf<Role::kInput, kElementType<std::string>> {
  static const std::string& Take(Arguments& call) {
    return call.Next<Role::kInput, Tensor<std::string>>().AsScalar();
  }
};
template <>
struct Parameter<OrtKernelContext*> : ParameterOf<Role::kContext, kAnyType> {
  static OrtKernelContext* Take(Arguments& call) { return call.context(); }
};
template <class E>
struct Parameter<const Tensor<E>*> : ParameterOf<Role::kInput, kElementType<E>> {
  static const Tensor<E>* Take(Arguments& call) { return &call.Next<Role::kInput, Tensor<E>>(); }
};
template <class E>
struct Parameter<Tensor<E>*> : ParameterOf<Role::kOutput, kElementType<E>> {
  static Tensor<E>* Take(Arguments& call) { return &call.Next<Role::kOutput, Tensor<E>>(); }
};
template <class E>
struct Parameter<const Span<E>*> : ParameterOf<Role::kInput, kElementType<E>> {
  static const Span<E>* Take(Arguments& call) {
    return &call.Next<Role::kInput, Tensor<E>>().AsSpan();
  }
};
template <>
struct Parameter<const TensorArray*> : ParameterOf<Role::kInput, kAnyType> {
  static const TensorArray* Take(Arguments& call) {
    return &call.Next<Role::kInput, TensorArray>();
  }
};
template <>
struct Parameter<TensorArray*> : ParameterOf<Role::kOutput, kAnyType> {
  static TensorArray* Take(Arguments& call) { return &call.Next<Role::kOutput, TensorArray>(); }
};
// A reference is what the pointer points to.
template <class P>
struct Parameter<P&> : Parameter<P*> {
  static P& Take(Arguments& call) { return *Parameter<P*>::Take(call); }
};
template <class P>
struct Parameter<std::optional<P>> : Parameter<P> {
  static std::optional<P> Take(Arguments& call) {
    constexpr Role kRole = Parameter<P>::kRole;
    if (call.HasNext<kRole>()) return Parameter<P>::Take(call);
    call.Skip<kRole>();
    return std::nullopt;
  }
};

// The outcome of `body`, which returns nothing or a Status.
template <class Body>
OrtStatusPtr StatusOf(Body body) noexcept {
#ifndef ORT_NO_EXCEPTIONS
  try {
#endif
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return nullptr;
    } else {
      return Status(body()).release();
    }
#ifndef ORT_NO_EXCEPTIONS
  } catch (const Exception& exception) {
    return Status(exception).release();
  } catch (const std::exception& exception) {
    return Status(exception).release();
  }
#endif
}

}  // namespace detail

// An operator that CreateLiteCustomOp makes. It must outlive the sessions that use it. All that it
// owns is in this class, which therefore needs no virtual destructor.
struct OrtLiteCustomOp : OrtCustomOp {
  using ShapeInferFn = Status (*)(ShapeInferContext&);

  OrtLiteCustomOp(const char* name, const char* provider, ShapeInferFn shape_function,
                  int start_version, int end_version);

  const std::string op_name_;
  const std::string execution_provider_;
  std::vector<ONNXTensorElementDataType> input_types_;
  std::vector<ONNXTensorElementDataType> output_types_;
  ShapeInferFn shape_infer_fn_ = nullptr;
  int start_ver_ = 1;
  int end_ver_ = INT_MAX;

 protected:
  template <class... Parameters>
  void DeclareParameters() {
    (Declare<Parameters>(), ...);
  }
  // Kernel: has members `counts`, and Invoke that calls the client with these parameters.
  template <class Kernel, class... Parameters>
  void SetCompute() {
    DeclareParameters<Parameters...>();
    OrtCustomOp::KernelComputeV2 = [](void* kernel, OrtKernelContext* context) -> OrtStatusPtr {
      return detail::StatusOf([&] {
        auto& self = *static_cast<Kernel*>(kernel);
        detail::Arguments call(context, self.counts);
        // Braces evaluate from left to right.
        std::tuple<Parameters...> arguments{detail::Parameter<Parameters>::Take(call)...};
        return std::apply([&](auto&&... each) { return self.Invoke(each...); },
                          std::move(arguments));
      });
    };
    OrtCustomOp::KernelDestroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
  }
  static std::pair<size_t, size_t> CountsOf(const OrtKernelInfo* info) {
    const ConstKernelInfo node(info);
    return {node.GetInputCount(), node.GetOutputCount()};
  }

 private:
  static const OrtLiteCustomOp& Self(const OrtCustomOp* op) {
    return *static_cast<const OrtLiteCustomOp*>(op);
  }
  template <class P>
  void Declare() {
    using Its = detail::Parameter<P>;
    if (Its::kRole == detail::Role::kInput) input_types_.push_back(Its::kType);
    if (Its::kRole == detail::Role::kOutput) output_types_.push_back(Its::kType);
  }
  static OrtCustomOpInputOutputCharacteristic CharacteristicOf(ONNXTensorElementDataType type) {
    return type == detail::kAnyType ? INPUT_OUTPUT_VARIADIC : INPUT_OUTPUT_OPTIONAL;
  }
};

// The operator of a function. R: void or Status.
template <class R, class... Parameters>
struct LiteCustomFunction : OrtLiteCustomOp {
  using Function = R (*)(Parameters...);
  struct Kernel {
    Function function;
    std::pair<size_t, size_t> counts;
    R Invoke(Parameters... arguments) { return function(std::forward<Parameters>(arguments)...); }
  };

  LiteCustomFunction(const char* name, const char* provider, Function function,
                     ShapeInferFn shape_function, int start_version, int end_version)
      : OrtLiteCustomOp(name, provider, shape_function, start_version, end_version),
        function_(function) {
    SetCompute<Kernel, Parameters...>();
    OrtCustomOp::CreateKernelV2 = [](const OrtCustomOp* op, const OrtApi*,
                                     const OrtKernelInfo* info, void** kernel) -> OrtStatusPtr {
      return detail::StatusOf([&] {
        *kernel = new Kernel{static_cast<const LiteCustomFunction*>(op)->function_, CountsOf(info)};
      });
    };
  }

  const Function function_;
};

// The operator of a struct; each kernel has an object of it.
template <class Struct>
struct OrtLiteCustomStruct : OrtLiteCustomOp {
  struct Kernel {
    Kernel(const OrtApi* api, const OrtKernelInfo* info)
        : counts(CountsOf(info)), object(api, info) {}
    std::pair<size_t, size_t> counts;
    Struct object;
    template <class... Arguments>
    auto Invoke(Arguments&... arguments) {
      return object.Compute(arguments...);
    }
  };

  OrtLiteCustomStruct(const char* name, const char* provider, int start_version = 1,
                      int end_version = INT_MAX)
      : OrtLiteCustomOp(name, provider, nullptr, start_version, end_version) {
    SetMethod(&Struct::Compute);
    SetShapeFunction<Struct>(0);
    OrtCustomOp::CreateKernelV2 = [](const OrtCustomOp*, const OrtApi* api,
                                     const OrtKernelInfo* info, void** kernel) -> OrtStatusPtr {
      return detail::StatusOf([&] { *kernel = new Kernel(api, info); });
    };
  }

 private:
  template <class R, class... Parameters>
  void SetMethod(R (Struct::*)(Parameters...)) {
    SetCompute<Kernel, Parameters...>();
  }
  template <class R, class... Parameters>
  void SetMethod(R (Struct::*)(Parameters...) const) {
    SetCompute<Kernel, Parameters...>();
  }
  template <class S>
  void SetShapeFunction(decltype(&S::InferOutputShape)) {
    OrtCustomOp::InferOutputShapeFn = [](const OrtCustomOp*,
                                         OrtShapeInferContext* context) -> OrtStatusPtr {
      return detail::StatusOf([&] {
        ShapeInferContext shapes(&GetApi(), context);
        return Status(S::InferOutputShape(shapes));
      });
    };
  }
  template <class S>
  void SetShapeFunction(...) {}
};

// The caller owns the result. Versions are those of the operator's domain that the model imports.
template <class R, class... Parameters>
OrtLiteCustomOp* CreateLiteCustomOp(const char* name, const char* provider,
                                    R (*function)(Parameters...),
                                    OrtLiteCustomOp::ShapeInferFn shape_function = nullptr,
                                    int start_version = 1, int end_version = INT_MAX) {
  static_assert(std::is_void_v<R> || std::is_same_v<R, Status>);
  return new LiteCustomFunction<R, Parameters...>(name, provider, function, shape_function,
                                                  start_version, end_version);
}
template <class Struct>
OrtLiteCustomOp* CreateLiteCustomOp(const char* name, const char* provider, int start_version = 1,
                                    int end_version = INT_MAX) {
  return new OrtLiteCustomStruct<Struct>(name, provider, start_version, end_version);
}

// Definitions

inline TensorBase::TensorBase(OrtKernelContext* context, size_t index, bool is_input)
    : ArgBase(context, index, is_input) {
  if (!is_input) return;
  if (index >= ctx_.GetInputCount()) {
    ORT_CXX_API_THROW("the node has no input " + std::to_string(index), ORT_INVALID_ARGUMENT);
  }
  input_ = ctx_.GetInput(index);
  if (!input_) return;
  shape_ = input_.GetTensorTypeAndShapeInfo().GetShape();
  is_in_cpu_memory_ = input_.GetTensorMemoryInfo().GetAllocatorName() == "Cpu";
}
inline int64_t TensorBase::NumberOfElement() const {
  if (!shape_) return 0;
  int64_t count = 1;
  for (const int64_t size : *shape_) count *= size;
  return count;
}
inline std::string TensorBase::Shape2Str() const {
  if (!shape_) return "empty";
  std::string text;
  for (const int64_t size : *shape_) text += std::to_string(size) + ", ";
  return text;
}

inline TensorArray::TensorArray(OrtKernelContext* context, size_t start, bool is_input)
    : ArgBase(context, start, is_input) {
  if (!is_input) return;
  for (size_t i = start; i < ctx_.GetInputCount(); ++i) {
    const ConstValue input = ctx_.GetInput(i);
    if (!input) ORT_CXX_API_THROW("a variadic input is left out", ORT_INVALID_ARGUMENT);
    NewOf<bool, float, double, Float16_t, BFloat16_t, int8_t, int16_t, int32_t, int64_t, uint8_t,
          uint16_t, uint32_t, uint64_t, std::string, Float8E4M3FN_t, Float8E4M3FNUZ_t, Float8E5M2_t,
          Float8E5M2FNUZ_t>(input.GetTensorTypeAndShapeInfo().GetElementType(), i - start);
  }
}

inline OrtLiteCustomOp::OrtLiteCustomOp(const char* name, const char* provider,
                                        ShapeInferFn shape_function, int start_version,
                                        int end_version)
    : OrtCustomOp{},
      op_name_(name),
      execution_provider_(provider),
      shape_infer_fn_(shape_function),
      start_ver_(start_version),
      end_ver_(end_version) {
  version = ORT_API_VERSION;
  GetName = [](const OrtCustomOp* op) { return Self(op).op_name_.c_str(); };
  GetExecutionProviderType = [](const OrtCustomOp* op) {
    return Self(op).execution_provider_.c_str();
  };
  GetInputTypeCount = [](const OrtCustomOp* op) { return Self(op).input_types_.size(); };
  GetInputType = [](const OrtCustomOp* op, size_t index) { return Self(op).input_types_[index]; };
  GetOutputTypeCount = [](const OrtCustomOp* op) { return Self(op).output_types_.size(); };
  GetOutputType = [](const OrtCustomOp* op, size_t index) { return Self(op).output_types_[index]; };
  GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  GetInputCharacteristic = [](const OrtCustomOp* op, size_t index) {
    return CharacteristicOf(Self(op).input_types_[index]);
  };
  GetOutputCharacteristic = [](const OrtCustomOp* op, size_t index) {
    return CharacteristicOf(Self(op).output_types_[index]);
  };
  GetVariadicInputMinArity = [](const OrtCustomOp*) { return 0; };
  GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 0; };
  GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 0; };
  GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 0; };
  GetStartVersion = [](const OrtCustomOp* op) { return Self(op).start_ver_; };
  GetEndVersion = [](const OrtCustomOp* op) { return Self(op).end_ver_; };
  if (shape_infer_fn_ == nullptr) return;
  InferOutputShapeFn = [](const OrtCustomOp* op, OrtShapeInferContext* context) -> OrtStatusPtr {
    return detail::StatusOf([&] {
      ShapeInferContext shapes(&GetApi(), context);
      return Self(op).shape_infer_fn_(shapes);
    });
  };
}

}  // namespace Custom
}  // namespace Ort
