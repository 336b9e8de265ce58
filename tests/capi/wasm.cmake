# The tests that run in WebAssembly, which has no threads, no files for traces and no 64-bit
# addresses.
tenon_test(capi_test
  SOURCES ../base/allocation_count.cpp api_table_test.cpp custom_op_test.cpp cxx_api_test.cpp
          device_test.cpp editor_test.cpp initializer_test.cpp kernel_slot_test.cpp
          memory_info_test.cpp model_builder.cpp options_test.cpp run_test.cpp session_test.cpp
          slot_test.cpp sparse_test.cpp value_test.cpp
  DEPENDS tenon lib_protozero GTest::gmock)
tenon_test(capi_internal_test SOURCES hardware_test.cpp DEPENDS tenon_capi GTest::gmock)
