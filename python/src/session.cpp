#include "session.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <onnxruntime_session_options_config_keys.h>

#include <cstring>

#include "devices.h"
#include "dlpack.h"
#include "gil.h"

namespace tenon::python {
namespace {

using CountSlot = decltype(OrtApi::SessionGetInputCount);
using NameSlot = decltype(OrtApi::SessionGetInputName);
using TypeSlot = decltype(OrtApi::SessionGetInputTypeInfo);

std::vector<NodeArg> ReadArgs(const OrtSession* session, CountSlot count_slot, NameSlot name_slot,
                              TypeSlot type_slot) {
  const auto count = Get<size_t>(count_slot, session);
  std::vector<NodeArg> args(count);
  for (size_t i = 0; i < count; ++i) {
    args[i].name = TakeString(Get<char*>(name_slot, session, i, DefaultAllocator()));
    args[i].type = Describe(*Make<TypeInfoHandle>(type_slot, session, i));
  }
  return args;
}

SessionHandle OpenFile(const OrtEnv* env, const std::string& path,
                       const OrtSessionOptions* options) {
  OrtSession* session = nullptr;
  OrtStatus* status = nullptr;
  {
    const WithoutGil other_threads_run;
    status = Api().CreateSession(env, path.c_str(), options, &session);
  }
  Check(status);
  return SessionHandle(session);
}

SessionHandle OpenBytes(const OrtEnv* env, nb::handle model, const OrtSessionOptions* options) {
  Buffer buffer;
  if (!buffer.Borrow(model)) throw nb::type_error("expected a path or the bytes of a model");
  const Py_buffer& view = buffer.view();
  OrtSession* session = nullptr;
  OrtStatus* status = nullptr;
  {
    const WithoutGil other_threads_run;
    status = Api().CreateSessionFromArray(env, view.buf, static_cast<size_t>(view.len), options,
                                          &session);
  }
  Check(status);
  return SessionHandle(session);
}

// Bytes of a path as the file system has them.
std::string PathBytes(nb::handle path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &bytes)) throw nb::python_error();
  const nb::bytes kept = nb::steal<nb::bytes>(bytes);
  return std::string(kept.c_str(), kept.size());
}

bool IsPath(nb::handle model) {
  return PyUnicode_Check(model.ptr()) || nb::hasattr(model, "__fspath__");
}

