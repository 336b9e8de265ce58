# Language level, warnings, sanitizers and the compiler cache, for every target of the project.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# A cache hit in a fresh clone needs paths relative to the source folder.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  foreach(language IN ITEMS C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        ${TENON_CCACHE})
  endforeach()
endif()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Wno-psabi)
if(TENON_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()

# x86-64-v2 is the floor of run-time dispatch: see kernels/dispatch.h.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
  # x86-64-v2 has no AES; Highway would fall back to SSSE3 and compile kernels once more.
  add_compile_definitions(HWY_DISABLE_PCLMUL_AES)
endif()

# NEON, and SVE of any width. Highway's forms of SVE for one width, and SVE2, would compile kernels
# three times more.
set(TENON_OTHER_SVE "HWY_SVE_256|HWY_SVE2|HWY_SVE2_128")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Highway compiles for NEON with the crypto extension, which no kernel uses. With it everywhere,
  # implicit constructors, which are outside of Highway's regions, can inline its functions.
  add_compile_options(-march=armv8-a+crypto)
  add_compile_definitions("HWY_DISABLED_TARGETS=(${TENON_OTHER_SVE})")
endif()

# The same bits on every machine: the compiler may not contract a * b + c on its own.
add_compile_options(-ffp-contract=off)
add_compile_options(-ffunction-sections -fdata-sections)

if(TENON_SANITIZE)
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TENON_SANITIZE})
  if(TENON_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  # GCC's thread sanitizer hides from its warnings that an empty optional is not read.
  if(TENON_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# tenon_room(<name> [SMALL] SOURCES ... [HOT ...] DEPENDS ...): one folder of src/, one static
# library. Of a SMALL room only the files under HOT, whose own loops run over elements, steps or
# nodes, are compiled for speed; the rest, which decides and calls, is compiled for size: half the
# code.
function(tenon_room name)
  cmake_parse_arguments(ROOM "SMALL" "" "SOURCES;HOT;DEPENDS" ${ARGN})
  add_library(tenon_${name} STATIC ${ROOM_SOURCES} ${ROOM_HOT})
  if(ROOM_SMALL AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    set_source_files_properties(${ROOM_SOURCES} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  endif()
  target_include_directories(tenon_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(tenon_${name} PUBLIC ${ROOM_DEPENDS})
endfunction()

# Relative relocations in 8 instead of 480 KB of libtenon, where linker and loader know them (the
# GNU C library since 2.36).
if(NOT CMAKE_CROSSCOMPILING)
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs -pie)
  check_cxx_source_runs("int x; int* volatile p = &x; int main() { return *p; }"
                        TENON_PACKS_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()

# tenon_test(<name> SOURCES ... DEPENDS ...): one GoogleTest program, each test known to ctest.
function(tenon_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${TEST_DEPENDS} GTest::gtest_main)
  # GCC's instrumentation hides which alternative a variant holds, so destroying a temporary one
  # "may" read another. Rooms, and tests without sanitizers, keep the warning.
  if(TENON_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -Wno-maybe-uninitialized)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
endfunction()
