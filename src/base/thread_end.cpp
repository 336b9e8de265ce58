#include "base/thread_end.h"

namespace tenon {

ThreadEnd::ThreadEnd(void (*call)(void* object)) : has_key_(pthread_key_create(&key_, call) == 0) {}

bool ThreadEnd::SetObject(void* object) {
  return has_key_ && pthread_setspecific(key_, object) == 0;
}

}  // namespace tenon