std::string ClassOf(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

nb::dict CopyMapping(nb::handle mapping) {
  if (!nb::hasattr(mapping, "keys")) {
    throw nb::type_error(
        ("expected the inputs as a dict, by name; got " + ClassOf(mapping)).c_str());
  }
  const nb::handle dict_class(reinterpret_cast<PyObject*>(&PyDict_Type));
  return nb::cast<nb::dict>(dict_class(mapping));
}

// The text of a str. It lives as long as the str.
const char* NameOf(nb::handle name) {
  if (!PyUnicode_Check(name.ptr())) {
    throw nb::type_error(("expected the name of a value as a str, got " + ClassOf(name)).c_str());
  }
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  if (std::strlen(text) != static_cast<size_t>(size)) {
    throw nb::value_error("the name of a value holds a NUL");
  }
  return text;
}

// As ToValue. Errors, all of them RuntimeErrors, name the input.
Value ToFeed(const char* name, nb::handle object, const TypeDescription& type) {
  std::string cause;
  try {
    return ToValue(object, type);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    if (error.matches(PyExc_UnicodeError)) throw;
    cause = nb::cast<std::string>(nb::str(error.value()));
  } catch (const nb::builtin_exception& error) {
    cause = error.what();
  } catch (const std::bad_cast&) {
    cause = "expected a value of the type " + type.ToString() + ", got " + ClassOf(object);
  }
  Raise(PyExc_RuntimeError, std::string("input '") + name + "': " + cause);
}

// Values that a run has made. They are released unless they are taken.
class Results {
 public:
  explicit Results(size_t count) : values_(count) {}
  ~Results() {
    for (OrtValue* value : values_) {
      if (value != nullptr) Api().ReleaseValue(value);
    }
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  std::vector<OrtValue*>& values() { return values_; }
  Value Take(size_t index) { return Value(ValueHandle(std::exchange(values_[index], nullptr))); }

 private:
  std::vector<OrtValue*> values_;
};

}  // namespace

// The feeds of a run. `kept` owns names and objects, `made` the values that were made from them.
struct Session::Feeds {
  std::vector<nb::object> kept;
  std::vector<Value> made;
  std::vector<const char*> names;
  std::vector<size_t> places;  // of the names, as FindInput returns them
  std::vector<const OrtValue*> values;
};

Session::Session(nb::handle model, const SessionOptions& options,
                 const std::vector<ProviderChoice>* providers,
                 const std::string& disabled_optimizers)
    : environment_(Environment()), kept_values_(options.kept_values) {
  const SessionOptionsHandle clone = options.CloneWith(providers);
  if (!disabled_optimizers.empty()) {
    const char* const key = kOrtSessionOptionsDisableSpecifiedOptimizers;
    const std::string names = options.ConfigEntry(key).value_or("") + ";" + disabled_optimizers;
    Check(Api().AddSessionConfigEntry(clone.get(), key, names.c_str()));
  }
  handle_ = IsPath(model) ? OpenFile(environment_.get(), PathBytes(model), clone.get())
                          : OpenBytes(environment_.get(), model, clone.get());
  inputs_ = ReadArgs(get(), Api().SessionGetInputCount, Api().SessionGetInputName,
                     Api().SessionGetInputTypeInfo);
  outputs_ = ReadArgs(get(), Api().SessionGetOutputCount, Api().SessionGetOutputName,
                      Api().SessionGetOutputTypeInfo);
  overridable_ = ReadArgs(get(), Api().SessionGetOverridableInitializerCount,
                          Api().SessionGetOverridableInitializerName,
                          Api().SessionGetOverridableInitializerTypeInfo);
  for (const std::vector<NodeArg>* args : {&inputs_, &overridable_}) {
    for (const NodeArg& arg : *args) places_.emplace(arg.name, places_.size());
  }
}

size_t Session::FindInput(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? places_.size() : found->second;
}

const TypeDescription& Session::TypeOf(size_t place) const {
  static const TypeDescription any_tensor{.kind = ONNX_TYPE_TENSOR};
  if (place < inputs_.size()) return inputs_[place].type;
  return place < places_.size() ? overridable_[place - inputs_.size()].type : any_tensor;
}

Session::Feeds Session::ReadFeeds(nb::handle feed) const {
  // The items are held: converting one of them may run Python code that changes the dictionary.
  const nb::dict map = PyDict_Check(feed.ptr()) ? nb::borrow<nb::dict>(feed) : CopyMapping(feed);
  Feeds feeds;
  feeds.kept.reserve(2 * map.size());
  for (const auto [name, object] : map) {
    feeds.kept.push_back(nb::borrow(name));
    feeds.kept.push_back(nb::borrow(object));
  }
  feeds.made.reserve(map.size());
  for (size_t i = 0; i < feeds.kept.size(); i += 2) {
    feeds.names.push_back(NameOf(feeds.kept[i]));
    feeds.places.push_back(FindInput(feeds.names.back()));
  }
  RequireInputs(feeds);
  DropNone(feeds);
  for (size_t i = 0; i < feeds.names.size(); ++i) {
    const nb::object& object = feeds.kept[2 * i + 1];
    const Value* value = nullptr;
    if (!nb::try_cast(object, value) || value == nullptr) {
      feeds.made.push_back(ToFeed(feeds.names[i], object, TypeOf(feeds.places[i])));
      value = &feeds.made.back();
    }
    feeds.values.push_back(value->get());
  }
  return feeds;
}

// What is None is left out, for the model to say whether it needs it. Only an optional is a value.
void Session::DropNone(Feeds& feeds) const {
  for (size_t i = feeds.names.size(); i-- > 0;) {
    const bool is_value = TypeOf(feeds.places[i]).kind == ONNX_TYPE_OPTIONAL;
    if (is_value || !feeds.kept[2 * i + 1].is_none()) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    feeds.kept.erase(feeds.kept.begin() + 2 * at, feeds.kept.begin() + 2 * at + 2);
    feeds.names.erase(feeds.names.begin() + at);
    feeds.places.erase(feeds.places.begin() + at);
  }
}

// The text is that of the C interface. It is a ValueError, as every error is in onnxruntime while
// inputs are missing.
void Session::ThrowUnknownInput(const char* name) const {
  const auto value = Make<ValueHandle>(Api().CreateTensorAsOrtValue, DefaultAllocator(), nullptr,
                                       size_t{0}, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  const OrtValue* const values[] = {value.get()};
  const char* const no_outputs[] = {""};
  OrtValue* nothing[] = {nullptr};
  OrtStatus* const status = Api().Run(get(), nullptr, &name, values, 1, no_outputs, 0, nothing);
  const std::string text = Api().GetErrorMessage(status);
  Api().ReleaseStatus(status);
  throw nb::value_error(text.c_str());
}

void Session::RequireInputs(const Feeds& feeds) const {
  std::vector<bool> is_given(inputs_.size());
  for (const size_t place : feeds.places) {
    if (place < is_given.size()) is_given[place] = true;
  }
  nb::list missing;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!is_given[i] && inputs_[i].type.kind != ONNX_TYPE_OPTIONAL) missing.append(inputs_[i].name);
  }
  if (missing.size() == 0) return;
  for (size_t i = 0; i < feeds.names.size(); ++i) {
    if (feeds.places[i] == places_.size()) ThrowUnknownInput(feeds.names[i]);
  }
  nb::list given;
  for (const char* name : feeds.names) given.append(name);
  const nb::object text =
      nb::str("Required inputs ({}) are missing from input feed ({}).").format(missing, given);
  PyErr_SetObject(PyExc_ValueError, text.ptr());
  throw nb::python_error();
}

