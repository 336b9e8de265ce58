// Runs that return at the partitions of WebNN.
#pragma once

#include "session.h"

namespace tenon::web {

// Releases everything of such a run, wherever it stands; does nothing for other sessions.
void EndBarrierRun(Session& session);

}  // namespace tenon::web
