// The settings that tests give the mock plugin, and the records that it gives them. Both share this
// plain data.
#pragma once

#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

// The result of GetDefaultMemoryDevice: none, the memory of the first or the second device, the
// first's that the host can access, its constants', or one that no device has.
enum class MockMemory { kNone, kFirst, kSecond, kHost, kConstants, kForeign };

// How the mock claims nodes.
enum class MockClaims { kNothing, kFused, kKernels, kUnfusable };

// What it returns for groups if the session needs a compiled model.
enum class MockContextNodes { kGood, kNone, kForeign, kOtherOperator, kOtherValues, kOtherInputs };

// What its kernel of Mul does with a constant operand.
enum class MockPacking { kNone, kPrivate, kShared, kSharedTwice, kSharedUnpacked, kBadShared };

struct MockControl {
  // The slots that fail, by name, with an ORT_EP_FAIL "<slot> was told to fail"; those in `throws`
  // throw that text instead.
  std::vector<std::string> fails, throws;
  MockClaims claims = MockClaims::kFused;
  // Metadata of the factory and its providers.
  uint32_t api_version = 29;
  std::string version = "1.2.3";
  size_t factories = 1, devices = 1;
  bool has_device_memory = true, has_host_memory = false, has_streams = true;
  bool is_virtual = false;
  bool runs_overlap = true;
  bool returns_null_infos = false;
  bool has_compile = true;
  bool has_read_only_memory = false, provider_allocates = false;
  // The extension, and how the host gets it.
  enum class Extension { kNone, kExported, kSet, kSetTooLate } extension = Extension::kExported;
  uint32_t extension_size = ~0u, extension_version = 1;
  uint64_t extension_flags = 0;
  std::string wrong_memory;  // the name of the memory that allocators say they are of
  // Memory: where the second device's is another, what values shall lie in, and what there is to
  // make it.
  bool has_two_memories = false;
  MockMemory default_memory = MockMemory::kNone;
  bool factory_allocates = true, factory_makes_streams = true, provider_makes_streams = false;
  // Slots of allocators that came later, and whether the pages of constants are a device's own.
  bool allocates_on_streams = false, shrinks = false, has_own_constants = false;
  bool imports = false;
  // Where the extension must not be written to, nor be read after its factory has gone.
  bool guards_extension = false;
  std::function<void()> on_session_end;  // what the provider does in the notification
  bool makes_null_providers = false;
  std::string name = "MockProvider";  // of providers
  int name_calls = 0;
  // Objects that are missing or wrong on request, by name.
  std::set<std::string> lacks;
  std::vector<int64_t> output_shape;  // of every output; empty: as it should be
  std::function<void(OrtKernelContext*)> on_compute;
  size_t padding = 0;              // by how many characters the text of a failure is longer
  bool exits_when_called = false;  // with exit code 3
  // Whether providers record runs, after how many runs of the same id, and with which slots.
  struct Capture {
    bool is_enabled = false, always_has = false;
    int warm_ups = 0, policy = 0;
    bool has_captured = true, has_replay = true, has_release = true;
    bool IsComplete() const { return is_enabled && has_captured && has_replay; }
  } capture;
  std::atomic<int> recordings = 0;  // of runs, or of new addresses of a compiled node

  // The layout of images that it prefers, and what it then does.
  struct Layout {
    bool is_on = false;
    unsigned preferred = 1;                  // OrtEpDataLayout
    std::map<std::string, int> conversions;  // what it answers for operators, else -1
    std::set<std::string> takes;             // "Conv"; "nhwc.Conv" of the internal domain
    int64_t most_channels = INT64_MAX;       // of an nhwc.Conv
    bool fails_later = false;                // where a graph has such nodes
    // The operators of each graph that it was asked about; those whose conversion it was asked for.
    std::vector<std::string> seen, asked;
  } layout;

  // What tests look at in GetCapability, in Compile (each fused node), and in CreateEp.
  std::function<void(const OrtGraph*)> on_graph;
  std::function<void(const OrtNode*)> on_fused;
  std::function<void(const OrtSessionOptions*)> on_create;

  // Compiled models: the data that it writes, its metadata, and the data that it reads again.
  MockContextNodes context_nodes = MockContextNodes::kGood;
  std::string compatibility = "mock 1", validated;
  int validation = 0;                          // OrtCompiledModelCompatibility
  int weightless = 0;                          // OrtWeightlessSupport; -1: no such slot
  std::map<std::string, std::string> entries;  // of the session, those about compiled models
  std::string context_read, weight_source;

