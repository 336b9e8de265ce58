// Conversions between slots of runs and values.
#pragma once

#include <string>
#include <vector>

#include "session.h"

namespace tenon::web {

// A value over the memory of a slot; a string value has a copy.
OrtStatus* ValueOver(const Session& session, const Slot& slot, Owned<OrtValue>& out);

// Fills the slot of output `name` from a value of a run; `packed` holds packed strings.
OrtStatus* ShowValue(OrtValue* value, const std::string& name, std::vector<char>& packed,
                     Slot& slot);

}  // namespace tenon::web
