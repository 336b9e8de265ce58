#include "runtime/node_dump.h"

#include <cstdio>
#include <utility>

#include "base/mapped_file.h"
#include "ir/onnx_writer.h"
#include "runtime/data_transfer.h"
#include "runtime/tensor_text.h"

namespace tenon {
namespace {

void PrintToStdout(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // so that a crash in the kernel loses no text
}

// "{2,3}"
std::string BracedShape(const Shape& shape) {
  std::string text = "{";
  for (const int64_t dim : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(dim);
  }
  return text + '}';
}

// The name with '_' for each byte that is neither a letter nor a digit.
std::string FileName(std::string name) {
  for (char& c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_plain) c = '_';
  }
  return name;
}

// The value in an optional; other values as they are.
const Value& Unwrapped(const Value& value) {
  return value.kind() == Value::Kind::kOptional ? value.optional().value : value;
}

}  // namespace

NodeDump::NodeDump(NodeDumpSettings settings, Print print)
    : settings_(std::move(settings)), print_(print ? std::move(print) : PrintToStdout) {}

void NodeDump::Write(uint64_t number, const std::string& header, const std::string& text) {
  const MutexLock lock(mutex_);
  print_(std::exchange(last_written_, number) == number ? text : header + text);
}

StepDump::StepDump(NodeDump& dump, const Plan& plan, const Step& step, uint64_t execution)
    : dump_(dump), settings_(dump.settings()), plan_(plan), step_(step), execution_(execution) {
  const MutexLock lock(dump_.mutex_);
  number_ = ++dump_.last_number_;
}

bool StepDump::is_wanted() const {
  const auto takes = [](const NodeDumpSettings::Names& filter, const std::string& name) {
    return filter.empty() || filter.contains(name);
  };
  return takes(settings_.names, step_.node->name) && takes(settings_.op_types, step_.node->op_type);
}

std::string StepDump::Header() const {
  std::string text = Format("-----------\n{} node: {}\n", step_.node->op_type, step_.node->name);
  if (settings_.placement && execution_ == 1) {
    const std::string& provider =
        plan_.providers[static_cast<size_t>(step_.node->provider)]->name();
    text += Format("Placement: {}\n", provider);
  }
  return text;
}

Status StepDump::Inputs(const Frame& frame) {
  std::string text;
  const std::span<const Slot> slots = plan_.InputsOf(step_);
  const std::span<const Value* const> inputs = frame.InputsOf(step_);
  Status first;
  for (size_t i = 0; i < slots.size() && first.ok(); ++i) {
    first = Show("Input", i, slots[i], inputs[i], settings_.input_data, text);
  }
  dump_.Write(number_, Header(), text);
  return first;
}

Status StepDump::Outputs(const Frame& frame) {
  std::string text;
  const std::span<const Slot> slots = plan_.OutputsOf(step_);
  const std::span<Value* const> outputs = frame.OutputsOf(step_);
  Status first;
  for (size_t i = 0; i < slots.size() && first.ok(); ++i) {
    first = Show("Output", i, slots[i], outputs[i], settings_.output_data, text);
  }
  dump_.Write(number_, Header(), text);
  return first;
}

Status StepDump::Show(std::string_view what, size_t i, Slot slot, const Value* value,
                      bool shows_data, std::string& text) const {
  if (slot == kNoSlot) {
    text += Format("{} {} is optional and left out\n", what, i);
    return OkStatus();
  }
  const std::string& name = plan_.graph->value(plan_.value_of[static_cast<size_t>(slot)]).name;
  text += Format("{} {} Name: {}\n", what, i, name);
  const Value& held = Unwrapped(*value);
  if (held.is_tensor()) return ShowTensor(name, held.tensor(), shows_data, text);
  text += held.has_value() ? Format(" is no tensor but a {}\n", ValueKindName(held.kind()))
                           : " is an empty optional\n";
  return OkStatus();
}

Status StepDump::ShowTensor(const std::string& name, const Tensor& tensor, bool shows_data,
                            std::string& text) const {
  if (settings_.shapes) text += Format(" Shape: {}\n", BracedShape(tensor.shape()));
  if (!shows_data && !settings_.statistics) return OkStatus();
  // A constant whose readers all keep it in a form of their own.
  if (tensor.raw() == nullptr && tensor.size() > 0) {
    text += " is kept by the kernel alone\n";
    return OkStatus();
  }
  const Result<Tensor> host = OnHost(tensor);
  if (!host) {
    const MemoryInfo& memory = tensor.memory();
    text += Format(" is in memory '{}' of device {}, and cannot be copied to the CPU: {}\n",
                   memory.name, memory.device_id, host.error().message());
    return OkStatus();
  }
  if (shows_data) TENON_RETURN_IF_ERROR(ShowData(name, *host, text));
  const std::string statistics = settings_.statistics ? TensorStatistics(*host) : "";
  if (!statistics.empty()) text += Format(" {}\n", statistics);
  return OkStatus();
}

Status StepDump::ShowData(const std::string& name, const Tensor& tensor, std::string& text) const {
  if (!settings_.into_files) {
    text += ' ';
    text += TensorText(tensor, {settings_.snippet_threshold, settings_.snippet_edge_items, " "});
    text += '\n';
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const std::string bytes, WriteTensorMessage(name, tensor));
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(bytes))};
  return WriteFileAtomically(
      settings_.folder + FileName(name) + settings_.file_suffix + ".tensorproto", parts);
}

Result<Tensor> StepDump::OnHost(const Tensor& tensor) const {
  if (tensor.memory().IsHostAccessible()) return tensor;
  TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(tensor.type(), tensor.shape()));
  TENON_RETURN_IF_ERROR(plan_.transfers->CopyTensor(tensor, copy));
  return copy;
}

}  // namespace tenon
