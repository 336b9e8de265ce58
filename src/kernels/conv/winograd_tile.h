// The tiles of Winograd convolutions.
#pragma once

namespace tenon::kernels {

// Side of the output tile.
enum class WinogradTile { kNone = 0, k2x2 = 2, k4x4 = 4 };

}  // namespace tenon::kernels
