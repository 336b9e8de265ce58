#include "training.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon_training_c_api.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "gil.h"
#include "session.h"
#include "value.h"

namespace tenon::python {
namespace {

// Owns an object that a function of tenon_training_c_api.h made. `release` names the function that
// releases it.
template <class Object, class ReleaseFunction>
class Owned {
 public:
  explicit Owned(const char* release) : release_(Experimental<ReleaseFunction>(release)) {}
  ~Owned() {
    const WithoutGil other_threads_run;
    release_(object);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  Object* object = nullptr;

 private:
  ReleaseFunction release_;
};

// The values in `kept` lend the memory of Python objects, which the native object goes on reading.
// They are released after it, because members end in reverse order.
struct State {
  State() : owned(TENON_RELEASE_PARTIAL_STATE) {
    Check(Experimental<TenonCreatePartialState>(TENON_CREATE_PARTIAL_STATE)(&owned.object));
  }

  nb::list kept;  // of earlier stages
  Owned<TenonPartialState, TenonReleasePartialState> owned;
};

struct Cache {
  Cache() : owned(TENON_RELEASE_VALUE_CACHE) {
    Check(Experimental<TenonCreateValueCache>(TENON_CREATE_VALUE_CACHE)(&owned.object));
  }

  void Insert(const std::string& name, nb::handle_t<Value> value) {
    Check(Experimental<TenonValueCacheInsert>(TENON_VALUE_CACHE_INSERT)(
        owned.object, name.c_str(), nb::cast<const Value&>(value).get()));
    kept[name.c_str()] = value;
  }
  void Remove(const std::string& name) {
    Check(
        Experimental<TenonValueCacheRemove>(TENON_VALUE_CACHE_REMOVE)(owned.object, name.c_str()));
    nb::del(kept[name.c_str()]);
  }
  size_t Count(const std::string& name) const {
    const auto count = Experimental<TenonValueCacheCount>(TENON_VALUE_CACHE_COUNT);
    return Get<size_t>(count, static_cast<const TenonValueCache*>(owned.object), name.c_str());
  }
  void Clear() {
    Check(Experimental<TenonValueCacheClear>(TENON_VALUE_CACHE_CLEAR)(owned.object));
    kept.clear();
  }
  std::vector<std::string> Keys() const {
    char** names = nullptr;
    size_t count = 0;
    OrtAllocator* const allocator = DefaultAllocator();
    Check(Experimental<TenonValueCacheKeys>(TENON_VALUE_CACHE_KEYS)(owned.object, allocator, &names,
                                                                    &count));
    std::vector<std::string> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(TakeString(names[i]));
    allocator->Free(allocator, names);
    return keys;
  }

  nb::dict kept;  // values by name
  Owned<TenonValueCache, TenonReleaseValueCache> owned;
};

std::vector<const char*> Texts(const std::vector<std::string>& names) {
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  return texts;
}

// The memory of an OrtDevice; null for the CPU's.
MemoryInfoHandle MemoryOf(nb::handle device) {
  const auto part = [&](const char* name) { return nb::cast<int>(device.attr(name)()); };
  const int kind = part("device_type");
  if (kind == OrtMemoryInfoDeviceType_CPU) return nullptr;
  return Make<MemoryInfoHandle>(
      Api().CreateMemoryInfo_V2, "OrtDevice", static_cast<OrtMemoryInfoDeviceType>(kind),
      static_cast<uint32_t>(part("device_vendor_id")), part("device_id"),
      static_cast<OrtDeviceMemoryType>(part("device_mem_type")), size_t{0}, OrtDeviceAllocator);
}

class Agent {
 public:
  Agent(nb::object session, const std::vector<std::string>& feed_names,
        const std::vector<nb::object>& forward_devices, const std::vector<std::string>& fetch_names,
        const std::vector<nb::object>& backward_devices)
      : owned_(TENON_RELEASE_TRAINING_AGENT), session_(std::move(session)) {
    std::vector<MemoryInfoHandle> made;
    std::vector<const OrtMemoryInfo*> memory;
    for (const std::vector<nb::object>* devices : {&forward_devices, &backward_devices}) {
      for (const nb::object& device : *devices) {
        memory.push_back(made.emplace_back(MemoryOf(device)).get());
      }
    }
    const std::vector<const char*> feeds = Texts(feed_names), fetches = Texts(fetch_names);
    const size_t counts[] = {forward_devices.size(), backward_devices.size()};
    const TenonTrainingAgentInfo info = {feeds.data(),     feeds.size(),  fetches.data(),
                                         fetches.size(),   memory.data(), counts,
                                         std::size(counts)};
    const auto create = Experimental<TenonCreateTrainingAgent>(TENON_CREATE_TRAINING_AGENT);
    Check(create(nb::cast<const Session&>(session_).get(), &info, &owned_.object));
  }