std::vector<const char*> Session::ReadOutputNames(nb::handle names) const {
  std::vector<const char*> result;
  if (!names.is_none()) {
    for (const nb::handle name : names) result.push_back(NameOf(name));
  }
  if (result.empty()) {
    for (const NodeArg& output : outputs_) result.push_back(output.name.c_str());
  }
  return result;
}

void Session::RunNames(const Feeds& feeds, const std::vector<const char*>& output_names,
                       const RunOptions* options, std::vector<OrtValue*>& outputs) const {
  const OrtRunOptions* const run_options = options != nullptr ? options->handle.get() : nullptr;
  OrtStatus* status = nullptr;
  {
    const WithoutGil other_threads_run;
    status =
        Api().Run(get(), run_options, feeds.names.data(), feeds.values.data(), feeds.names.size(),
                  output_names.data(), output_names.size(), outputs.data());
  }
  Check(status);
}

nb::list Session::Run(nb::handle output_names, nb::handle feed, const RunOptions* options) const {
  const nb::object kept_names =
      output_names.is_none() ? nb::object(nb::none()) : nb::tuple(output_names);
  const std::vector<const char*> names = ReadOutputNames(kept_names);
  const Feeds feeds = ReadFeeds(feed);
  Results results(names.size());
  RunNames(feeds, names, options, results.values());
  nb::list list;
  for (size_t i = 0; i < names.size(); ++i) list.append(ToPython(results.Take(i)));
  return list;
}

nb::list Session::RunWithValues(const std::vector<std::string>& output_names, nb::handle feed,
                                const RunOptions* options, nb::handle outputs) const {
  std::vector<const char*> names;
  for (const std::string& name : output_names) names.push_back(name.c_str());
  const Feeds feeds = ReadFeeds(feed);
  const nb::list given = nb::cast<nb::list>(outputs);
  nb::list list;
  for (size_t i = 0; i < names.size(); ++i) {
    list.append(i < given.size() ? nb::object(given[i]) : nb::none());
  }
  std::vector<OrtValue*> written(names.size());
  std::vector<bool> is_given(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    is_given[i] = !list[i].is_none();
    if (is_given[i]) written[i] = nb::cast<Value&>(list[i]).get();
  }
  RunNames(feeds, names, options, written);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_given[i]) list[i] = nb::cast(Value(ValueHandle(written[i])));
  }
  return list;
}

