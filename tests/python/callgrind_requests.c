// Asks callgrind, under which the process runs, to count from here to there: instructions.py.
#include <valgrind/callgrind.h>

void Begin(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void End(const char* name) {
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
}
