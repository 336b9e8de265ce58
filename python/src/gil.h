// The interpreter's lock, given up and taken so that a thread may meet the interpreter's end there.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace tenon::python {

// Takes the lock by `take`. While the interpreter ends, Python before 3.14 unwinds daemon threads
// that ask for it, through frames that must not be unwound: such a thread stays here for good, as
// it does in later versions.
template <class Take>
void TakeLockOrStay(Take take) noexcept {
  try {
    take();
  } catch (...) {
    for (;;) pause();
  }
}

// Other threads may run Python code while it lives.
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

// The thread, any thread, may use Python objects while it lives.
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
