// What Highway's own checks call when they fail, in debug and sanitizer builds; its library, which
// would have it, is not linked. Release builds check nothing: a kernel that would fails to link.
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
