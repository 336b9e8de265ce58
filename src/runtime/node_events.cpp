#include "runtime/node_events.h"

#include "base/json_writer.h"
#include "tensor/data_type.h"

namespace tenon {
namespace {

// [{"float":[1,1024]},...] for `tensors` entries from `*at` on; `*at` moves past them.
std::string TypesAndShapes(const std::vector<int64_t>& shapes, size_t tensors, size_t* at) {
  JsonWriter json;
  json.BeginArray();
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    const auto type = static_cast<DataType>(shapes[(*at)++]);
    const auto rank = static_cast<size_t>(shapes[(*at)++]);
    json.BeginObject();
    json.Key(DataTypeName(type)).BeginArray();
    for (size_t axis = 0; axis < rank; ++axis) json.Integer(shapes[(*at)++]);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  return json.text();
}

size_t TensorsFrom(const std::vector<int64_t>& shapes, size_t at) {
  size_t tensors = 0;
  for (; at < shapes.size(); ++tensors) at += 2 + static_cast<size_t>(shapes[at + 1]);
  return tensors;
}

int64_t Microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// The thread pool's work for the node, by its own thread and by those that helped.
std::string ThreadStats(const NodeTrace& trace) {
  JsonWriter json;
  json.BeginObject();
  if (!trace.node->threads.empty()) {
    const LoopStats::Record none;
    const LoopStats::Record& loops = trace.loops ? *trace.loops : none;
    json.Key("main_thread").BeginObject();
    json.Key("thread_pool_name").Text(trace.node->threads);
    json.Key("thread_id").Text(std::to_string(trace.thread));
    json.Key("block_size").BeginArray();
    for (const size_t size : loops.block_sizes) json.Integer(size);
    json.EndArray();
    json.Key("core").Integer(trace.core);
    json.Key("Distribution").Integer(Microseconds(loops.times.distribution));
    json.Key("DistributionEnqueue").Integer(Microseconds(loops.times.enqueue));
    json.Key("Run").Integer(Microseconds(loops.times.run));
    json.Key("Wait").Integer(Microseconds(loops.times.wait));
    json.Key("WaitRevoke").Integer(Microseconds(loops.times.revoke));
    json.EndObject();
    json.Key("sub_threads").BeginObject();
    for (const LoopStats::Helper& helper : loops.helpers) {
      json.Key(std::to_string(helper.thread)).BeginObject();
      json.Key("num_run").Integer(helper.blocks);
      json.Key("core").Integer(helper.core);
      json.EndObject();
    }
    json.EndObject();
  }
  json.EndObject();
  return json.text();
}

// Of the allocator of the node's outputs, under the names of ONNX Runtime; nothing if it does not
// count.
void AppendMemory(const NodeTrace& trace, std::vector<TraceArg>& args) {
  const AllocatorStats &before = trace.memory_before, &after = trace.memory_after;
  if (after.bytes_reserved == 0) return;
  const auto add = [&](const char* name, uint64_t bytes) {
    args.push_back({name, std::to_string(bytes)});
  };
  const auto add_change = [&](const char* name, uint64_t AllocatorStats::*bytes) {
    args.push_back({name, std::to_string(static_cast<int64_t>(after.*bytes - before.*bytes))});
  };
  add("mem_bytes_requested_in_use", after.bytes_requested);
  add_change("mem_requested_in_use_delta", &AllocatorStats::bytes_requested);
  add("mem_bytes_in_use", after.bytes_in_use);
  add_change("mem_in_use_delta", &AllocatorStats::bytes_in_use);
  add("mem_in_use_peak", after.peak_bytes_in_use);
  add("mem_arena_held", after.bytes_reserved);
  add_change("mem_arena_held_delta", &AllocatorStats::bytes_reserved);
}

}  // namespace

void AppendNodeEvents(const NodeTrace& trace, int64_t process, std::vector<TraceEvent>& events) {
  const TracedNode& node = *trace.node;
  const auto add = [&](const char* suffix, int64_t start, int64_t end) -> TraceEvent& {
    TraceEvent& event = events.emplace_back();
    event.category = TraceCategory::kNode;
    event.name = node.name + suffix;
    event.start = start;
    event.duration = end - start;
    event.process = process;
    event.thread = trace.thread;
    event.args.push_back({"op_name", node.op_type});
    return event;
  };
  add("_fence_before", trace.fence_before, trace.kernel_start);
  size_t at = 0;
  const std::string inputs = TypesAndShapes(trace.shapes, trace.input_tensors, &at);
  const std::string outputs = TypesAndShapes(trace.shapes, TensorsFrom(trace.shapes, at), &at);
  const std::string index = std::to_string(node.index);
  TraceEvent& kernel = add("_kernel_time", trace.kernel_start, trace.kernel_end);
  kernel.args.insert(kernel.args.end(),
                     {{"provider", node.provider},
                      {"graph_index", index},
                      {"exec_plan_index", index},
                      {"node_index", index},
                      {"activation_size", std::to_string(trace.activation_bytes)},
                      {"parameter_size", std::to_string(trace.parameter_bytes)},
                      {"output_size", std::to_string(trace.output_bytes)},
                      {"input_type_shape", inputs, true},
                      {"output_type_shape", outputs, true},
                      {"thread_scheduling_stats", ThreadStats(trace), true},
                      {"program_counter", std::to_string(node.counter)}});
  AppendMemory(trace, kernel.args);
  if (trace.is_cached) kernel.args.push_back({"cached", "1"});
  add("_fence_after", trace.kernel_end, trace.fence_after);
}

}  // namespace tenon
