// OrtAllocator and tenon::Allocator, each as the other.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "tensor/allocator.h"

namespace tenon::capi {

// What allocates through a client's allocator, which must outlive it. An allocator that this
// library made gives what is behind it.
std::shared_ptr<Allocator> FromClient(OrtAllocator* allocator);

// The same with blocks that are aligned as Allocator promises, whatever the client's are; blocks of
// the one are not those of the other.
std::shared_ptr<Allocator> AlignedFromClient(OrtAllocator* allocator);

// A new allocator for a client, released with ReleaseAllocator.
OrtAllocator* NewClientAllocator(std::shared_ptr<Allocator> allocator);

// `bytes` bytes from a client's allocator. Error: kFail if it has none.
Result<void*> AllocateFrom(OrtAllocator* allocator, size_t bytes);

// A null-terminated copy in memory of `allocator`.
Result<char*> CopyString(OrtAllocator* allocator, std::string_view text);

// An array of such copies, each and the array itself to be freed through `allocator`; null for
// none.
Result<char**> CopyStrings(OrtAllocator* allocator, std::span<const std::string_view> texts);

}  // namespace tenon::capi
