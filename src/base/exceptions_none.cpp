// What the compiler calls to throw, where the C++ library has no exceptions: WebAssembly. Only the
// standard library throws, for memory that is not there and the like; that ends the program.
#include <cstddef>
#include <cstdlib>

extern "C" void* __cxa_allocate_exception(size_t) noexcept { std::abort(); }
extern "C" void __cxa_throw(void*, void*, void (*)(void*)) { std::abort(); }
extern "C" void __cxa_rethrow() { std::abort(); }
