// The function that the compiler calls to destroy thread-local objects, for a C++ library that
// lacks it: WebAssembly. There is one thread, and it ends with the program.

extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }
