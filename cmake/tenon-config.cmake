# find_package(tenon): the target tenon::tenon, which is libtenon with its headers. The library only
# needs the C and C++ runtimes, so there are no other packages to find.
include(${CMAKE_CURRENT_LIST_DIR}/tenon-targets.cmake)
