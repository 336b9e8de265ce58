// Definitions of onnxruntime_cxx_api.h, which includes this file.
#pragma once

namespace Ort {

inline void ThrowOnError(OrtStatus* status) {
  if (status != nullptr) ThrowOnError(Status(status));
}

inline void ThrowOnError(const Status& status) {
  if (!status.IsOK()) ORT_CXX_API_THROW(status.GetErrorMessage(), status.GetErrorCode());
}

namespace detail {

// A table that OrtApi returns; a library without it is an error.
template <class Table>
const Table& SubTable(const Table* table, const char* name) {
  if (table == nullptr) {
    ORT_CXX_API_THROW(std::string(name) + " is not part of this build", ORT_NOT_IMPLEMENTED);
  }
  return *table;
}

// A string that `slot` allocates with `allocator`.
template <class Slot, class... Args>
AllocatedStringPtr QueryString(Slot slot, OrtAllocator* allocator, Args... args) {
  return AllocatedStringPtr(Query<char*>(slot, args..., allocator), AllocatedFree(allocator));
}

// All names of a session's inputs, outputs or initializers.
template <class Slot>
std::vector<std::string> QueryNames(Slot slot, const OrtSession* session, size_t count) {
  OrtAllocator* const allocator = AllocatorWithDefaultOptions();
  std::vector<std::string> names;
  names.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const AllocatedStringPtr name(Query<char*>(slot, session, i, allocator),
                                  AllocatedFree(allocator));
    names.emplace_back(name.get());
  }
  return names;
}

// One object for each input or output of a session. Object: a class that refers to a T.
template <class Object, class T, class Slot>
std::vector<Object> QueryObjects(Slot slot, const OrtSession* session, size_t count) {
  std::vector<const T*> found(count);
  if (count != 0) ThrowOnError(slot(session, found.data(), count));
  std::vector<Object> objects;
  objects.reserve(count);
  for (const T* object : found) objects.emplace_back(object);
  return objects;
}

// A text that `slot` copies into a buffer; its size counts the terminator.
template <class Slot, class... Args>
std::string QueryText(Slot slot, Args... args) {
  size_t size = 0;
  ThrowOnError(slot(args..., nullptr, &size));
  if (size == 0) return {};
  std::string text(size, '\0');
  ThrowOnError(slot(args..., text.data(), &size));
  text.resize(size - 1);
  return text;
}

// Values as the C functions take them: a Value is nothing but its pointer.
static_assert(sizeof(Value) == sizeof(OrtValue*) && std::is_standard_layout_v<Value>);
inline const OrtValue* const* Pointers(const Value* values) {
  return reinterpret_cast<const OrtValue* const*>(values);
}
inline OrtValue** Pointers(Value* values) { return reinterpret_cast<OrtValue**>(values); }

inline NamesAndValues::NamesAndValues(const std::unordered_map<std::string, std::string>& options) {
  names.reserve(options.size());
  values.reserve(options.size());
  for (const auto& [name, value] : options) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
}

}  // namespace detail

inline const OrtModelEditorApi& GetModelEditorApi() {
  return detail::SubTable(GetApi().GetModelEditorApi(), "OrtModelEditorApi");
}
inline const OrtCompileApi& GetCompileApi() {
  return detail::SubTable(GetApi().GetCompileApi(), "OrtCompileApi");
}
inline const OrtInteropApi& GetInteropApi() {
  return detail::SubTable(GetApi().GetInteropApi(), "OrtInteropApi");
}
inline const OrtEpApi& GetEpApi() { return detail::SubTable(GetApi().GetEpApi(), "OrtEpApi"); }

inline std::vector<std::string> GetAvailableProviders() {
  char** names = nullptr;
  int count = 0;
  ThrowOnError(GetApi().GetAvailableProviders(&names, &count));
  const auto release = [count](char** list) {
    Status ignored(GetApi().ReleaseAvailableProviders(list, count));
  };
  const std::unique_ptr<char*, decltype(release)> owner(names, release);
  return std::vector<std::string>(names, names + count);
}

// Status

inline Status::Status(const Exception& exception)
    : Status(exception.what(), exception.GetOrtErrorCode()) {}
inline Status::Status(const std::exception& exception) : Status(exception.what(), ORT_FAIL) {}
inline Status::Status(const char* message, OrtErrorCode code)
    : Base(GetApi().CreateStatus(code, message)) {}
inline std::string Status::GetErrorMessage() const {
  return IsOK() ? std::string() : std::string(GetApi().GetErrorMessage(p_));
}
inline OrtErrorCode Status::GetErrorCode() const {
  return IsOK() ? ORT_OK : GetApi().GetErrorCode(p_);
}

