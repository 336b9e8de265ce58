// Prints, for each case of row_cases.h that is claimed in some context, a line of JSON: the builder
// program, the elements that go into it, and those that the CPU gives. Run by run_programs.mjs.
#include <cstdio>
#include <set>

#include "base/json_writer.h"
#include "webnn/fixture.h"
#include "webnn/row_cases.h"

namespace tenon::webnn {
namespace {

std::string HexOf(const void* data, size_t bytes) {
  std::string hex;
  for (size_t i = 0; i < bytes; ++i) {
    hex += Format("{:02x}", static_cast<const unsigned char*>(data)[i]);
  }
  return hex;
}

void WriteValues(JsonWriter& json, const std::map<std::string, Value>& values) {
  json.BeginObject();
  for (const auto& [name, value] : values) {
    json.Key(name).Text(HexOf(value.tensor().raw(), value.tensor().bytes()));
  }
  json.EndObject();
}

class Printer : public WebnnTest {
 public:
  void TestBody() override {
    for (const RowCase& one : RowCases()) {
      if (!one.is_claimed) continue;
      Print(one, "", {});
      Print(one, ", channels last", {.prefers_channels_last = true});
      Print(one, ", no int64", {.without_types = "l"});
      Print(one, ", no integers but int32", {.without_types = "lLIbB"});
      Print(one, ", no scalars", {.min_rank = 1});
    }
  }

 private:
  // Nothing for a case that is the same as in a context without limits, or that this one lacks.
  void Print(const RowCase& one, const char* context, const LimitsChange& limits) {
    GraphBuilder b(one.opset);
    one.build(b);
    SessionOptions session;
    session.optimization_level = OptimizationLevel::kNone;
    Open(*b.graph, {.limits = LimitsText(limits), .session = session, .opset = one.opset});
    if (partitions() == 0) return;
    Partition& partition = plan_->partition(0);
    std::vector<Value> feeds;
    std::map<std::string, Value> inputs, outputs;
    for (const SessionValue& input : cpu_->inputs()) {
      feeds.push_back(SomeValue(input.type.element_type, *input.type.shape->ToShape(),
                                static_cast<int>(feeds.size())));
      inputs[input.name] = feeds.back();
    }
    const std::vector<Value> expected = RunOnCpu(feeds);
    for (const BarrierOutput& output : plan_->stages()[0].outputs) {
      outputs[output.name] = expected[output.fetches.front()];
    }
    Partition::Binding& binding = partition.static_binding();
    const std::string program = **partition.Program(binding);
    std::string plain = program;
    // Addresses differ.
    for (size_t at = 0; (at = plain.find("\"address\":", at)) != std::string::npos; ++at) {
      plain.erase(at, plain.find(',', at) - at);
    }
    if (!printed_.insert(plain + one.op + one.name).second) return;
    JsonWriter json;
    json.BeginObject();
    json.Key("name").Text(Format("{} ({}{})", one.op, one.name, context));
    json.Key("program").Json(program);
    // What the addresses of the program point to.
    json.Key("constants").BeginArray();
    for (const Tensor& constant : binding.builder->constants()) {
      json.Text(HexOf(constant.raw(), constant.bytes()));
    }
    json.EndArray();
    json.Key("inputs");
    WriteValues(json, inputs);
    json.Key("outputs");
    WriteValues(json, outputs);
    json.EndObject();
    std::puts(json.text().c_str());
  }

  std::set<std::string> printed_;
};

}  // namespace
}  // namespace tenon::webnn

int main() {
  tenon::webnn::Printer printer;
  printer.TestBody();
}