  void SetLocalRank(int32_t rank) const {
    Check(Experimental<TenonTrainingAgentSetLocalRank>(TENON_TRAINING_AGENT_SET_LOCAL_RANK)(
        owned_.object, rank));
  }

  void RunForward(nb::list feeds, nb::list fetches, State& state, Cache* cache) const {
    Values values = Read(0, feeds, fetches);
    if (cache != nullptr) {
      for (const nb::handle value : cache->kept.values()) values.kept.append(value);
    }
    Run("forward", values, state, [&] {
      return Experimental<TenonRunForward>(TENON_RUN_FORWARD)(
          owned_.object, nullptr, values.fed.data(), values.fed.size(), values.fetched.data(),
          values.fetched.size(), state.owned.object,
          cache == nullptr ? nullptr : cache->owned.object);
    });
    HandOver(values, fetches);
  }

  void RunBackward(nb::list feeds, nb::list fetches, State& state) const {
    Values values = Read(1, feeds, fetches);
    Run("backward", values, state, [&] {
      return Experimental<TenonRunBackward>(TENON_RUN_BACKWARD)(
          owned_.object, nullptr, values.fed.data(), values.fed.size(), values.fetched.data(),
          values.fetched.size(), state.owned.object);
    });
    state.kept.clear();  // there is no later stage
    HandOver(values, fetches);
  }

 private:
  // The arguments of a stage. `kept` holds those that are Python's.
  struct Values {
    nb::list kept;
    std::vector<const OrtValue*> fed;
    std::vector<OrtValue*> fetched;  // null where the run makes a value
    std::vector<bool> is_given;
  };

  Values Read(size_t stage, const nb::list& feeds, const nb::list& fetches) const {
    size_t feed_count = 0, fetch_count = 0;
    Check(Experimental<TenonTrainingAgentStageCounts>(TENON_TRAINING_AGENT_STAGE_COUNTS)(
        owned_.object, stage, &feed_count, &fetch_count));
    Values values;
    const auto keep = [&](nb::handle value) {
      values.kept.append(value);
      return nb::cast<const Value&>(value).get();
    };
    for (const nb::handle feed : feeds) values.fed.push_back(keep(feed));
    values.fetched.resize(fetch_count);
    values.is_given.resize(fetch_count);
    for (size_t i = 0; i < std::min(fetch_count, fetches.size()); ++i) {
      values.is_given[i] = !fetches[i].is_none();
      if (values.is_given[i]) values.fetched[i] = keep(fetches[i]);
    }
    return values;
  }

  // What is fed, and results that are written in place, stay in the state for its later stages,
  // also if this one fails.
  template <class Function>
  void Run(const char* pass, const Values& values, State& state, Function function) const {
    state.kept.extend(values.kept);
    OrtStatus* status = nullptr;
    {
      const WithoutGil other_threads_run;
      status = function();
    }
    if (status == nullptr) return;
    const std::string text =
        std::string("Error in ") + pass + " pass execution: " + Api().GetErrorMessage(status);
    Api().ReleaseStatus(status);
    throw std::runtime_error(text);
  }

  // `fetches` gets the results of the stage; values that it already held were written in place.
  void HandOver(const Values& values, nb::list& fetches) const {
    for (size_t i = 0; i < values.fetched.size(); ++i) {
      if (values.is_given[i]) continue;
      nb::object value = nb::cast(Value(ValueHandle(values.fetched[i])));
      if (i < fetches.size()) {
        fetches[i] = value;
      } else {
        fetches.append(value);
      }
    }
  }

  Owned<TenonTrainingAgent, TenonReleaseTrainingAgent> owned_;
  // Keeps the Python memory that the session uses. It is released first, so that the end of the
  // native agent ends the session.
  nb::object session_;
};

}  // namespace

void BindTraining(nb::module_& module) {
  nb::class_<State>(module, "PartialGraphExecutionState").def(nb::init<>());
  nb::class_<Cache>(module, "OrtValueCache")
      .def(nb::init<>())
      .def("insert", &Cache::Insert, nb::arg("name"), nb::arg("value"))
      .def("remove", &Cache::Remove, nb::arg("name"))
      .def("count", &Cache::Count, nb::arg("name"))
      .def("keys", &Cache::Keys)
      .def("clear", &Cache::Clear);
  nb::class_<Agent>(module, "_TrainingAgent")
      .def(nb::init<nb::object, const std::vector<std::string>&, const std::vector<nb::object>&,
                    const std::vector<std::string>&, const std::vector<nb::object>&>())
      .def("_set_local_rank", &Agent::SetLocalRank, nb::arg("rank"))
      .def("run_forward", &Agent::RunForward, nb::arg("feeds"), nb::arg("fetches"),
           nb::arg("state"), nb::arg("cache").none() = nb::none())
      .def("run_backward", &Agent::RunBackward, nb::arg("feeds"), nb::arg("fetches"),
           nb::arg("state"));
}

}  // namespace tenon::python
