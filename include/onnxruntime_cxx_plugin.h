// What plugin libraries use in C++: kernels and their registry, schemas, events of traces, packed
// weights, and what providers run of a session. Part of onnxruntime_cxx_api.h.
#pragma once

namespace Ort {

namespace detail {
template <class T>
struct ConstKernelDefImpl : Base<T> {
  using Base<T>::Base;
  const char* GetOperatorType() const { return GetEpApi().KernelDef_GetOperatorType(this->p_); }
  const char* GetDomain() const { return GetEpApi().KernelDef_GetDomain(this->p_); }
  // First and last opset version of the operator.
  std::pair<int, int> GetSinceVersion() const {
    int first = 0, last = 0;
    ThrowOnError(GetEpApi().KernelDef_GetSinceVersion(this->p_, &first, &last));
    return {first, last};
  }
  const char* GetExecutionProvider() const {
    return GetEpApi().KernelDef_GetExecutionProvider(this->p_);
  }
  OrtMemType GetInputMemType(size_t index) const {
    return Query<OrtMemType>(GetEpApi().KernelDef_GetInputMemType, this->p_, index);
  }
  OrtMemType GetOutputMemType(size_t index) const {
    return Query<OrtMemType>(GetEpApi().KernelDef_GetOutputMemType, this->p_, index);
  }
};
}  // namespace detail
using ConstKernelDef = detail::ConstKernelDefImpl<detail::Unowned<const OrtKernelDef>>;

// What a kernel runs, and where its inputs and outputs lie.
struct KernelDef : detail::ConstKernelDefImpl<OrtKernelDef> {
  using ConstKernelDefImpl::ConstKernelDefImpl;
  explicit KernelDef(std::nullptr_t) {}
  ConstKernelDef GetConst() const { return ConstKernelDef(p_); }
};

// Makes a KernelDef. Pairs of lists give the input and the output of each alias.
struct KernelDefBuilder : detail::Base<OrtKernelDefBuilder> {
  using Base::Base;
  KernelDefBuilder() { ThrowOnError(GetEpApi().CreateKernelDefBuilder(&p_)); }
  explicit KernelDefBuilder(std::nullptr_t) {}
  KernelDefBuilder& SetOperatorType(const char* op_type) {
    return Do(GetEpApi().KernelDefBuilder_SetOperatorType, op_type);
  }
  KernelDefBuilder& SetDomain(const char* domain) {
    return Do(GetEpApi().KernelDefBuilder_SetDomain, domain);
  }
  KernelDefBuilder& SetSinceVersion(int first, int last) {
    return Do(GetEpApi().KernelDefBuilder_SetSinceVersion, first, last);
  }
  KernelDefBuilder& SetExecutionProvider(const char* ep_name) {
    return Do(GetEpApi().KernelDefBuilder_SetExecutionProvider, ep_name);
  }
  KernelDefBuilder& SetInputMemType(size_t index, OrtMemType type) {
    return Do(GetEpApi().KernelDefBuilder_SetInputMemType, index, type);
  }
  KernelDefBuilder& SetOutputMemType(size_t index, OrtMemType type) {
    return Do(GetEpApi().KernelDefBuilder_SetOutputMemType, index, type);
  }
  KernelDefBuilder& AddTypeConstraint(const char* name, const OrtDataType* type) {
    return Do(GetEpApi().KernelDefBuilder_AddTypeConstraint, name, &type, size_t{1});
  }
  KernelDefBuilder& AddTypeConstraint(const char* name,
                                      const std::vector<const OrtDataType*>& types) {
    return Do(GetEpApi().KernelDefBuilder_AddTypeConstraint, name, types.data(), types.size());
  }
  KernelDefBuilder& AddInputOutputAlias(int input, int output) {
    return Do(GetEpApi().KernelDefBuilder_AddInputOutputAliases, &input, &output, size_t{1});
  }
  KernelDefBuilder& AddInputOutputAliases(const std::vector<int>& inputs,
                                          const std::vector<int>& outputs) {
    return Pairs(GetEpApi().KernelDefBuilder_AddInputOutputAliases, inputs, outputs);
  }
  KernelDefBuilder& AddInputOutputMutableAlias(int input, int output) {
    return Do(GetEpApi().KernelDefBuilder_AddInputOutputMutableAliases, &input, &output, size_t{1});
  }
  KernelDefBuilder& AddInputOutputMutableAliases(const std::vector<int>& inputs,
                                                 const std::vector<int>& outputs) {
    return Pairs(GetEpApi().KernelDefBuilder_AddInputOutputMutableAliases, inputs, outputs);
  }
  KernelDef Build() {
    return KernelDef(detail::Query<OrtKernelDef*>(GetEpApi().KernelDefBuilder_Build, p_));
  }

