// The part of the C++ run-time library that throws and catches, which the libraries for WebAssembly
// lack: they are built without exceptions. Follows the Itanium C++ ABI as Clang applies it to
// WebAssembly. Handlers match the class that was thrown and its bases by single inheritance.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <typeinfo>

namespace __cxxabiv1 {

// As the ABI lays it out; its destructor and with it its run-time type are in the library.
class __si_class_type_info : public std::type_info {
 public:
  ~__si_class_type_info() override;
  const std::type_info* __base_type;
};

}  // namespace __cxxabiv1

namespace {

using Destructor = void* (*)(void* object);  // returns its argument

// Lies before the object that was thrown.
struct alignas(16) Exception {
  const std::type_info* type;
  Destructor destroy;
  Exception* outer;  // the exception whose handler was running when this one was caught
  int handlers;      // that run for it; negative once one of them has thrown it again

  void* object() { return this + 1; }
  static Exception* Of(void* object) { return static_cast<Exception*>(object) - 1; }
};

thread_local constinit Exception* caught = nullptr;

// For when memory is out: room for a few exceptions as small as std::bad_alloc.
struct alignas(16) Reserve {
  std::atomic<bool> is_taken;
  alignas(16) std::byte memory[sizeof(Exception) + 64];
};
constinit Reserve reserves[16] = {};

void* TakeReserve(size_t bytes) {
  if (bytes > sizeof(Reserve::memory)) std::abort();
  for (Reserve& reserve : reserves) {
    if (!reserve.is_taken.exchange(true)) return reserve.memory;
  }
  std::abort();
}

void FreeMemory(void* memory) {
  for (Reserve& reserve : reserves) {
    if (reserve.memory == memory) return reserve.is_taken.store(false);
  }
  std::free(memory);
}

// Whether a handler for `wanted` catches an object of type `thrown`.
bool Catches(const std::type_info* wanted, const std::type_info* thrown) {
  while (*wanted != *thrown) {
    const auto* const derived = dynamic_cast<const __cxxabiv1::__si_class_type_info*>(thrown);
    if (derived == nullptr) return false;
    thrown = derived->__base_type;
  }
  return true;
}

// The compiler's tables of a function, in the format of .gcc_except_table.
class TableReader {
 public:
  explicit TableReader(const uint8_t* at) : at_(at) {}

