# find_package(tenon): the target tenon::tenon, libtenon with its headers. The library needs the C and
# C++ runtimes alone, so there is nothing else to find.
include(${CMAKE_CURRENT_LIST_DIR}/tenon-targets.cmake)
