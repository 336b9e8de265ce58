// Slots of runs and values.
#pragma once

#include <string>
#include <vector>

#include "session.h"

namespace tenon::web {

// A value over the memory of a slot; one of strings has a copy.
OrtStatus* ValueOver(const Session& session, const Slot& slot, Owned<OrtValue>& out);

// Describes a value that a run made as output `name`; `packed` holds what strings become.
OrtStatus* ShowValue(OrtValue* value, const std::string& name, std::vector<char>& packed,
                     Slot& slot);

}  // namespace tenon::web
