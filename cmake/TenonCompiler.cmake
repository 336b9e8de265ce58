# Language level, warnings, sanitizers and the compiler cache, for every target of the project.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# A WebAssembly module is linked at once, and each address in position-independent code is a sum there.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# A cache hit in a fresh clone needs paths relative to the source folder. What a file depends on comes
# from the compiler, which saves a run of the preprocessor for each file that is new to the cache.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  foreach(language IN ITEMS C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_DEPEND=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        ${TENON_CCACHE})
  endforeach()
endif()

# Headers that most files of a part include are compiled once for it: a third of the time goes. They
# are such as seldom change. Every file includes what it needs all the same: builds with Clang, as
# for WebAssembly, do without.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # for the compiler cache
else()
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
set(TENON_COMMON_HEADERS
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
    <optional> <span> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>
    [["base/status.h"]] [["tensor/value.h"]])

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

# NEON, and SVE of any width. Highway's targets for SVE2 and for SVE of one width would compile
# kernels three more times.
set(TENON_OTHER_SVE "HWY_SVE_256|HWY_SVE2|HWY_SVE2_128")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Highway compiles for NEON with the crypto extension, which no kernel uses. With the extension
  # enabled everywhere, implicit constructors, which are outside of Highway's regions, can inline
  # its functions.
  add_compile_options(-march=armv8-a+crypto)
  add_compile_definitions("HWY_DISABLED_TARGETS=(${TENON_OTHER_SVE})")
endif()

# tenon_uses_errno(<file>...): for WebAssembly, compiles files of this folder that read errno with
# wasm_errno.h.
function(tenon_uses_errno)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS
                 -include ${CMAKE_SOURCE_DIR}/cmake/wasm_errno.h)
  endif()
endfunction()

# For the same bits on every machine, the compiler may not contract a * b + c by itself.
add_compile_options(-ffp-contract=off)
add_compile_options(-ffunction-sections -fdata-sections)

if(TENON_DCHECKS)
  add_compile_definitions(TENON_DCHECKS _GLIBCXX_ASSERTIONS)
endif()

