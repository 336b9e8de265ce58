// Whether the process is ending: code that was loaded at run time may be past its own end then.
#pragma once

namespace tenon {

// From now on the end is noticed before any static object is destroyed that exists now, such as
// those of libraries that are loaded by now.
void WatchForProcessEnd();

// Whether the process has begun to end since. Thread-safe.
bool IsProcessEnding();

}  // namespace tenon
