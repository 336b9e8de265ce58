// The library that dynamic_library_test.cpp loads.
extern "C" __attribute__((visibility("default"))) int TenonExampleTwice(int x) { return 2 * x; }
extern "C" __attribute__((visibility("default"))) const int kTenonExampleNumber = 42;
