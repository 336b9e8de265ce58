// The interpreter's lock: scopes that release and take it, and that are safe when the interpreter
// ends.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace tenon::python {

// Takes the lock by `take`. While the interpreter ends, Python before 3.14 unwinds daemon threads
// that ask for the lock, through frames that must not be unwound. Such a thread blocks here
// forever, as it does in later versions of Python.
template <class Take>
void TakeLockOrStay(Take take) noexcept {
  try {
    take();
  } catch (...) {
    for (;;) pause();
  }
}

// While it lives, other threads may run Python code.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    TakeLockOrStay([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

// While it lives, the thread, which may be any thread, may use Python objects.
class WithGil {
 public:
  WithGil() {
    TakeLockOrStay([this] { state_ = PyGILState_Ensure(); });
  }
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_{};
};

}  // namespace tenon::python
