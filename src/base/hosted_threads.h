// Threads that the host starts, as the JavaScript around a WebAssembly module does. All ThreadPools
// share them.
#pragma once

#include <cstdint>

namespace tenon {

// How many workers the host starts. Pools that are made later use them. A loop waits for no worker
// that has not come yet.
void ExpectHostedWorkers(uint32_t count);

// Called by worker `index`, counted from 0: works on loops until StopHostedWorkers.
void RunHostedWorker(uint32_t index);

void StopHostedWorkers();

// Whether the calling thread is such a worker.
bool IsHostedWorker();

}  // namespace tenon
