#include "runtime/probe_provider.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "ir/graph.h"
#include "ops/cpu_provider.h"
#include "runtime/data_transfer.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

class ProbeAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override { return CpuAllocator().Allocate(bytes); }
  void Free(void* block) override { CpuAllocator().Free(block); }
  const MemoryInfo& info() const override { return ProbeMemory(); }
};

class ProbeTransfer final : public DataTransfer {
 public:
  bool CanCopy(const MemoryInfo& from, const MemoryInfo& into) const override {
    return from.SameDevice(ProbeMemory()) || into.SameDevice(ProbeMemory());
  }
  Status Copy(std::span<const TensorCopy> copies, Stream*) override {
    for (const TensorCopy& copy : copies) {
      std::memcpy(copy.into->raw(), copy.from->raw(), copy.from->bytes());
    }
    return OkStatus();
  }
};

// Shared by a provider and its kernels.
struct Probe {
  explicit Probe(ProbeOptions wanted) : options(std::move(wanted)), failures(options.failures) {}

  void Tell(const std::string& event) const {
    if (options.on_event) options.on_event(event);
  }
  Status Call(const std::string& where) {
    if (options.fails_in != where) return OkStatus();
    if (options.failures >= 0 && failures.fetch_sub(1) <= 0) return OkStatus();
    return Status(options.code, "the probe was told to fail in " + where);
  }

  const ProbeOptions options;
  std::atomic<int> failures;
};

class ProbeKernel final : public Kernel {
 public:
  ProbeKernel(std::shared_ptr<Probe> probe, std::string op_type, std::unique_ptr<Kernel> kernel)
      : probe_(std::move(probe)), op_type_(std::move(op_type)), kernel_(std::move(kernel)) {}
  KernelTraits traits() const override { return kernel_->traits(); }
  Status InferShapes(ShapeContext& context) const override { return kernel_->InferShapes(context); }
  Status Run(KernelContext& context) const override {
    probe_->Tell("run " + op_type_);
    TENON_RETURN_IF_ERROR(probe_->Call("run"));
    return kernel_->Run(context);
  }

 private:
  const std::shared_ptr<Probe> probe_;
  const std::string op_type_;
  const std::unique_ptr<Kernel> kernel_;
};

class ProbeProvider final : public ExecutionProvider {
 public:
  explicit ProbeProvider(ProbeOptions options)
      : probe_(std::make_shared<Probe>(std::move(options))), cpu_(MakeCpuProvider()) {}
  ~ProbeProvider() override { probe_->Tell("release"); }

  const std::string& name() const override { return probe_->options.name; }
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider >= 0 || !node->domain.empty()) continue;
      if (!probe_->options.ops.contains(node->op_type)) continue;
      claims.push_back({.nodes = {node->id}, .fuse = probe_->options.fails_in == "compile"});
    }
    return claims;
  }
  Status Compile(const Graph&, std::vector<FusedNode>) override { return probe_->Call("compile"); }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    TENON_RETURN_IF_ERROR(probe_->Call("create"));
    TENON_ASSIGN_OR_RETURN(auto kernel, cpu_->CreateKernel(info));
    return std::make_unique<ProbeKernel>(probe_, info.node().op_type, std::move(kernel));
  }
  Status OnRunStart(const RunOptions&) override { return probe_->Call("start"); }
  Status OnRunEnd(const RunOptions&, bool) override { return probe_->Call("end"); }
  Status OnSessionEnd(const SessionEndInfo& info) override {
    probe_->Tell("session_end " + std::to_string(static_cast<int>(info.reason)));
    return OkStatus();
  }

  const MemoryInfo& memory() const override {
    return probe_->options.has_memory ? ProbeMemory() : CpuMemory();
  }
  std::shared_ptr<Allocator> allocator() override {
    if (!probe_->options.has_memory) return SharedCpuAllocator();
    return std::make_shared<ProbeAllocator>();
  }
  std::shared_ptr<DataTransfer> data_transfer() override {
    if (!probe_->options.has_memory) return nullptr;
    return std::make_shared<ProbeTransfer>();
  }

 private:
  const std::shared_ptr<Probe> probe_;
  const std::unique_ptr<ExecutionProvider> cpu_;
};

std::string TextOf(const StringMap& options, std::string_view key, const char* otherwise) {
  const auto entry = options.find(key);
  return entry == options.end() ? otherwise : entry->second;
}

}  // namespace

ProbeOptions ProbeOptions::From(std::string name, const StringMap& options) {
  ProbeOptions result;
  result.name = std::move(name);
  result.fails_in = TextOf(options, "fail", "");
  result.code = static_cast<StatusCode>(std::atoi(TextOf(options, "code", "11").c_str()));
  result.failures = std::atoi(TextOf(options, "failures", "1").c_str());
  result.has_memory = TextOf(options, "memory", "0") == "1";
  result.ops.clear();
  std::string ops = TextOf(options, "ops", "Add") + ",";
  for (size_t comma = ops.find(','); comma != std::string::npos; comma = ops.find(',')) {
    result.ops.insert(ops.substr(0, comma));
    ops.erase(0, comma + 1);
  }
  const std::string log = TextOf(options, "log", "");
  if (!log.empty()) {
    result.on_event = [log](const std::string& event) {
      std::ofstream(log, std::ios::app) << event << '\n';
    };
  }
  return result;
}

std::unique_ptr<ExecutionProvider> MakeProbeProvider(ProbeOptions options) {
  return std::make_unique<ProbeProvider>(std::move(options));
}

const MemoryInfo& ProbeMemory() {
  static const MemoryInfo& memory = InternMemoryInfo(
      {.name = "Probe", .device_type = DeviceType::kGpu, .vendor_id = 0x7e40, .device_id = 0});
  return memory;
}

}  // namespace tenon