nb::list Session::RunTaking(const std::vector<std::string>& input_names, nb::list capsules,
                            const std::vector<std::string>& output_names,
                            const RunOptions& options) const {
  const auto binding = Make<BindingHandle>(Api().CreateIoBinding, get());
  for (size_t i = 0; i < input_names.size(); ++i) {
    const ValueHandle value = TakeDlpack(capsules[i]);
    Check(Api().BindInput(binding.get(), input_names[i].c_str(), value.get()));
  }
  capsules.clear();
  for (const std::string& name : output_names) {
    Check(Api().BindOutputToDevice(binding.get(), name.c_str(), CpuMemory()));
  }
  OrtStatus* status = nullptr;
  {
    const WithoutGil other_threads_run;
    status = Api().RunWithBinding(get(), options.handle.get(), binding.get());
  }
  Check(status);
  OrtValue** values = nullptr;
  size_t count = 0;
  Check(Api().GetBoundOutputValues(binding.get(), DefaultAllocator(), &values, &count));
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(nb::cast(Value(ValueHandle(values[i]))));
  if (values != nullptr) Check(Api().AllocatorFree(DefaultAllocator(), values));
  return list;
}

namespace {

// The metadata as a tuple of producer, graph name, domain, description, graph description, version
// and the model's own entries.
nb::tuple ReadMetadata(const Session& session) {
  const auto metadata = Make<ModelMetadataHandle>(Api().SessionGetModelMetadata, session.get());
  const auto text = [&](auto slot) {
    return TakeString(Get<char*>(slot, metadata.get(), DefaultAllocator()));
  };
  char** keys = nullptr;
  int64_t count = 0;
  Check(Api().ModelMetadataGetCustomMetadataMapKeys(metadata.get(), DefaultAllocator(), &keys,
                                                    &count));
  nb::dict entries;
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = TakeString(keys[i]);
    entries[key.c_str()] = TakeString(Get<char*>(Api().ModelMetadataLookupCustomMetadataMap,
                                                 metadata.get(), DefaultAllocator(), key.c_str()));
  }
  Check(Api().AllocatorFree(DefaultAllocator(), keys));
  return nb::make_tuple(text(Api().ModelMetadataGetProducerName),
                        text(Api().ModelMetadataGetGraphName), text(Api().ModelMetadataGetDomain),
                        text(Api().ModelMetadataGetDescription),
                        text(Api().ModelMetadataGetGraphDescription),
                        Get<int64_t>(Api().ModelMetadataGetVersion, metadata.get()), entries);
}

// Of the inputs, or of the outputs.
nb::list MemoryInfos(const Session& session, bool is_input) {
  const auto slot =
      is_input ? Api().SessionGetMemoryInfoForInputs : Api().SessionGetMemoryInfoForOutputs;
  std::vector<const OrtMemoryInfo*> infos((is_input ? session.inputs() : session.outputs()).size());
  Check(slot(session.get(), infos.data(), infos.size()));
  nb::list list;
  for (const OrtMemoryInfo* info : infos) list.append(nb::cast(MemoryPlace{nullptr, info}));
  return list;
}

nb::list EpDevices(const Session& session) {
  std::vector<const OrtEpDevice*> devices(session.inputs().size());
  Check(Api().SessionGetEpDeviceForInputs(session.get(), devices.data(), devices.size()));
  nb::list list;
  for (const OrtEpDevice* device : devices) {
    list.append(device == nullptr ? nb::none() : nb::cast(EpDevice{device}));
  }
  return list;
}

// For each provider, its name and its nodes. Each node has name, domain and operator.
nb::list Assignment(const Session& session) {
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  Check(Api().Session_GetEpGraphAssignmentInfo(session.get(), &subgraphs, &count));
  nb::list list;
  for (size_t i = 0; i < count; ++i) {
    const OrtEpAssignedNode* const* nodes = nullptr;
    size_t node_count = 0;
    Check(Api().EpAssignedSubgraph_GetNodes(subgraphs[i], &nodes, &node_count));
    nb::list described;
    for (size_t j = 0; j < node_count; ++j) {
      described.append(
          nb::make_tuple(Get<const char*>(Api().EpAssignedNode_GetName, nodes[j]),
                         Get<const char*>(Api().EpAssignedNode_GetDomain, nodes[j]),
                         Get<const char*>(Api().EpAssignedNode_GetOperatorType, nodes[j])));
    }
    list.append(nb::make_tuple(Get<const char*>(Api().EpAssignedSubgraph_GetEpName, subgraphs[i]),
                               described));
  }
  return list;
}

