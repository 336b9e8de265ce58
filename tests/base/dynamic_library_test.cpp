#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"

namespace tenon {
namespace {

// Built beside this program.
std::string ExampleLibrary() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libbase_example.so";
}

TEST(DynamicLibraryTest, FindsFunctionsAndData) {
  const auto library = DynamicLibrary::Load(ExampleLibrary());
  ASSERT_TRUE(library.has_value()) << library.error().message();
  EXPECT_EQ(library->path(), ExampleLibrary());
  EXPECT_EQ(library->Function<int(int)>("TenonExampleTwice").value()(21), 42);
  EXPECT_EQ(*static_cast<const int*>(library->Symbol("kTenonExampleNumber").value()), 42);
}

TEST(DynamicLibraryTest, MissingSymbolsAreNamed) {
  const DynamicLibrary library = DynamicLibrary::Load(ExampleLibrary()).value();
  const auto symbol = library.Symbol("Nothing");
  ASSERT_FALSE(symbol.has_value());
  EXPECT_EQ(symbol.error().code(), StatusCode::kNotFound);
  EXPECT_TRUE(symbol.error().message().starts_with("library '" + ExampleLibrary() +
                                                   "' has no symbol 'Nothing': "))
      << symbol.error().message();
}

TEST(DynamicLibraryTest, WhatCannotBeLoadedIsNamed) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder / "none.so", folder.Write("text.so", "not a library")}) {
    const auto library = DynamicLibrary::Load(path);
    ASSERT_FALSE(library.has_value());
    EXPECT_EQ(library.error().code(), StatusCode::kFail);
    EXPECT_TRUE(library.error().message().starts_with("cannot load library '" + path + "': "))
        << library.error().message();
  }
  EXPECT_EQ(DynamicLibrary::Load("").error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DynamicLibrary::Load(std::string("a\0b", 3)).error().code(),
            StatusCode::kInvalidArgument);
}

bool IsLoaded(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle) dlclose(handle);
  return handle != nullptr;
}

TEST(DynamicLibraryTest, IsUnloadedByItsLastOwner) {
  const std::string path = ExampleLibrary();
  void* released = nullptr;
  {
    DynamicLibrary library = DynamicLibrary::Load(path).value();
    const DynamicLibrary owner = std::move(library);
    EXPECT_TRUE(IsLoaded(path));
    released = DynamicLibrary::Load(path).value().Release();
  }
  EXPECT_TRUE(IsLoaded(path)) << "released handles are the caller's";
  dlclose(released);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_FALSE(IsLoaded(path));
#endif
}

}  // namespace
}  // namespace tenon
