// Interruption by the user.
#pragma once

namespace tenon::cli {

// While it lives, the first SIGINT (Ctrl+C) asks for an end, and the second one ends the process at
// once. Only one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace tenon::cli
