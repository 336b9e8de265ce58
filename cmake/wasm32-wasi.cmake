# Cross build for WebAssembly with 128-bit SIMD, threads and exceptions, with Debian's Clang and C
# and C++ libraries; tests run in Node.js. See docs/building.md.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_AR llvm-ar-19)
set(CMAKE_RANLIB llvm-ranlib-19)
# Emulation: mapped files are copies, signals are never sent, and the process id is 42.
set(emulated -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID)
list(JOIN emulated " " emulated)
set(features "-msimd128 -mbulk-memory -matomics -mmutable-globals -ftls-model=local-exec")
set(CMAKE_C_FLAGS_INIT "${features} ${emulated}")
set(CMAKE_CXX_FLAGS_INIT "${features} -fwasm-exceptions ${emulated}")
# The packaged C and C++ libraries have neither atomics nor exceptions, so features differ between
# objects. The stack comes first in memory: if it overflows, the program traps. -O0 keeps the
# compiler from running wasm-opt, which may be too old for our instructions.
string(CONCAT CMAKE_EXE_LINKER_FLAGS_INIT
  "-Wl,--shared-memory -Wl,--import-memory -Wl,--export-memory "
  "-Wl,--initial-memory=67108864 -Wl,--max-memory=4294967296 "
  "-O0 -Wl,-O2 -Wl,--no-check-features -Wl,--stack-first -Wl,-z,stack-size=1048576 "
  "-lwasi-emulated-mman -lwasi-emulated-signal -lwasi-emulated-getpid")
# Node.js 20 crashes at the end of a program if it is still compiling its loops on another thread.
set(CMAKE_CROSSCOMPILING_EMULATOR node --single-threaded --no-warnings
    ${CMAKE_CURRENT_LIST_DIR}/run_wasi.mjs)

# Programs and header-only libraries come from the build machine.
set(CMAKE_FIND_ROOT_PATH /usr/lib/wasm32-wasi)
set(CMAKE_INCLUDE_PATH /usr/include)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
