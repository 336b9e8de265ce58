/* The packaged C library for WebAssembly has one errno for all threads, but declares one for each.
   Included before everything else in files that use it. */
#define __wasilibc___errno_h
#ifdef __cplusplus
extern "C" int errno;
#else
extern int errno;
#endif
#define errno errno