 private:
  template <class Slot, class... Args>
  KernelDefBuilder& Do(Slot slot, Args... args) {
    ThrowOnError(slot(p_, args...));
    return *this;
  }
  template <class Slot>
  KernelDefBuilder& Pairs(Slot slot, const std::vector<int>& inputs,
                          const std::vector<int>& outputs) {
    if (inputs.size() != outputs.size()) {
      ThrowOnError(Status("inputs and outputs of aliases differ in number", ORT_INVALID_ARGUMENT));
    }
    return Do(slot, inputs.data(), outputs.data(), inputs.size());
  }
};

// The kernels of a provider.
struct KernelRegistry : detail::Base<OrtKernelRegistry> {
  using Base::Base;
  KernelRegistry() { ThrowOnError(GetEpApi().CreateKernelRegistry(&p_)); }
  explicit KernelRegistry(std::nullptr_t) {}
  Status AddKernel(const OrtKernelDef* kernel_def, OrtKernelCreateFunc create, void* state) {
    return Status(GetEpApi().KernelRegistry_AddKernel(p_, kernel_def, create, state));
  }
};

namespace detail {
template <class T>
struct OpSchemaTypeConstraintImpl : Base<T> {
  using Base<T>::Base;
  std::string GetTypeParamName() const {
    return Query<const char*>(GetEpApi().OpSchemaTypeConstraint_GetTypeParamName, this->p_);
  }
  // As in "tensor(float)".
  std::vector<std::string> GetAllowedTypes() const {
    const char* const* types = nullptr;
    size_t count = 0;
    ThrowOnError(GetEpApi().OpSchemaTypeConstraint_GetAllowedTypes(this->p_, &types, &count));
    return std::vector<std::string>(types, types + count);
  }
  std::vector<size_t> GetInputIndices() const {
    return Indices(GetEpApi().OpSchemaTypeConstraint_GetInputIndices);
  }
  std::vector<size_t> GetOutputIndices() const {
    return Indices(GetEpApi().OpSchemaTypeConstraint_GetOutputIndices);
  }

