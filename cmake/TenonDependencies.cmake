# Libraries: the system's package where there is one, else a pinned release.
# fmt, tl::expected, protozero, FlatBuffers, Highway, stb and xxHash are used as headers alone, so
# libtenon.so needs no library at run time beyond the C and C++ ones.

include(FetchContent)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
  add_library(Threads::Threads INTERFACE IMPORTED)  # there are no functions for them
else()
  find_package(Threads REQUIRED)
endif()

# tenon_headers(<target> HEADER <file> REPOSITORY <url> TAG <tag> INCLUDE <folder in the repository>)
# The system may have the header in a folder named like the target.
function(tenon_headers target)
  cmake_parse_arguments(LIB "" "HEADER;REPOSITORY;TAG;INCLUDE" "" ${ARGN})
  string(TOUPPER "TENON_${target}_INCLUDE_DIR" variable)
  find_path(${variable} ${LIB_HEADER} PATH_SUFFIXES ${target})
  set(folder ${${variable}})
  if(NOT folder)
    # A release's tag can be cloned without its history, a commit cannot.
    string(FIND ${LIB_TAG} . dot)
    if(dot GREATER -1)
      set(shallow TRUE)
    else()
      set(shallow FALSE)
    endif()
    FetchContent_Declare(${target} GIT_REPOSITORY ${LIB_REPOSITORY} GIT_TAG ${LIB_TAG}
                         GIT_SHALLOW ${shallow})
    FetchContent_GetProperties(${target})
    if(NOT ${target}_POPULATED)
      FetchContent_Populate(${target})
    endif()
    set(folder ${${target}_SOURCE_DIR}/${LIB_INCLUDE})
  endif()
  # Other headers in its folder may be only for this machine, so a cross build gets a
  # folder with a link to this one alone.
  get_filename_component(top ${LIB_HEADER} DIRECTORY)
  if(CMAKE_CROSSCOMPILING AND top)
    set(alone ${CMAKE_BINARY_DIR}/include/${target})
    file(MAKE_DIRECTORY ${alone})
    file(CREATE_LINK ${folder}/${top} ${alone}/${top} SYMBOLIC)
    set(folder ${alone})
  endif()
  add_library(lib_${target} INTERFACE)
  target_include_directories(lib_${target} SYSTEM INTERFACE ${folder})
endfunction()

tenon_headers(fmt HEADER fmt/format-inl.h
              REPOSITORY https://github.com/fmtlib/fmt.git TAG 9.1.0 INCLUDE include)
tenon_headers(expected HEADER tl/expected.hpp
              REPOSITORY https://github.com/TartanLlama/expected.git TAG v1.0.0 INCLUDE include)
tenon_headers(protozero HEADER protozero/pbf_reader.hpp
              REPOSITORY https://github.com/mapbox/protozero.git TAG v1.7.1 INCLUDE include)
tenon_headers(flatbuffers HEADER flatbuffers/flatbuffers.h
              REPOSITORY https://github.com/google/flatbuffers.git TAG v2.0.8 INCLUDE include)
tenon_headers(highway HEADER hwy/highway.h
              REPOSITORY https://github.com/google/highway.git TAG 1.0.3 INCLUDE .)
tenon_headers(json HEADER nlohmann/json.hpp
              REPOSITORY https://github.com/nlohmann/json.git TAG v3.11.2 INCLUDE include)
tenon_headers(stb HEADER stb_image.h
              REPOSITORY https://github.com/nothings/stb.git
              TAG 8b5f1f37b5b75829fc72d38e7b5d4bcbf8a26d55 INCLUDE .)

tenon_headers(xxhash HEADER xxhash.h
              REPOSITORY https://github.com/Cyan4973/xxHash.git TAG v0.8.1 INCLUDE .)

if(TENON_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    # Debian has GoogleTest's sources too, for compilers that it has no binaries for.
    if(CMAKE_CROSSCOMPILING AND EXISTS /usr/src/googletest)
      set(FETCHCONTENT_SOURCE_DIR_GOOGLETEST /usr/src/googletest)
    endif()
    set(INSTALL_GTEST OFF)
    FetchContent_Declare(googletest GIT_REPOSITORY https://github.com/google/googletest.git
                         GIT_TAG release-1.12.1 GIT_SHALLOW TRUE)
    FetchContent_MakeAvailable(googletest)
    target_compile_options(gtest PRIVATE -w)  # we cannot fix its warnings
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm")
      target_compile_definitions(gtest PUBLIC GTEST_HAS_STREAM_REDIRECTION=0)  # no dup there
      target_compile_options(gtest PRIVATE -include ${CMAKE_SOURCE_DIR}/cmake/wasm_errno.h)
    endif()
  endif()
  include(GoogleTest)
endif()

if(TENON_BUILD_BENCHMARKS)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    FetchContent_Declare(benchmark GIT_REPOSITORY https://github.com/google/benchmark.git
                         GIT_TAG v1.7.1 GIT_SHALLOW TRUE)
    FetchContent_MakeAvailable(benchmark)
  endif()
endif()
