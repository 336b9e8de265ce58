// The processor's treatment of denormal floating-point numbers.
#pragma once

namespace tenon {

// Makes the calling thread treat denormal inputs as zero and flush denormal results to zero, or
// restores IEEE 754. Returns false if the processor offers no choice.
bool SetDenormalsAsZero(bool on);

}  // namespace tenon