 private:
  template <class Slot>
  std::vector<size_t> Indices(Slot slot) const {
    const size_t* indices = nullptr;
    size_t count = 0;
    ThrowOnError(slot(this->p_, &indices, &count));
    return std::vector<size_t>(indices, indices + count);
  }
};
}  // namespace detail
// A type parameter of an operator; empty where an input or output has a fixed type.
using ConstOpSchemaTypeConstraint =
    detail::OpSchemaTypeConstraintImpl<detail::Unowned<const OrtOpSchemaTypeConstraint>>;

namespace detail {
template <class T>
struct OpSchemaImpl : Base<T> {
  using Base<T>::Base;
  int GetSinceVersion() const { return Query<int>(GetEpApi().OpSchema_GetSinceVersion, this->p_); }
  size_t GetNumInputs() const { return Query<size_t>(GetEpApi().OpSchema_GetNumInputs, this->p_); }
  std::string GetInputName(size_t index) const {
    return Query<const char*>(GetEpApi().OpSchema_GetInputName, this->p_, index);
  }
  ConstOpSchemaTypeConstraint GetInputTypeConstraint(size_t index) const {
    return Constraint(GetEpApi().OpSchema_GetInputTypeConstraint, index);
  }
  size_t GetNumOutputs() const {
    return Query<size_t>(GetEpApi().OpSchema_GetNumOutputs, this->p_);
  }
  std::string GetOutputName(size_t index) const {
    return Query<const char*>(GetEpApi().OpSchema_GetOutputName, this->p_, index);
  }
  ConstOpSchemaTypeConstraint GetOutputTypeConstraint(size_t index) const {
    return Constraint(GetEpApi().OpSchema_GetOutputTypeConstraint, index);
  }
  size_t GetTypeConstraintCount() const {
    return Query<size_t>(GetEpApi().OpSchema_GetTypeConstraintCount, this->p_);
  }
  ConstOpSchemaTypeConstraint GetTypeConstraint(size_t index) const {
    return Constraint(GetEpApi().OpSchema_GetTypeConstraint, index);
  }

