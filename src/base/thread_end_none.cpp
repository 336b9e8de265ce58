// What the compiler calls to have thread-local objects destroyed, where the C++ library does not:
// WebAssembly. There is one thread, and it ends with the program.

extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }
