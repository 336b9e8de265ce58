# find_package(onnxruntime), for programs that move from ONNX Runtime: its target is Tenon. The
# package's version is that of the newest interface of ONNX Runtime in the library.
include(CMakeFindDependencyMacro)
find_dependency(tenon CONFIG PATHS ${CMAKE_CURRENT_LIST_DIR}/../tenon NO_DEFAULT_PATH)
if(NOT TARGET onnxruntime::onnxruntime)
  add_library(onnxruntime::onnxruntime ALIAS tenon::tenon)
endif()