 private:
  template <class Slot>
  ConstOpSchemaTypeConstraint Constraint(Slot slot, size_t index) const {
    return ConstOpSchemaTypeConstraint(
        Query<const OrtOpSchemaTypeConstraint*>(slot, this->p_, index));
  }
};
}  // namespace detail
using OpSchema = detail::OpSchemaImpl<OrtOpSchema>;

// The newest schema of an operator up to a version; empty if there is none.
inline OpSchema GetOpSchema(const char* name, int max_inclusive_version, const char* domain) {
  return OpSchema(
      detail::Query<OrtOpSchema*>(GetEpApi().GetOpSchema, name, max_inclusive_version, domain));
}

namespace detail {
template <class T>
struct SharedPrePackedWeightCacheImpl : Base<T> {
  using Base<T>::Base;
  // Passes on a packed weight, to be shared with other sessions.
  Status StoreWeightData(void** buffers, size_t* sizes, size_t count) {
    return Status(
        GetEpApi().SharedPrePackedWeightCache_StoreWeightData(this->p_, buffers, sizes, count));
  }
};

template <class T>
struct ConstProfilingEventImpl : Base<T> {
  using Base<T>::Base;
  OrtProfilingEventCategory GetCategory() const {
    return Query<OrtProfilingEventCategory>(GetEpApi().ProfilingEvent_GetCategory, this->p_);
  }
  const char* GetName() const {
    return Query<const char*>(GetEpApi().ProfilingEvent_GetName, this->p_);
  }
  int64_t GetTimestampUs() const {
    return Query<int64_t>(GetEpApi().ProfilingEvent_GetTimestampUs, this->p_);
  }
  int64_t GetDurationUs() const {
    return Query<int64_t>(GetEpApi().ProfilingEvent_GetDurationUs, this->p_);
  }
  // Null if the event has no argument of this name.
  const char* GetArgValue(const char* key) const {
    return Query<const char*>(GetEpApi().ProfilingEvent_GetArgValue, this->p_, key);
  }
};
}  // namespace detail
using UnownedSharedPrePackedWeightCache =
    detail::SharedPrePackedWeightCacheImpl<detail::Unowned<OrtSharedPrePackedWeightCache>>;
using ConstProfilingEvent =
    detail::ConstProfilingEventImpl<detail::Unowned<const OrtProfilingEvent>>;

// An event of a trace; times in microseconds.
struct ProfilingEvent : detail::ConstProfilingEventImpl<OrtProfilingEvent> {
  using ConstProfilingEventImpl::ConstProfilingEventImpl;
  explicit ProfilingEvent(std::nullptr_t) {}
  ProfilingEvent(OrtProfilingEventCategory category, int32_t process, int32_t thread,
                 const char* name, int64_t timestamp, int64_t duration,
                 const std::unordered_map<std::string, std::string>& args = {}) {
    const detail::NamesAndValues list(args);
    ThrowOnError(GetEpApi().CreateProfilingEvent(category, process, thread, name, timestamp,
                                                 duration, list.names.data(), list.values.data(),
                                                 list.size(), &p_));
  }
  ProfilingEvent(OrtProfilingEventCategory category, int32_t process, int32_t thread,
                 const char* name, int64_t timestamp, int64_t duration, const char* const* keys,
                 const char* const* values, size_t count) {
    ThrowOnError(GetEpApi().CreateProfilingEvent(category, process, thread, name, timestamp,
                                                 duration, keys, values, count, &p_));
  }
  ConstProfilingEvent GetConst() const { return ConstProfilingEvent(p_); }
};

namespace detail {
template <class T>
struct ProfilingEventsContainerImpl : Base<T> {
  using Base<T>::Base;
  Status AddEvents(const OrtProfilingEvent* const* events, size_t count) {
    return Status(GetEpApi().ProfilingEventsContainer_AddEvents(this->p_, events, count));
  }
  Status AddEvents(const std::vector<ProfilingEvent>& events) {
    const std::vector<const OrtProfilingEvent*> handles(events.begin(), events.end());
    return AddEvents(handles.data(), handles.size());
  }
};

template <class T>
struct DeviceEpIncompatibilityDetailsImpl : Base<T> {
  using Base<T>::Base;
  // OrtDeviceEpIncompatibilityReason bits.
  uint32_t GetReasonsBitmask() const {
    return Query<uint32_t>(GetApi().DeviceEpIncompatibilityDetails_GetReasonsBitmask, this->p_);
  }
  const char* GetNotes() const {
    return Query<const char*>(GetApi().DeviceEpIncompatibilityDetails_GetNotes, this->p_);
  }
  int32_t GetErrorCode() const {
    return Query<int32_t>(GetApi().DeviceEpIncompatibilityDetails_GetErrorCode, this->p_);
  }
};
}  // namespace detail
using UnownedProfilingEventsContainer =
    detail::ProfilingEventsContainerImpl<detail::Unowned<OrtProfilingEventsContainer>>;

// Why a provider cannot use a device.
struct DeviceEpIncompatibilityDetails
    : detail::DeviceEpIncompatibilityDetailsImpl<OrtDeviceEpIncompatibilityDetails> {
  using DeviceEpIncompatibilityDetailsImpl::DeviceEpIncompatibilityDetailsImpl;
  explicit DeviceEpIncompatibilityDetails(std::nullptr_t) {}
};

inline size_t Env::GetNumHardwareDevices() const {
  return detail::Query<size_t>(GetApi().GetNumHardwareDevices, p_);
}
inline std::vector<ConstHardwareDevice> Env::GetHardwareDevices() const {
  std::vector<const OrtHardwareDevice*> devices(GetNumHardwareDevices());
  if (!devices.empty()) {
    ThrowOnError(GetApi().GetHardwareDevices(p_, devices.data(), devices.size()));
  }
  return std::vector<ConstHardwareDevice>(devices.begin(), devices.end());
}
inline DeviceEpIncompatibilityDetails Env::GetHardwareDeviceEpIncompatibilityDetails(
    const char* ep_name, ConstHardwareDevice device) const {
  return DeviceEpIncompatibilityDetails(detail::Query<OrtDeviceEpIncompatibilityDetails*>(
      GetApi().GetHardwareDeviceEpIncompatibilityDetails, p_, ep_name, device));
}

namespace detail {
template <class T>
std::vector<ConstEpAssignedSubgraph> ConstSessionImpl<T>::GetEpGraphAssignmentInfo() const {
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  ThrowOnError(GetApi().Session_GetEpGraphAssignmentInfo(this->p_, &subgraphs, &count));
  return std::vector<ConstEpAssignedSubgraph>(subgraphs, subgraphs + count);
}
}  // namespace detail

}  // namespace Ort
