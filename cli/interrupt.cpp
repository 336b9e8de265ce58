#include "interrupt.h"

#include <csignal>

namespace tenon::cli {
namespace {

volatile std::sig_atomic_t is_requested = 0;

void Request(int) { is_requested = 1; }

}  // namespace

Interrupt::Interrupt() {
  is_requested = 0;
  struct sigaction action = {};
  action.sa_handler = Request;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second one acts as ever
  sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() { std::signal(SIGINT, SIG_DFL); }

bool Interrupt::requested() const { return is_requested != 0; }

}  // namespace tenon::cli
