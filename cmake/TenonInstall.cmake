# Installs the files for programs that link Tenon: headers, the library, the command, a CMake
# package and a pkg-config file, and the same under ONNX Runtime's names. docs/cpp.md explains their
# use. No file contains an absolute path, so the tree may be moved.
#
# Components: tenon; and onnxruntime, for the names that another onnxruntime in the same prefix would
# also have. The wheel is a separate component (python/CMakeLists.txt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/tenon)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
set(generated ${PROJECT_BINARY_DIR}/install)
file(RELATIVE_PATH prefix_from_pkgconfig
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
file(RELATIVE_PATH libraries_from_prefix ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH headers_from_prefix ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR}/tenon)
file(RELATIVE_PATH libraries_from_programs ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})

target_include_directories(tenon INTERFACE $<INSTALL_INTERFACE:${header_folder}>)
install(TARGETS tenon EXPORT tenon
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tenon)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${header_folder} COMPONENT tenon
        FILES_MATCHING PATTERN *.h PATTERN tenon_webnn_c_api.h EXCLUDE)  # of WebAssembly's module
install(EXPORT tenon NAMESPACE tenon:: FILE tenon-targets.cmake
        DESTINATION ${package_folder} COMPONENT tenon)
write_basic_package_version_file(${generated}/tenon-config-version.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/tenon-config.cmake
              ${generated}/tenon-config-version.cmake
        DESTINATION ${package_folder} COMPONENT tenon)
configure_file(cmake/tenon.pc.in ${generated}/tenon.pc @ONLY)
install(FILES ${generated}/tenon.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tenon)
if(TARGET tenon_cli)
  set_target_properties(tenon_cli PROPERTIES INSTALL_RPATH $ORIGIN/${libraries_from_programs})
  install(TARGETS tenon_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tenon)
endif()

# The names are links and short files in the folders of Tenon's own files. Programs that were linked
# with ONNX Runtime need libonnxruntime.so.1.
get_target_property(onnxruntime_version tenon NEWEST_RELEASE)
set(names ${generated}/onnxruntime)
file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS include/*.h include/*.inc)
list(FILTER headers EXCLUDE REGEX "^tenon_")
file(REMOVE_RECURSE ${names})
file(MAKE_DIRECTORY ${names}/include/core/session ${names}/lib)
foreach(header IN LISTS headers)
  file(CREATE_LINK ../tenon/${header} ${names}/include/${header} SYMBOLIC)
  file(CREATE_LINK ../../../tenon/${header} ${names}/include/core/session/${header} SYMBOLIC)
endforeach()
get_target_property(abi tenon SOVERSION)
file(CREATE_LINK libtenon.so.${abi} ${names}/lib/libonnxruntime.so.1 SYMBOLIC)
file(CREATE_LINK libonnxruntime.so.1 ${names}/lib/libonnxruntime.so SYMBOLIC)
install(DIRECTORY ${names}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/onnxruntime
        COMPONENT onnxruntime)
install(DIRECTORY ${names}/lib/ DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT onnxruntime)
write_basic_package_version_file(${generated}/onnxruntimeConfigVersion.cmake
                                 VERSION ${onnxruntime_version} COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/onnxruntimeConfig.cmake
              ${generated}/onnxruntimeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onnxruntime COMPONENT onnxruntime)
configure_file(cmake/libonnxruntime.pc.in ${generated}/libonnxruntime.pc @ONLY)
install(FILES ${generated}/libonnxruntime.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT onnxruntime)
