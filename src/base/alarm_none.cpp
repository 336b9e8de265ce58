// Alarms where there are no threads, as in WebAssembly: there are none.
#include "base/alarm.h"

namespace tenon {

void SetAlarm(const void*, AlarmTime, AlarmFunction) {}

void ClearAlarm(const void*) {}

}  // namespace tenon