void SetDynamicOptions(const Session& session, const std::map<std::string, std::string>& options) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  Check(Api().SetEpDynamicOptions(session.get(), keys.data(), values.data(), keys.size()));
}

std::vector<ProviderChoice> ReadProviders(
    const std::vector<std::pair<std::string, std::map<std::string, std::string>>>& pairs) {
  std::vector<ProviderChoice> providers;
  for (const auto& [name, options] : pairs) providers.push_back({name, options});
  return providers;
}

}  // namespace

void BindSession(nb::module_& module) {
  using Pairs = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  nb::class_<Session>(module, "Session")
      .def(
          "__init__",
          [](Session* self, nb::handle model, const SessionOptions& options,
             const std::optional<Pairs>& pairs, const std::string& disabled_optimizers) {
            std::vector<ProviderChoice> providers;
            if (pairs) providers = ReadProviders(*pairs);
            new (self) Session(model, options, pairs ? &providers : nullptr, disabled_optimizers);
          },
          nb::arg("model"), nb::arg("options"), nb::arg("providers").none(),
          nb::arg("disabled_optimizers") = "")
      .def("run", &Session::Run, nb::arg("output_names").none(), nb::arg("input_feed"),
           nb::arg("run_options").none() = nb::none())
      .def("_run_with_values", &Session::RunWithValues, nb::arg("output_names"),
           nb::arg("input_feed"), nb::arg("run_options").none(), nb::arg("outputs"))
      .def("_run_taking", &Session::RunTaking)
      .def(
          "run_with_ort_values",
          [](const Session& self, nb::handle feed, const std::vector<std::string>& names,
             const RunOptions* options) {
            return nb::module_::import_("tenon._vector")
                .attr("OrtValueVector")(self.RunWithValues(names, feed, options, nb::list()));
          },
          nb::arg("input_feed"), nb::arg("output_names"),
          nb::arg("run_options").none() = nb::none())
      .def(
          "run_with_iobinding",
          [](const Session&, nb::handle binding, nb::handle options) {
            binding.attr("run")(options);
          },
          nb::arg("io_binding"), nb::arg("run_options").none() = nb::none())
      .def("get_inputs", &Session::inputs)
      .def("get_outputs", &Session::outputs)
      .def("get_overridable_initializers", &Session::overridable)
      .def("_metadata", &ReadMetadata)
      .def("_memory_infos", &MemoryInfos)
      .def("_ep_devices", &EpDevices)
      .def("_assignment", &Assignment)
      .def("set_ep_dynamic_options", &SetDynamicOptions)
      .def("release_captured_graph",
           [](const Session& self, int id) {
             Check(Api().SessionReleaseCapturedGraph(self.get(), id));
           })
      .def("_fallback_report",
           [](const Session& self) {
             static const auto get =
                 Experimental<TenonSessionGetFallbackReport>(TENON_SESSION_GET_FALLBACK_REPORT);
             return TakeString(Get<char*>(get, self.get(), DefaultAllocator()));
           })
      .def("_set_replaced",
           [](const Session& self) {
             static const auto set =
                 Experimental<TenonSessionSetReplaced>(TENON_SESSION_SET_REPLACED);
             Check(set(self.get()));
           })
      .def("end_profiling",
           [](const Session& self) {
             return TakeString(
                 Get<char*>(Api().SessionEndProfiling, self.get(), DefaultAllocator()));
           })
      .def("get_profiling_start_time_ns", [](const Session& self) {
        return Get<uint64_t>(Api().SessionGetProfilingStartTimeNs, self.get());
      });
}

}  // namespace tenon::python