  // The free bytes of the device. kNoCount: another kind of resource; kNoSlot: no slot.
  enum Budget : int64_t { kNoCount = -1, kNoSlot = -2 };
  int64_t budget = kNoSlot;
  size_t op_domains = 0;  // how many domains of operators the factory lists, all the same
  // Where its operators want their input, and the name of the memory that they got it in.
  OrtMemType operator_memory = OrtMemTypeDefault;
  std::string operator_input;
  // "name: path offset size" of the initializers that the last graph to claim from has in files,
  // "name:" of others.
  std::vector<std::string> initializers;
  MockPacking packing = MockPacking::kNone;
  bool has_cache = false;                // the last PrePackWeight was given one
  std::vector<const void*> shared_data;  // that SetSharedPrePackedWeight was given

  // "<slot>" in the order of the calls; slots of memory and copies have counts instead.
  std::vector<std::string> calls;
  std::mutex mutex;
  std::atomic<int> allocations = 0, live_blocks = 0, copies = 0, copy_calls = 0;
  std::atomic<int> live_objects = 0;  // providers, allocators, transfers, streams, states, kernels
  uint64_t end_reason = ~uint64_t{0};
  uint64_t completed_runs = 0;
  std::set<std::pair<const void*, void*>> places;      // from where to where Compute worked
  std::vector<std::string> node_names;                 // of CreateState
  std::atomic<int> computing = 0, most_computing = 0;  // calls of Compute at once
  std::vector<std::string> dynamic_options;            // "key=value"
  std::string last_option;                             // value of the provider's option "color"
  std::vector<std::string> ep_arguments;               // what CreateEp got, one text each
  std::string arena_options;            // of the last allocator: "key=value;", or "null"
  std::vector<std::string> can_copies;  // "from>into" as CanCopy was asked, while it is logged
  bool logs_can_copy = false;
  std::vector<const void*> copied_values;  // of the last CopyTensors: a source, its target, ...
  std::atomic<void*> compute_stream = nullptr;  // of the last Compute: the handle of its stream
  std::atomic<int> allocations_on_streams = 0;
  std::vector<std::string> registered, released;  // the names of factories, as they came and went

  void Log(const char* slot) {
    if (exits_when_called) _exit(3);
    const std::lock_guard lock(mutex);
    calls.emplace_back(slot);
  }
  int Count(const std::string& slot) {
    const std::lock_guard lock(mutex);
    int count = 0;
    for (const std::string& call : calls) count += call == slot ? 1 : 0;
    return count;
  }
  void Reset() {
    fails.clear();
    throws.clear();
    claims = MockClaims::kFused;
    api_version = 29;
    version = "1.2.3";
    factories = devices = 1;
    has_device_memory = has_streams = runs_overlap = true;
    has_host_memory = is_virtual = returns_null_infos = false;
    has_compile = true;
    has_read_only_memory = provider_allocates = false;
    extension = Extension::kExported;
    extension_size = ~0u;
    extension_version = 1;
    extension_flags = 0;
    capture = {};
    layout = {};
    guards_extension = makes_null_providers = false;
    on_session_end = nullptr;
    on_graph = nullptr;
    on_fused = nullptr;
    on_create = nullptr;
    name = "MockProvider";
    name_calls = 0;
    padding = 0;
    lacks.clear();
    output_shape.clear();
    on_compute = nullptr;
    recordings = 0;
    places.clear();
    node_names.clear();
    most_computing = 0;
    wrong_memory.clear();
    calls.clear();
    allocations = copies = copy_calls = 0;
    end_reason = ~uint64_t{0};
    completed_runs = 0;
    last_option.clear();
    op_domains = 0;
    operator_memory = OrtMemTypeDefault;
    operator_input.clear();
    initializers.clear();
    budget = kNoSlot;
    packing = MockPacking::kNone;
    has_cache = false;
    shared_data.clear();
    context_nodes = MockContextNodes::kGood;
    compatibility = "mock 1";
    validation = weightless = 0;
    entries.clear();
    validated.clear();
    context_read.clear();
    weight_source.clear();
    has_two_memories = provider_makes_streams = false;
    default_memory = MockMemory::kNone;
    factory_allocates = factory_makes_streams = true;
    allocates_on_streams = shrinks = has_own_constants = imports = logs_can_copy = false;
    ep_arguments.clear();
    registered.clear();
    released.clear();
    arena_options.clear();
    can_copies.clear();
    copied_values.clear();
    compute_stream = nullptr;
    allocations_on_streams = 0;
    dynamic_options.clear();
  }
};

}  // namespace tenon::test
