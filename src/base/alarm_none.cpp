// Alarms without threads, as in WebAssembly: they are never called.
#include "base/alarm.h"

namespace tenon {

void SetAlarm(const void*, AlarmTime, AlarmFunction) {}

void ClearAlarm(const void*) {}

}  // namespace tenon
