# What a shared library exports and needs: cmake -DLIBRARY=... -DREADELF=... -P check_library.cmake
# Every symbol of the C ABI stands under every version of a release from 1.17 to 1.30; beyond the C
# and C++ runtimes nothing is needed.
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
  list(APPEND expected ${name}@@VERS_1.30.0)
  foreach(minor RANGE 17 29)
    list(APPEND expected ${name}@VERS_1.${minor}.0)
  endforeach()
endforeach()
execute_process(COMMAND ${READELF} --dyn-syms --wide ${LIBRARY}
                OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "FUNC +(GLOBAL|WEAK) +DEFAULT +[0-9]+ +[^ \n]+" exports "${symbols}")
list(TRANSFORM exports REPLACE ".* " "")
expect_equal("exported functions" "${exports}" "${expected}")
string(REGEX MATCHALL "OBJECT +(GLOBAL|WEAK|UNIQUE) +DEFAULT +[0-9]+ +[^ \n]+" objects "${symbols}")
list(FILTER objects EXCLUDE REGEX "(VERS_1.[0-9]+.0|TENON_1)$")
expect_equal("exported objects" "${objects}" "")

execute_process(COMMAND ${READELF} --dynamic --wide ${LIBRARY}
                OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]+" needed "${dynamic}")
list(TRANSFORM needed REPLACE ".*\\[" "")
list(FILTER needed EXCLUDE REGEX "^(libstdc\\+\\+|libm|libgcc_s|libc|ld-linux[^.]*)\\.so")
expect_equal("needed libraries" "${needed}" "")
