// Calls functions at a later time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace tenon {

using AlarmTime = std::chrono::steady_clock::time_point;
// An alarm; returns when to be called again, if at all. Does not throw.
using AlarmFunction = std::function<std::optional<AlarmTime>()>;

// Calls `function` at `time`, on a thread that the process has while there are alarms, and that
// sleeps until the next of them. `owner` has one alarm: another one replaces it. Alarms are never
// called if there are no threads, in child processes of the process that set them, and after the
// process has begun to end.
void SetAlarm(const void* owner, AlarmTime time, AlarmFunction function);

// Cancels the owner's alarm, if there is one. Returns when no call of it is in progress; must not
// be called by an alarm.
void ClearAlarm(const void* owner);

}  // namespace tenon