  const uint8_t* at() const { return at_; }
  uint8_t Byte() { return *at_++; }
  uint32_t Unsigned() {
    uint32_t value = 0;
    for (uint32_t shift = 0;; shift += 7) {
      const uint8_t byte = Byte();
      value |= static_cast<uint32_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int32_t Signed() {
    uint32_t value = 0;
    for (uint32_t shift = 0;;) {
      const uint8_t byte = Byte();
      value |= static_cast<uint32_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 32) value |= ~uint32_t{0} << shift;
      return static_cast<int32_t>(value);
    }
  }

 private:
  const uint8_t* at_;
};

constexpr uint8_t kOmitted = 0xff;  // an encoding: the value is not there

// The number of the handler at the landing pad `pad` that catches `thrown`; 0 if there is none.
int32_t FindHandler(const uint8_t* table, uint32_t pad, const std::type_info* thrown) {
  TableReader header(table);
  if (header.Byte() != kOmitted) std::abort();  // landing pads have no common base
  const uint8_t type_encoding = header.Byte();
  const std::type_info* const* types = nullptr;  // ends here, and is counted backwards
  if (type_encoding != kOmitted) {
    const uint32_t distance = header.Unsigned();
    types = reinterpret_cast<const std::type_info* const*>(header.at() + distance);
  }
  header.Byte();  // the encoding of call sites, which is always that of Unsigned
  const uint32_t call_site_bytes = header.Unsigned();
  TableReader call_sites = header;
  const uint8_t* const actions = header.at() + call_site_bytes;
  uint32_t action = 0;
  for (uint32_t i = 0; i <= pad; ++i) {
    call_sites.Unsigned();  // the pad's number
    action = call_sites.Unsigned();
  }
  if (action == 0) return 0;
  TableReader reader(actions + action - 1);
  for (;;) {
    const int32_t handler = reader.Signed();
    if (handler > 0) {
      const std::type_info* const wanted = types[-handler];
      if (wanted == nullptr || Catches(wanted, thrown)) return handler;  // null: catch (...)
    }
    const uint8_t* const next = reader.at();
    const int32_t offset = reader.Signed();
    if (offset == 0) return 0;
    reader = TableReader(next + offset);
  }
}

[[noreturn]] void Throw(Exception* exception) {
  constexpr int kCppException = 0;  // the tag
  __builtin_wasm_throw(kCppException, exception);
}

}  // namespace

extern "C" {

// What the compiler tells about the landing pad that an exception has reached, and the answer.
struct LandingPad {
  uint32_t index;
  const uint8_t* table;
  int32_t selector;
};
thread_local LandingPad __wasm_lpad_context = {};

int _Unwind_CallPersonality(void* thrown) {
  LandingPad& pad = __wasm_lpad_context;
  pad.selector = FindHandler(pad.table, pad.index, static_cast<Exception*>(thrown)->type);
  return 0;
}

void* __cxa_allocate_exception(size_t bytes) noexcept {
  void* memory = std::malloc(sizeof(Exception) + bytes);
  if (memory == nullptr) memory = TakeReserve(sizeof(Exception) + bytes);
  return (new (memory) Exception{})->object();
}

void __cxa_free_exception(void* object) noexcept { FreeMemory(Exception::Of(object)); }

[[noreturn]] void __cxa_throw(void* object, std::type_info* type, Destructor destroy) {
  Exception* const exception = Exception::Of(object);
  exception->type = type;
  exception->destroy = destroy;
  Throw(exception);
}

void* __cxa_get_exception_ptr(void* thrown) noexcept {
  return static_cast<Exception*>(thrown)->object();
}

void* __cxa_begin_catch(void* thrown) noexcept {
  auto* const exception = static_cast<Exception*>(thrown);
  exception->handlers = std::abs(exception->handlers) + 1;
  if (caught != exception) {
    exception->outer = caught;
    caught = exception;
  }
  return exception->object();
}

void __cxa_end_catch() {
  Exception* const exception = caught;
  if (exception->handlers < 0) {
    if (++exception->handlers == 0) caught = exception->outer;
    return;
  }
  if (--exception->handlers > 0) return;
  caught = exception->outer;
  if (exception->destroy != nullptr) exception->destroy(exception->object());
  FreeMemory(exception);
}

[[noreturn]] void __cxa_rethrow() {
  if (caught == nullptr) std::terminate();
  caught->handlers = -caught->handlers;
  Throw(caught);
}

}  // extern "C"

#define TENON_REPLACEABLE __attribute__((weak))

// The library's operators end the program if memory is out. A program may replace these as well.
TENON_REPLACEABLE void* operator new(size_t bytes) {
  if (void* const memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}

TENON_REPLACEABLE void* operator new(size_t bytes, std::align_val_t alignment) {
  if (void* const memory = operator new(bytes, alignment, std::nothrow)) return memory;
  throw std::bad_alloc();
}

TENON_REPLACEABLE void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}

TENON_REPLACEABLE void* operator new(size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  const auto multiple = static_cast<size_t>(alignment);
  if (bytes > SIZE_MAX - multiple) return nullptr;
  return std::aligned_alloc(multiple, (bytes + multiple) / multiple * multiple);
}

TENON_REPLACEABLE void* operator new[](size_t bytes) { return operator new(bytes); }
TENON_REPLACEABLE void* operator new[](size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
TENON_REPLACEABLE void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
TENON_REPLACEABLE void* operator new[](size_t bytes, std::align_val_t alignment,
                                       const std::nothrow_t& tag) noexcept {
  return operator new(bytes, alignment, tag);
}
