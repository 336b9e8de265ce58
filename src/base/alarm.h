// Calls functions at a later time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace tenon {

using AlarmTime = std::chrono::steady_clock::time_point;
// What an alarm does; returns when to be called again, if at all. Does not throw.
using AlarmFunction = std::function<std::optional<AlarmTime>()>;

// Calls `function` at `time`, on a thread that the process has while there are alarms, and that
// sleeps until the next of them. `owner` has one alarm: another takes the place of the one before.
// Alarms are never called where there are no threads, in children of the process that set them, and
// after the process has begun to end.
void SetAlarm(const void* owner, AlarmTime time, AlarmFunction function);

// Takes the owner's alarm back, if there is one. Returns when no call of it is in progress; not to
// be called by an alarm.
void ClearAlarm(const void* owner);

}  // namespace tenon
