// The functions that the compiler calls to throw, for a C++ library without exceptions:
// WebAssembly. Only the standard library throws, for example when memory runs out; that ends the
// program.
#include <cstddef>
#include <cstdlib>

extern "C" void* __cxa_allocate_exception(size_t) noexcept { std::abort(); }
extern "C" void __cxa_throw(void*, void*, void (*)(void*)) { std::abort(); }
extern "C" void __cxa_rethrow() { std::abort(); }
