// Calls a function when a thread ends. The destructor of a thread_local object would do so too, but
// the C library ends the process if it has no memory to register one.
#pragma once

#if !defined(__wasm__)
#include <pthread.h>
#endif

namespace tenon {

// Lives as long as the process.
class ThreadEnd {
 public:
  // `call` receives the object of a thread that ends.
  explicit ThreadEnd(void (*call)(void* object));
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;

  // Sets the object of the calling thread. False if there is no memory for that; nothing is called
  // then. A thread that ends with the process does not count as ending.
  bool SetObject(void* object);

#if !defined(__wasm__)
 private:
  pthread_key_t key_{};
  const bool has_key_;
#endif
};

}  // namespace tenon
