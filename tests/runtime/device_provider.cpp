#include "runtime/device_provider.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>

#include "ir/graph.h"
#include "runtime/data_transfer.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

// The host must not access addresses of the device: an access is a fault.
constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;

class DeviceMemory final : public Allocator {
 public:
  DeviceMemory(DeviceLog& log, const MemoryInfo& info) : log_(log), info_(info) {}
  ~DeviceMemory() override {
    for (void* block : freed_) std::free(block);
  }

  void* Allocate(size_t bytes) override {
    ++log_.allocations;
    ++log_.live_blocks;
    const size_t floats = bytes / sizeof(float) + 1;
    auto* block = static_cast<float*>(std::malloc(floats * sizeof(float)));
    std::fill_n(block, floats, std::numeric_limits<float>::quiet_NaN());
    return ToDevice(block);
  }
  void Free(void* block) override {
    if (block == nullptr) return;
    --log_.live_blocks;
    freed_.push_back(ToHost(block));  // work of a stream may still use it
  }
  const MemoryInfo& info() const override { return info_; }

  void* ToHost(const void* device) const {
    const auto address = reinterpret_cast<uintptr_t>(device);
    return reinterpret_cast<void*>(info_.IsHostAccessible() ? address : address & ~kDeviceBit);
  }

 private:
  void* ToDevice(void* host) const {
    const auto address = reinterpret_cast<uintptr_t>(host);
    return reinterpret_cast<void*>(info_.IsHostAccessible() ? address : address | kDeviceBit);
  }

  DeviceLog& log_;
  const MemoryInfo& info_;
  std::vector<void*> freed_;
};

// Delays work as long as possible.
class LazyStream final : public Stream {
 public:
  LazyStream(DeviceLog& log, const MemoryInfo& device) : log_(log), device_(device) {}

  const MemoryInfo& device() const override { return device_; }
  Result<std::unique_ptr<Notification>> CreateNotification() override;
  Status Flush() override {
    ++log_.flushes;
    RunUpTo(given_);
    return OkStatus();
  }
  Status OnRunEnd() override {
    ++log_.run_ends;
    return OkStatus();
  }

  void Give(std::function<void()> work) {
    work_.push_back(std::move(work));
    ++given_;
  }
  size_t given() const { return given_; }
  void RunUpTo(size_t mark) {
    while (done_ < mark) {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      ++done_;
      work();
    }
  }

 private:
  DeviceLog& log_;
  const MemoryInfo& device_;
  std::deque<std::function<void()>> work_;
  size_t given_ = 0, done_ = 0;
};

class LazyNotification final : public Notification {
 public:
  explicit LazyNotification(LazyStream& stream) : stream_(stream) {}
  Status Activate() override {
    mark_ = stream_.given();
    return OkStatus();
  }
  Status WaitOnDevice(Stream& consumer) override {
    LazyStream& stream = stream_;
    const size_t mark = mark_;
    static_cast<LazyStream&>(consumer).Give([&stream, mark] { stream.RunUpTo(mark); });
    return OkStatus();
  }
  Status WaitOnHost() override {
    stream_.RunUpTo(mark_);
    return OkStatus();
  }

 private:
  LazyStream& stream_;
  size_t mark_ = 0;
};

Result<std::unique_ptr<Notification>> LazyStream::CreateNotification() {
  return std::make_unique<LazyNotification>(*this);
}

// Now, or when the stream reaches it.
void Do(Stream* stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  static_cast<LazyStream*>(stream)->Give(std::move(work));
}

class DeviceTransfer final : public DataTransfer {
 public:
  DeviceTransfer(DeviceLog& log, const DeviceMemory& memory) : log_(log), memory_(memory) {}

  bool CanCopy(const MemoryInfo& from, const MemoryInfo& into) const override {
    const bool from_here = from.SameDevice(memory_.info());
    const bool into_here = into.SameDevice(memory_.info());
    return (from_here && into_here) || (from_here && into.device_type == DeviceType::kCpu) ||
           (into_here && from.device_type == DeviceType::kCpu);
  }
  Status Copy(std::span<const TensorCopy> copies, Stream* stream) override {
    for (const TensorCopy& copy : copies) {
      const bool comes_in = copy.into->memory().SameDevice(memory_.info());
      ++(comes_in ? log_.copies_in : log_.copies_out);
      const void* from = AddressOf(copy.from->memory(), copy.from->raw());
      void* into = AddressOf(copy.into->memory(), copy.into->raw());
      const size_t bytes = copy.from->bytes();
      Do(stream, [=] { std::memcpy(into, from, bytes); });
    }
    return OkStatus();
  }

 private:
  void* AddressOf(const MemoryInfo& memory, const void* address) const {
    return memory.SameDevice(memory_.info()) ? memory_.ToHost(address) : const_cast<void*>(address);
  }

  DeviceLog& log_;
  const DeviceMemory& memory_;
};

class DeviceKernel final : public Kernel {
 public:
  DeviceKernel(std::string op_type, DeviceLog& log, const DeviceMemory& memory)
      : op_type_(std::move(op_type)), log_(log), memory_(memory) {}

  KernelTraits traits() const override {
    return op_type_ == "Repeat" ? KernelTraits() : KernelTraits{.in_place_input = 0};
  }
  Residence InputResidence(size_t i) const override {
    return op_type_ == "Repeat" && i == 1 ? Residence::kHost : Residence::kProvider;
  }
  Status InferShapes(ShapeContext& context) const override {
    return TestShapeFunctions().Find(context.node())(context.node(), context);
  }
  Status Run(KernelContext& context) const override {
    log_.inputs.push_back(context.Input(0).raw());
    const float* x = At(context.Input(0));
    const float* z = op_type_ == "Add" ? At(context.Input(1)) : x;
    float* y = static_cast<float*>(memory_.ToHost(context.Output(0).raw()));
    const int64_t length = context.Input(0).size();
    const int64_t size = context.Output(0).size();
    const bool repeats = op_type_ == "Repeat";
    Do(context.stream(), [=] {
      for (int64_t i = 0; i < size; ++i) y[i] = repeats ? x[i % length] : x[i] + z[i];
    });
    return OkStatus();
  }

 private:
  const float* At(const Tensor& tensor) const {
    return static_cast<const float*>(memory_.ToHost(tensor.raw()));
  }

  const std::string op_type_;
  DeviceLog& log_;
  const DeviceMemory& memory_;
};

class DeviceProvider final : public ExecutionProvider {
 public:
  DeviceProvider(DeviceLog& log, DeviceOptions options)
      : name_(Format("Device{}ExecutionProvider", options.device_id)),
        log_(log),
        options_(std::move(options)),
        info_(InternMemoryInfo({.name = "Device",
                                .device_type = DeviceType::kGpu,
                                .memory_type = options_.is_host_accessible
                                                   ? MemoryType::kHostAccessible
                                                   : MemoryType::kDefault,
                                .vendor_id = 7,
                                .device_id = options_.device_id})),
        memory_(std::make_shared<DeviceMemory>(log, info_)),
        transfer_(std::make_shared<DeviceTransfer>(log, *memory_)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* node = graph.FindNode(static_cast<NodeId>(i));
      if (node && node->domain == "test" && options_.ops.contains(node->op_type)) {
        claims.push_back({{node->id}});
      }
    }
    return claims;
  }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    return std::make_unique<DeviceKernel>(info.node().op_type, log_, *memory_);
  }
  const MemoryInfo& memory() const override { return info_; }
  std::shared_ptr<Allocator> allocator() override { return memory_; }
  std::shared_ptr<DataTransfer> data_transfer() override { return transfer_; }
  bool HasStreams() const override { return options_.has_streams; }
  Result<std::unique_ptr<Stream>> CreateStream() override {
    if (options_.refuses_streams) return EpFail("no more streams");
    ++log_.streams;
    return std::make_unique<LazyStream>(log_, info_);
  }

 private:
  const std::string name_;
  DeviceLog& log_;
  const DeviceOptions options_;
  const MemoryInfo& info_;
  const std::shared_ptr<DeviceMemory> memory_;
  const std::shared_ptr<DeviceTransfer> transfer_;
};

}  // namespace

std::unique_ptr<ExecutionProvider> MakeDeviceProvider(DeviceLog& log, DeviceOptions options) {
  return std::make_unique<DeviceProvider>(log, std::move(options));
}

Tensor OnDevice(ExecutionProvider& provider, const Tensor& tensor) {
  Tensor copy = Tensor::Allocate(tensor.type(), tensor.shape(), provider.allocator()).value();
  const TensorCopy pair{&tensor, &copy};
  if (!provider.data_transfer()->Copy({&pair, 1}, nullptr).ok()) std::abort();
  return copy;
}

}  // namespace tenon