if(TENON_SANITIZE)
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TENON_SANITIZE})
  if(TENON_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  # With the thread sanitizer, GCC warns of reading an empty optional where none is read.
  if(TENON_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# tenon_small(<target>): compiled for size, which halves its code and takes a quarter less time. Pages
# load a WebAssembly module, whose code is smaller still with -Oz.
function(tenon_small target)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    set(size_option -Os)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
      set(size_option -Oz)
    endif()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${size_option}>)
  endif()
endfunction()

# tenon_room(<name> [SMALL] SOURCES ... [HOT ...] [FOLDERS ...] [HOT_FOLDERS ...] [PRECOMPILE ...]
# DEPENDS ...): one folder of src/, one static library. In a SMALL room only the files under HOT, which have loops
# over elements, steps or nodes, are compiled for speed. The others are compiled for size, which
# halves their code. Each of FOLDERS and HOT_FOLDERS lists its files with tenon_folder; those of
# HOT_FOLDERS may have files under HOT. PRECOMPILE: headers, or the one room whose precompiled
# headers it shares.
function(tenon_room name)
  cmake_parse_arguments(ROOM "SMALL" "" "SOURCES;HOT;FOLDERS;HOT_FOLDERS;PRECOMPILE;DEPENDS" ${ARGN})
  set(parts tenon_${name})
  add_library(tenon_${name} STATIC ${ROOM_SOURCES})
  if(ROOM_SMALL)
    tenon_small(tenon_${name})
  endif()
  if(ROOM_HOT OR ROOM_HOT_FOLDERS)
    list(APPEND parts tenon_${name}_hot)
    add_library(tenon_${name}_hot OBJECT ${ROOM_HOT})
    target_sources(tenon_${name} PRIVATE $<TARGET_OBJECTS:tenon_${name}_hot>)
  endif()
  foreach(part IN LISTS parts)
    target_include_directories(${part} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${part} PUBLIC ${ROOM_DEPENDS})
    string(REPLACE "tenon_${name}" "tenon_${ROOM_PRECOMPILE}" other "${part}")
    if(TARGET "${other}")
      target_precompile_headers(${part} REUSE_FROM ${other})
    elseif(ROOM_PRECOMPILE)
      target_precompile_headers(${part} PRIVATE ${ROOM_PRECOMPILE})
    endif()
  endforeach()
  foreach(folder IN LISTS ROOM_FOLDERS ROOM_HOT_FOLDERS)
    add_subdirectory(${folder})
  endforeach()
endfunction()

# tenon_folder(<room> [SOURCES ...] [HOT ...]): the files of one folder of a room.
function(tenon_folder room)
  cmake_parse_arguments(FOLDER "" "" "SOURCES;HOT" ${ARGN})
  target_sources(tenon_${room} PRIVATE ${FOLDER_SOURCES})
  if(FOLDER_HOT)
    target_sources(tenon_${room}_hot PRIVATE ${FOLDER_HOT})
  endif()
endfunction()

# tenon_small_loops(<room> <file>...): files whose loops have a copy for every pair of types. For
# them -O2 has the same speed with half the code. GCC must be told that vectors are worthwhile for
# loops of unknown length, and that comparisons of floats do not trap, so that a choice is no branch.
# In web pages, where -Os takes 150 KB less, only a few of them (bits, one-hot) are slower for it.
function(tenon_small_loops room)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    set(level -O2)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
      set(level -Os)
    endif()
    set(options ${level} $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>
                $<$<CXX_COMPILER_ID:GNU>:-fno-trapping-math>)
    set_source_files_properties(${ARGN} TARGET_DIRECTORY tenon_${room}_hot PROPERTIES
                                COMPILE_OPTIONS "$<$<CONFIG:Release>:${options}>")
  endif()
endfunction()

# Relative relocations take 8 instead of 480 KB of libtenon, if the linker and the loader support
# them (the GNU C library since 2.36).
if(NOT CMAKE_CROSSCOMPILING)
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs -pie)
  check_cxx_source_runs("int x; int* volatile p = &x; int main() { return *p; }"
                        TENON_PACKS_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()

# Tests are compiled for less speed than the code that they test: that takes a third less time.
function(tenon_test_options target)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:$<IF:$<CXX_COMPILER_ID:GNU>,-Og,-O1>>)
  endif()
  # With GCC's instrumentation, destroying a temporary variant "may" read another alternative.
  # Rooms, and tests without sanitizers, keep the warning.
  if(TENON_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
endfunction()

# tenon_unity(<result> <count> <file>...): sources that include up to <count> of the files each, which
# takes about half of the time. Unlike UNITY_BUILD's they have relative paths, so that ccache knows
# them in every clone.
function(tenon_unity result count)
  set(units)
  set(rest ${ARGN})
  while(rest)
    list(SUBLIST rest 0 ${count} batch)
    list(REMOVE_ITEM rest ${batch})
    list(LENGTH units number)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity_${result}_${number}.cpp)
    set(text)
    foreach(file IN LISTS batch)
      file(RELATIVE_PATH path ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    list(APPEND units ${unit})
  endwhile()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

# tenon_test(<name> [CLIENT] SOURCES ... [UNITY ...] DEPENDS ...): one GoogleTest program, each test
# known to ctest. A CLIENT includes nothing of src/; four files under UNITY are compiled as one.
function(tenon_test name)
  cmake_parse_arguments(TEST "CLIENT" "" "SOURCES;UNITY;DEPENDS" ${ARGN})
  tenon_unity(${name}_units 4 ${TEST_UNITY})
  add_executable(${name} ${TEST_SOURCES} ${${name}_units})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${TEST_DEPENDS} GTest::gtest_main)
  tenon_test_options(${name})
  if(TEST_CLIENT)
    target_precompile_headers(${name} REUSE_FROM tenon_client_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM tenon_test_headers)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
endfunction()
