# Checks what libtenon.so exports and needs:
#   cmake -DLIBRARY=... -DREADELF=... -DOLDER_RELEASES=1.17.0,... -DNEWEST_RELEASE=... -DSOURCES=...
#     -P <this>
# Every symbol of the C ABI has the version of every release, those to come included. Only the C and C++ runtimes are
# needed.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" OLDER_RELEASES "${OLDER_RELEASES}")
foreach(release IN ITEMS 1.15.0 1.16.3 1.22.1 1.28.2 1.30.1)
  if(NOT release IN_LIST OLDER_RELEASES)
    message(FATAL_ERROR "release ${release} is not served")
  endif()
endforeach()
function(expect_equal what got expected)
  list(SORT got)
  list(SORT expected)
  if(NOT got STREQUAL expected)
    message(FATAL_ERROR "${what}:\n  got ${got}\n  expected ${expected}")
  endif()
endfunction()

set(expected TenonGetApi@@TENON_1)
foreach(name IN ITEMS OrtGetApiBase OrtSessionOptionsAppendExecutionProvider_CPU
        OrtSessionOptionsAppendExecutionProvider_CUDA OrtSessionOptionsAppendExecutionProvider_Dnnl
        OrtSessionOptionsAppendExecutionProvider_MIGraphX
        OrtSessionOptionsAppendExecutionProvider_ROCM
        OrtSessionOptionsAppendExecutionProvider_Tensorrt)
  list(APPEND expected ${name}@@VERS_${NEWEST_RELEASE})
  foreach(release IN LISTS OLDER_RELEASES)
    list(APPEND expected ${name}@VERS_${release})
  endforeach()
endforeach()
execute_process(COMMAND ${READELF} --dyn-syms --wide ${LIBRARY}
                OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "FUNC +(GLOBAL|WEAK) +DEFAULT +[0-9]+ +[^ \n]+" exports "${symbols}")
list(TRANSFORM exports REPLACE ".* " "")
expect_equal("exported functions" "${exports}" "${expected}")
string(REGEX MATCHALL "OBJECT +(GLOBAL|WEAK|UNIQUE) +DEFAULT +[0-9]+ +[^ \n]+" objects "${symbols}")
list(FILTER objects EXCLUDE REGEX "(VERS_[0-9.]+|TENON_1)$")
expect_equal("exported objects" "${objects}" "")

execute_process(COMMAND ${READELF} --dynamic --wide ${LIBRARY}
                OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]+" needed "${dynamic}")
list(TRANSFORM needed REPLACE ".*\\[" "")
list(FILTER needed EXCLUDE REGEX "^(libstdc\\+\\+|libm|libgcc_s|libc|ld-linux[^.]*)\\.so")
expect_equal("needed libraries" "${needed}" "")
if(NOT dynamic MATCHES "BIND_NOW")  # S-17
  message(FATAL_ERROR "the addresses of functions can be overwritten: expected -z now")
endif()

# ERR-4: nothing tells of the machine that built it.
file(STRINGS ${LIBRARY} texts REGEX "${SOURCES}/")
expect_equal("texts with the folder of the sources" "${texts}" "")