// ThreadingOptions

inline ThreadingOptions::ThreadingOptions() { ThrowOnError(GetApi().CreateThreadingOptions(&p_)); }
inline ThreadingOptions& ThreadingOptions::SetGlobalIntraOpNumThreads(int count) {
  ThrowOnError(GetApi().SetGlobalIntraOpNumThreads(p_, count));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalInterOpNumThreads(int count) {
  ThrowOnError(GetApi().SetGlobalInterOpNumThreads(p_, count));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalSpinControl(int allow_spinning) {
  ThrowOnError(GetApi().SetGlobalSpinControl(p_, allow_spinning));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalDenormalAsZero() {
  ThrowOnError(GetApi().SetGlobalDenormalAsZero(p_));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalIntraOpThreadAffinity(const char* affinity) {
  ThrowOnError(GetApi().SetGlobalIntraOpThreadAffinity(p_, affinity));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalCustomCreateThreadFn(
    OrtCustomCreateThreadFn function) {
  ThrowOnError(GetApi().SetGlobalCustomCreateThreadFn(p_, function));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalCustomThreadCreationOptions(void* options) {
  ThrowOnError(GetApi().SetGlobalCustomThreadCreationOptions(p_, options));
  return *this;
}
inline ThreadingOptions& ThreadingOptions::SetGlobalCustomJoinThreadFn(
    OrtCustomJoinThreadFn function) {
  ThrowOnError(GetApi().SetGlobalCustomJoinThreadFn(p_, function));
  return *this;
}

// KeyValuePairs

inline KeyValuePairs GetEnvConfigEntries() {
  OrtKeyValuePairs* entries = nullptr;
  ThrowOnError(GetEpApi().GetEnvConfigEntries(&entries));
  return KeyValuePairs(entries);
}
inline KeyValuePairs::KeyValuePairs(const std::unordered_map<std::string, std::string>& pairs)
    : KeyValuePairs() {
  for (const auto& [key, value] : pairs) Add(key.c_str(), value.c_str());
}

namespace detail {
template <class T>
void KeyValuePairsImpl<T>::GetKeyValuePairs(std::vector<const char*>& keys,
                                            std::vector<const char*>& values) const {
  const char* const* all_keys = nullptr;
  const char* const* all_values = nullptr;
  size_t count = 0;
  GetApi().GetKeyValuePairs(this->p_, &all_keys, &all_values, &count);
  keys.assign(all_keys, all_keys + count);
  values.assign(all_values, all_values + count);
}
template <class T>
std::unordered_map<std::string, std::string> KeyValuePairsImpl<T>::GetKeyValuePairs() const {
  std::vector<const char*> keys, values;
  GetKeyValuePairs(keys, values);
  std::unordered_map<std::string, std::string> pairs;
  for (size_t i = 0; i < keys.size(); ++i) pairs.emplace(keys[i], values[i]);
  return pairs;
}
}  // namespace detail

// MemoryInfo

inline MemoryInfo::MemoryInfo(const char* name, OrtAllocatorType type, int id,
                              OrtMemType mem_type) {
  ThrowOnError(GetApi().CreateMemoryInfo(name, type, id, mem_type, &p_));
}
inline MemoryInfo::MemoryInfo(const char* name, OrtMemoryInfoDeviceType device_type,
                              uint32_t vendor_id, uint32_t device_id, OrtDeviceMemoryType mem_type,
                              size_t alignment, OrtAllocatorType allocator_type) {
  ThrowOnError(GetApi().CreateMemoryInfo_V2(name, device_type, vendor_id,
                                            static_cast<int32_t>(device_id), mem_type, alignment,
                                            allocator_type, &p_));
}
inline MemoryInfo MemoryInfo::CreateCpu(OrtAllocatorType type, OrtMemType mem_type) {
  return MemoryInfo(detail::Query<OrtMemoryInfo*>(GetApi().CreateCpuMemoryInfo, type, mem_type));
}

namespace detail {
template <class T>
std::string MemoryInfoImpl<T>::GetAllocatorName() const {
  return Query<const char*>(GetApi().MemoryInfoGetName, this->p_);
}
template <class T>
OrtAllocatorType MemoryInfoImpl<T>::GetAllocatorType() const {
  return Query<OrtAllocatorType>(GetApi().MemoryInfoGetType, this->p_);
}
template <class T>
int MemoryInfoImpl<T>::GetDeviceId() const {
  return Query<int>(GetApi().MemoryInfoGetId, this->p_);
}
template <class T>
OrtMemoryInfoDeviceType MemoryInfoImpl<T>::GetDeviceType() const {
  OrtMemoryInfoDeviceType type;
  GetApi().MemoryInfoGetDeviceType(this->p_, &type);
  return type;
}
template <class T>
OrtMemType MemoryInfoImpl<T>::GetMemoryType() const {
  return Query<OrtMemType>(GetApi().MemoryInfoGetMemType, this->p_);
}
template <class T>
OrtDeviceMemoryType MemoryInfoImpl<T>::GetDeviceMemoryType() const {
  return GetApi().MemoryInfoGetDeviceMemType(this->p_);
}
template <class T>
uint32_t MemoryInfoImpl<T>::GetVendorId() const {
  return GetApi().MemoryInfoGetVendorId(this->p_);
}
template <class T>
template <class U>
bool MemoryInfoImpl<T>::operator==(const MemoryInfoImpl<U>& other) const {
  return Query<int>(GetApi().CompareMemoryInfo, static_cast<const OrtMemoryInfo*>(this->p_),
                    static_cast<const OrtMemoryInfo*>(other)) == 0;
}
}  // namespace detail

// Allocators

inline MemoryAllocation::~MemoryAllocation() {
  if (block_ != nullptr) Status ignored(GetApi().AllocatorFree(allocator_, block_));
}
inline MemoryAllocation::MemoryAllocation(MemoryAllocation&& other) noexcept
    : allocator_(other.allocator_),
      block_(std::exchange(other.block_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}
inline MemoryAllocation& MemoryAllocation::operator=(MemoryAllocation&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(block_, other.block_);
  std::swap(size_, other.size_);
  return *this;
}

inline AllocatorWithDefaultOptions::AllocatorWithDefaultOptions() {
  ThrowOnError(GetApi().GetAllocatorWithDefaultOptions(&p_));
}
inline Allocator::Allocator(const Session& session, const OrtMemoryInfo* info) {
  ThrowOnError(GetApi().CreateAllocator(session, info, &p_));
}

namespace detail {
template <class T>
void* AllocatorImpl<T>::Alloc(size_t size) {
  return Query<void*>(GetApi().AllocatorAlloc, this->p_, size);
}
template <class T>
void* AllocatorImpl<T>::Reserve(size_t size) {
  OrtAllocator* const allocator = this->p_;
  const bool has_slot = allocator->version >= 18 && allocator->Reserve != nullptr;
  return has_slot ? allocator->Reserve(allocator, size) : Alloc(size);
}
template <class T>
void AllocatorImpl<T>::Shrink() {
  OrtAllocator* const allocator = this->p_;
  const bool has_slot = allocator->version >= 25 && allocator->Shrink != nullptr;
  if (has_slot) ThrowOnError(allocator->Shrink(allocator));
}
template <class T>
MemoryAllocation AllocatorImpl<T>::GetAllocation(size_t size) {
  return MemoryAllocation(this->p_, Alloc(size), size);
}
template <class T>
void AllocatorImpl<T>::Free(void* block) {
  ThrowOnError(GetApi().AllocatorFree(this->p_, block));
}
template <class T>
ConstMemoryInfo AllocatorImpl<T>::GetInfo() const {
  return ConstMemoryInfo(Query<const OrtMemoryInfo*>(GetApi().AllocatorGetInfo, this->p_));
}
template <class T>
KeyValuePairs AllocatorImpl<T>::GetStats() const {
  return KeyValuePairs(Query<OrtKeyValuePairs*>(GetApi().AllocatorGetStats, this->p_));
}

template <class T>
SyncStream EpDeviceImpl<T>::CreateSyncStream(ConstKeyValuePairs options) const {
  return SyncStream(Query<OrtSyncStream*>(GetApi().CreateSyncStreamForEpDevice, this->p_,
                                          static_cast<const OrtKeyValuePairs*>(options)));
}
}  // namespace detail

// Env

inline Env::Env(OrtLoggingLevel level, const char* logid) {
  ThrowOnError(GetApi().CreateEnv(level, logid, &p_));
}
inline Env::Env(OrtLoggingLevel level, const char* logid, OrtLoggingFunction function,
                void* param) {
  ThrowOnError(GetApi().CreateEnvWithCustomLogger(function, param, level, logid, &p_));
}
inline Env::Env(const OrtThreadingOptions* threading, OrtLoggingLevel level, const char* logid) {
  ThrowOnError(GetApi().CreateEnvWithGlobalThreadPools(level, logid, threading, &p_));
}
inline Env::Env(const OrtThreadingOptions* threading, OrtLoggingFunction function, void* param,
                OrtLoggingLevel level, const char* logid) {
  ThrowOnError(GetApi().CreateEnvWithCustomLoggerAndGlobalThreadPools(function, param, level, logid,
                                                                      threading, &p_));
}
inline Env::Env(const OrtEnvCreationOptions* options) {
  ThrowOnError(GetApi().CreateEnvWithOptions(options, &p_));
}
inline Env& Env::EnableTelemetryEvents() {
  ThrowOnError(GetApi().EnableTelemetryEvents(p_));
  return *this;
}
inline Env& Env::DisableTelemetryEvents() {
  ThrowOnError(GetApi().DisableTelemetryEvents(p_));
  return *this;
}
inline Env& Env::UpdateEnvWithCustomLogLevel(OrtLoggingLevel level) {
  ThrowOnError(GetApi().UpdateEnvWithCustomLogLevel(p_, level));
  return *this;
}
inline Env& Env::SetPerSessionThreadPoolCallbacks(const OrtThreadPoolCallbacksConfig& config) {
  ThrowOnError(GetApi().SetPerSessionThreadPoolCallbacks(p_, &config));
  return *this;
}
inline Env& Env::CreateAndRegisterAllocator(const OrtMemoryInfo* info, const OrtArenaCfg* arena) {
  ThrowOnError(GetApi().CreateAndRegisterAllocator(p_, info, arena));
  return *this;
}
inline Env& Env::CreateAndRegisterAllocatorV2(
    const std::string& provider, const OrtMemoryInfo* info,
    const std::unordered_map<std::string, std::string>& options, const OrtArenaCfg* arena) {
  const detail::NamesAndValues list(options);
  ThrowOnError(GetApi().CreateAndRegisterAllocatorV2(
      p_, provider.c_str(), info, arena, list.names.data(), list.values.data(), list.size()));
  return *this;
}
inline Env& Env::RegisterAllocator(OrtAllocator* allocator) {
  ThrowOnError(GetApi().RegisterAllocator(p_, allocator));
  return *this;
}
inline Env& Env::UnregisterAllocator(const OrtMemoryInfo* info) {
  ThrowOnError(GetApi().UnregisterAllocator(p_, info));
  return *this;
}
inline Env& Env::RegisterExecutionProviderLibrary(const char* name,
                                                  const std::basic_string<ORTCHAR_T>& path) {
  ThrowOnError(GetApi().RegisterExecutionProviderLibrary(p_, name, path.c_str()));
  return *this;
}
inline Env& Env::UnregisterExecutionProviderLibrary(const char* name) {
  ThrowOnError(GetApi().UnregisterExecutionProviderLibrary(p_, name));
  return *this;
}
inline std::vector<ConstEpDevice> Env::GetEpDevices() const {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ThrowOnError(GetApi().GetEpDevices(p_, &devices, &count));
  std::vector<ConstEpDevice> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) result.emplace_back(devices[i]);
  return result;
}
inline UnownedAllocator Env::GetSharedAllocator(const OrtMemoryInfo* info) {
  return UnownedAllocator(detail::Query<OrtAllocator*>(GetApi().GetSharedAllocator, p_, info));
}
inline UnownedAllocator Env::CreateSharedAllocator(const OrtEpDevice* device,
                                                   OrtDeviceMemoryType mem_type,
                                                   OrtAllocatorType allocator_type,
                                                   const OrtKeyValuePairs* options) {
  return UnownedAllocator(detail::Query<OrtAllocator*>(GetApi().CreateSharedAllocator, p_, device,
                                                       mem_type, allocator_type, options));
}
inline void Env::ReleaseSharedAllocator(const OrtEpDevice* device, OrtDeviceMemoryType mem_type) {
  ThrowOnError(GetApi().ReleaseSharedAllocator(p_, device, mem_type));
}
inline Status Env::CopyTensors(const std::vector<Value>& from, const std::vector<Value>& to,
                               OrtSyncStream* stream) const {
  if (from.size() != to.size()) {
    return Status("as many tensors to copy to as from are needed", ORT_INVALID_ARGUMENT);
  }
  std::vector<OrtValue*> targets(to.begin(), to.end());
  return Status(
      GetApi().CopyTensors(p_, detail::Pointers(from.data()), targets.data(), stream, from.size()));
}

// CustomOpDomain, LoraAdapter, RunOptions

inline CustomOpDomain::CustomOpDomain(const char* domain) {
  ThrowOnError(GetApi().CreateCustomOpDomain(domain, &p_));
}

inline LoraAdapter LoraAdapter::CreateLoraAdapter(const std::basic_string<ORTCHAR_T>& path,
                                                  OrtAllocator* allocator) {
  return LoraAdapter(
      detail::Query<OrtLoraAdapter*>(GetApi().CreateLoraAdapter, path.c_str(), allocator));
}
inline LoraAdapter LoraAdapter::CreateLoraAdapterFromArray(const void* bytes, size_t size,
                                                           OrtAllocator* allocator) {
  return LoraAdapter(
      detail::Query<OrtLoraAdapter*>(GetApi().CreateLoraAdapterFromArray, bytes, size, allocator));
}

inline RunOptions::RunOptions() { ThrowOnError(GetApi().CreateRunOptions(&p_)); }
inline RunOptions& RunOptions::SetRunLogVerbosityLevel(int level) {
  ThrowOnError(GetApi().RunOptionsSetRunLogVerbosityLevel(p_, level));
  return *this;
}
inline int RunOptions::GetRunLogVerbosityLevel() const {
  return detail::Query<int>(GetApi().RunOptionsGetRunLogVerbosityLevel, p_);
}
inline RunOptions& RunOptions::SetRunLogSeverityLevel(int level) {
  ThrowOnError(GetApi().RunOptionsSetRunLogSeverityLevel(p_, level));
  return *this;
}
inline int RunOptions::GetRunLogSeverityLevel() const {
  return detail::Query<int>(GetApi().RunOptionsGetRunLogSeverityLevel, p_);
}
inline RunOptions& RunOptions::SetRunTag(const char* tag) {
  ThrowOnError(GetApi().RunOptionsSetRunTag(p_, tag));
  return *this;
}
inline const char* RunOptions::GetRunTag() const {
  return detail::Query<const char*>(GetApi().RunOptionsGetRunTag, p_);
}
inline RunOptions& RunOptions::AddConfigEntry(const char* key, const char* value) {
  ThrowOnError(GetApi().AddRunConfigEntry(p_, key, value));
  return *this;
}
inline const char* RunOptions::GetConfigEntry(const char* key) const {
  return GetApi().GetRunConfigEntry(p_, key);
}
inline RunOptions& RunOptions::SetTerminate() {
  ThrowOnError(GetApi().RunOptionsSetTerminate(p_));
  return *this;
}
inline RunOptions& RunOptions::UnsetTerminate() {
  ThrowOnError(GetApi().RunOptionsUnsetTerminate(p_));
  return *this;
}
inline RunOptions& RunOptions::AddActiveLoraAdapter(const LoraAdapter& adapter) {
  ThrowOnError(GetApi().RunOptionsAddActiveLoraAdapter(p_, adapter));
  return *this;
}
inline RunOptions& RunOptions::SetSyncStream(OrtSyncStream* stream) {
  GetApi().RunOptionsSetSyncStream(p_, stream);
  return *this;
}
inline RunOptions& RunOptions::EnableProfiling(const ORTCHAR_T* prefix) {
  ThrowOnError(GetApi().RunOptionsEnableProfiling(p_, prefix));
  return *this;
}
inline RunOptions& RunOptions::DisableProfiling() {
  ThrowOnError(GetApi().RunOptionsDisableProfiling(p_));
  return *this;
}

inline OrtCompiledModelCompatibility GetModelCompatibilityForEpDevices(
    const std::vector<ConstEpDevice>& devices, const char* compatibility_info) {
  const std::vector<const OrtEpDevice*> pointers(devices.begin(), devices.end());
  return detail::Query<OrtCompiledModelCompatibility>(GetApi().GetModelCompatibilityForEpDevices,
                                                      pointers.data(), pointers.size(),
                                                      compatibility_info);
}

// Provider options

inline CUDAProviderOptions::CUDAProviderOptions() {
  ThrowOnError(GetApi().CreateCUDAProviderOptions(&p_));
}
inline void CUDAProviderOptions::Update(
    const std::unordered_map<std::string, std::string>& options) {
  const detail::NamesAndValues given(options);
  ThrowOnError(GetApi().UpdateCUDAProviderOptions(p_, given.names.data(), given.values.data(),
                                                  given.size()));
}
inline void CUDAProviderOptions::UpdateWithValue(const char* key, void* value) {
  ThrowOnError(GetApi().UpdateCUDAProviderOptionsWithValue(p_, key, value));
}
inline void* CUDAProviderOptions::GetOptionByName(const char* name) const {
  return detail::Query<void*>(GetApi().GetCUDAProviderOptionsByName, p_, name);
}
inline std::string CUDAProviderOptions::GetCUDAProviderOptionsAsString() const {
  const AllocatorWithDefaultOptions allocator;
  return detail::QueryString(GetApi().GetCUDAProviderOptionsAsString, allocator, p_).get();
}

inline TensorRTProviderOptions::TensorRTProviderOptions() {
  ThrowOnError(GetApi().CreateTensorRTProviderOptions(&p_));
}
inline void TensorRTProviderOptions::Update(
    const std::unordered_map<std::string, std::string>& options) {
  const detail::NamesAndValues given(options);
  ThrowOnError(GetApi().UpdateTensorRTProviderOptions(p_, given.names.data(), given.values.data(),
                                                      given.size()));
}
inline void TensorRTProviderOptions::UpdateWithValue(const char* key, void* value) {
  ThrowOnError(GetApi().UpdateTensorRTProviderOptionsWithValue(p_, key, value));
}
inline void* TensorRTProviderOptions::GetOptionByName(const char* name) const {
  return detail::Query<void*>(GetApi().GetTensorRTProviderOptionsByName, p_, name);
}
inline std::string TensorRTProviderOptions::GetTensorRTProviderOptionsAsString() const {
  const AllocatorWithDefaultOptions allocator;
  return detail::QueryString(GetApi().GetTensorRTProviderOptionsAsString, allocator, p_).get();
}

// SessionOptions

inline std::string detail::MakeCustomOpConfigEntryKey(const char* op, const char* key) {
  return std::string("custom_op.") + op + "." + key;
}
inline std::string CustomOpConfigs::MakeSessionConfigEntryKey(const char* op, const char* key) {
  return detail::MakeCustomOpConfigEntryKey(op, key);
}
inline CustomOpConfigs& CustomOpConfigs::AddConfig(const char* op, const char* key,
                                                   const char* value) {
  entries_[MakeSessionConfigEntryKey(op, key)] = value;
  return *this;
}

inline SessionOptions::SessionOptions() { ThrowOnError(GetApi().CreateSessionOptions(&p_)); }

namespace detail {
template <class T>
SessionOptions ConstSessionOptionsImpl<T>::Clone() const {
  return SessionOptions(Query<OrtSessionOptions*>(GetApi().CloneSessionOptions, this->p_));
}
template <class T>
std::string ConstSessionOptionsImpl<T>::GetConfigEntry(const char* key) const {
  return QueryText(GetApi().GetSessionConfigEntry, this->p_, key);
}
template <class T>
bool ConstSessionOptionsImpl<T>::HasConfigEntry(const char* key) const {
  return Query<int>(GetApi().HasSessionConfigEntry, this->p_, key) != 0;
}
template <class T>
std::string ConstSessionOptionsImpl<T>::GetConfigEntryOrDefault(
    const char* key, const std::string& otherwise) const {
  return HasConfigEntry(key) ? GetConfigEntry(key) : otherwise;
}

template <class T>
bool ConstSessionOptionsImpl<T>::GetMemPatternEnabled() const {
  return Query<int>(GetApi().GetMemPatternEnabled, this->p_) != 0;
}
template <class T>
ExecutionMode ConstSessionOptionsImpl<T>::GetExecutionMode() const {
  return Query<ExecutionMode>(GetApi().GetSessionExecutionMode, this->p_);
}

// A setter that passes its arguments to the slot.
#define ORT_CXX_OPTION(METHOD, SLOT, PARAMETERS, ...)               \
  template <class T>                                                \
  SessionOptionsImpl<T>& SessionOptionsImpl<T>::METHOD PARAMETERS { \
    return Done(GetApi().SLOT(this->p_, ##__VA_ARGS__));            \
  }
ORT_CXX_OPTION(SetIntraOpNumThreads, SetIntraOpNumThreads, (int count), count)
ORT_CXX_OPTION(SetInterOpNumThreads, SetInterOpNumThreads, (int count), count)
ORT_CXX_OPTION(SetGraphOptimizationLevel, SetSessionGraphOptimizationLevel,
               (GraphOptimizationLevel level), level)
ORT_CXX_OPTION(SetDeterministicCompute, SetDeterministicCompute, (bool value), value)
ORT_CXX_OPTION(EnableCpuMemArena, EnableCpuMemArena, ())
ORT_CXX_OPTION(DisableCpuMemArena, DisableCpuMemArena, ())
ORT_CXX_OPTION(SetOptimizedModelFilePath, SetOptimizedModelFilePath, (const ORTCHAR_T* path), path)
ORT_CXX_OPTION(EnableProfiling, EnableProfiling, (const ORTCHAR_T* prefix), prefix)
ORT_CXX_OPTION(DisableProfiling, DisableProfiling, ())
ORT_CXX_OPTION(EnableOrtCustomOps, EnableOrtCustomOps, ())
ORT_CXX_OPTION(EnableMemPattern, EnableMemPattern, ())
ORT_CXX_OPTION(DisableMemPattern, DisableMemPattern, ())
ORT_CXX_OPTION(SetExecutionMode, SetSessionExecutionMode, (ExecutionMode mode), mode)
ORT_CXX_OPTION(SetLoadCancellationFlag, SessionOptionsSetLoadCancellationFlag, (bool value), value)
ORT_CXX_OPTION(SetLogId, SetSessionLogId, (const char* logid), logid)
ORT_CXX_OPTION(SetLogSeverityLevel, SetSessionLogSeverityLevel, (int level), level)
ORT_CXX_OPTION(SetLogVerbosityLevel, SetSessionLogVerbosityLevel, (int level), level)
ORT_CXX_OPTION(SetUserLoggingFunction, SetUserLoggingFunction,
               (OrtLoggingFunction function, void* param), function, param)
ORT_CXX_OPTION(Add, AddCustomOpDomain, (OrtCustomOpDomain * domain), domain)
ORT_CXX_OPTION(DisablePerSessionThreads, DisablePerSessionThreads, ())
ORT_CXX_OPTION(AddConfigEntry, AddSessionConfigEntry, (const char* key, const char* value), key,
               value)
ORT_CXX_OPTION(AddInitializer, AddInitializer, (const char* name, const OrtValue* value), name,
               value)
ORT_CXX_OPTION(AddFreeDimensionOverride, AddFreeDimensionOverride,
               (const char* denotation, int64_t size), denotation, size)
ORT_CXX_OPTION(AddFreeDimensionOverrideByName, AddFreeDimensionOverrideByName,
               (const char* name, int64_t size), name, size)
ORT_CXX_OPTION(SetCustomCreateThreadFn, SessionOptionsSetCustomCreateThreadFn,
               (OrtCustomCreateThreadFn function), function)
ORT_CXX_OPTION(SetCustomThreadCreationOptions, SessionOptionsSetCustomThreadCreationOptions,
               (void* options), options)
ORT_CXX_OPTION(SetCustomJoinThreadFn, SessionOptionsSetCustomJoinThreadFn,
               (OrtCustomJoinThreadFn function), function)
ORT_CXX_OPTION(RegisterCustomOpsUsingFunction, RegisterCustomOpsUsingFunction,
               (const char* function), function)
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AppendExecutionProvider_CPU(int use_arena) {
  return Done(OrtSessionOptionsAppendExecutionProvider_CPU(this->p_, use_arena));
}
ORT_CXX_OPTION(AppendExecutionProvider_CUDA, SessionOptionsAppendExecutionProvider_CUDA,
               (const OrtCUDAProviderOptions& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_CUDA_V2, SessionOptionsAppendExecutionProvider_CUDA_V2,
               (const OrtCUDAProviderOptionsV2& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_ROCM, SessionOptionsAppendExecutionProvider_ROCM,
               (const OrtROCMProviderOptions& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_OpenVINO, SessionOptionsAppendExecutionProvider_OpenVINO,
               (const OrtOpenVINOProviderOptions& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_TensorRT, SessionOptionsAppendExecutionProvider_TensorRT,
               (const OrtTensorRTProviderOptions& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_TensorRT_V2,
               SessionOptionsAppendExecutionProvider_TensorRT_V2,
               (const OrtTensorRTProviderOptionsV2& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_MIGraphX, SessionOptionsAppendExecutionProvider_MIGraphX,
               (const OrtMIGraphXProviderOptions& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_CANN, SessionOptionsAppendExecutionProvider_CANN,
               (const OrtCANNProviderOptions& options), &options)
ORT_CXX_OPTION(AppendExecutionProvider_Dnnl, SessionOptionsAppendExecutionProvider_Dnnl,
               (const OrtDnnlProviderOptions& options), &options)
#undef ORT_CXX_OPTION

template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::SetEpSelectionPolicy(
    OrtExecutionProviderDevicePolicy policy) {
  return Done(GetApi().SessionOptionsSetEpSelectionPolicy(this->p_, policy));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::SetEpSelectionPolicy(EpSelectionDelegate delegate,
                                                                   void* state) {
  return Done(GetApi().SessionOptionsSetEpSelectionPolicyDelegate(this->p_, delegate, state));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AddExternalInitializers(
    const std::vector<std::string>& names, const std::vector<Value>& values) {
  std::vector<const char*> texts;
  texts.reserve(names.size());
  for (const std::string& name : names) texts.push_back(name.c_str());
  return Done(GetApi().AddExternalInitializers(this->p_, texts.data(), Pointers(values.data()),
                                               texts.size()));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AddExternalInitializersFromFilesInMemory(
    const std::vector<std::basic_string<ORTCHAR_T>>& names, const std::vector<char*>& contents,
    const std::vector<size_t>& sizes) {
  std::vector<const ORTCHAR_T*> texts;
  texts.reserve(names.size());
  for (const auto& name : names) texts.push_back(name.c_str());
  return Done(GetApi().AddExternalInitializersFromFilesInMemory(
      this->p_, texts.data(), contents.data(), sizes.data(), texts.size()));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::RegisterCustomOpsLibrary(
    const ORTCHAR_T* path, const CustomOpConfigs& configs) {
  for (const auto& [key, value] : configs.GetFlattenedConfigs()) {
    AddConfigEntry(key.c_str(), value.c_str());
  }
  return Done(GetApi().RegisterCustomOpsLibrary_V2(this->p_, path));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AppendExecutionProvider(const std::string& name,
                                                                      const Options& options) {
  const NamesAndValues list(options);
  return Done(GetApi().SessionOptionsAppendExecutionProvider(
      this->p_, name.c_str(), list.names.data(), list.values.data(), list.size()));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AppendExecutionProvider_V2(
    Env& env, const std::vector<ConstEpDevice>& devices, const Options& options) {
  const std::vector<const OrtEpDevice*> pointers(devices.begin(), devices.end());
  const NamesAndValues list(options);
  return Done(GetApi().SessionOptionsAppendExecutionProvider_V2(this->p_, env, pointers.data(),
                                                                pointers.size(), list.names.data(),
                                                                list.values.data(), list.size()));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AppendExecutionProvider_V2(
    Env& env, const std::vector<ConstEpDevice>& devices, const KeyValuePairs& options) {
  return AppendExecutionProvider_V2(env, devices,
                                    static_cast<const OrtKeyValuePairs*>(options) == nullptr
                                        ? Options()
                                        : options.GetKeyValuePairs());
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AppendExecutionProvider_OpenVINO_V2(
    const Options& options) {
  const NamesAndValues list(options);
  return Done(GetApi().SessionOptionsAppendExecutionProvider_OpenVINO_V2(
      this->p_, list.names.data(), list.values.data(), list.size()));
}
template <class T>
SessionOptionsImpl<T>& SessionOptionsImpl<T>::AppendExecutionProvider_VitisAI(
    const Options& options) {
  const NamesAndValues list(options);
  return Done(GetApi().SessionOptionsAppendExecutionProvider_VitisAI(
      this->p_, list.names.data(), list.values.data(), list.size()));
}
}  // namespace detail

// ModelMetadata

inline AllocatedStringPtr ModelMetadata::GetProducerNameAllocated(OrtAllocator* allocator) const {
  return detail::QueryString(GetApi().ModelMetadataGetProducerName, allocator, p_);
}
inline AllocatedStringPtr ModelMetadata::GetGraphNameAllocated(OrtAllocator* allocator) const {
  return detail::QueryString(GetApi().ModelMetadataGetGraphName, allocator, p_);
}
inline AllocatedStringPtr ModelMetadata::GetDomainAllocated(OrtAllocator* allocator) const {
  return detail::QueryString(GetApi().ModelMetadataGetDomain, allocator, p_);
}
inline AllocatedStringPtr ModelMetadata::GetDescriptionAllocated(OrtAllocator* allocator) const {
  return detail::QueryString(GetApi().ModelMetadataGetDescription, allocator, p_);
}
inline AllocatedStringPtr ModelMetadata::GetGraphDescriptionAllocated(
    OrtAllocator* allocator) const {
  return detail::QueryString(GetApi().ModelMetadataGetGraphDescription, allocator, p_);
}
inline AllocatedStringPtr ModelMetadata::LookupCustomMetadataMapAllocated(
    const char* key, OrtAllocator* allocator) const {
  char* value = nullptr;
  ThrowOnError(GetApi().ModelMetadataLookupCustomMetadataMap(p_, allocator, key, &value));
  return AllocatedStringPtr(value, detail::AllocatedFree(allocator));
}
inline std::vector<AllocatedStringPtr> ModelMetadata::GetCustomMetadataMapKeysAllocated(
    OrtAllocator* allocator) const {
  char** keys = nullptr;
  int64_t count = 0;
  ThrowOnError(GetApi().ModelMetadataGetCustomMetadataMapKeys(p_, allocator, &keys, &count));
  const std::unique_ptr<void, detail::AllocatedFree> array(keys, detail::AllocatedFree(allocator));
  std::vector<AllocatedStringPtr> result;
  result.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    result.emplace_back(keys[i], detail::AllocatedFree(allocator));
  }
  return result;
}
inline int64_t ModelMetadata::GetVersion() const {
  return detail::Query<int64_t>(GetApi().ModelMetadataGetVersion, p_);
}

}  // namespace Ort
