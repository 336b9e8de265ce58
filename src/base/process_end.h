// Whether the process is ending: libraries that were loaded at run time may then have been
// finalized.
#pragma once

namespace tenon {

// From now on the end is noticed before any present static object is destroyed, such as those of
// the libraries that are loaded.
void WatchForProcessEnd();

// Whether the process has begun to end since. Thread-safe.
bool IsProcessEnding();

}  // namespace tenon
