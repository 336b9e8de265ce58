// The function that Highway's own checks call when they fail, in debug and sanitizer builds.
// Highway's library, which has it, is not linked. Release builds check nothing: a kernel that did
// would fail to link.
#include <hwy/base.h>

#if HWY_IS_DEBUG_BUILD
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {

void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy
#endif
