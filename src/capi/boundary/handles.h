// Opaque handles that are pointers to objects of other rooms. The other handles are structs, in the
// files that make them.
#pragma once

#include <onnxruntime_c_api.h>
#include <onnxruntime_ep_c_api.h>

#include <type_traits>

#include "base/logging.h"
#include "ir/attribute.h"
#include "ir/type.h"
#include "tensor/memory_info.h"
#include "tensor/value.h"

namespace tenon::capi {

// The class of the object that a handle points to.
template <class Handle>
struct ObjectOf;
template <>
struct ObjectOf<OrtValue> {
  using Type = Value;
};
// Interned (tensor/memory_info.h), so that tensors may point to them after clients have released
// them.
template <>
struct ObjectOf<OrtMemoryInfo> {
  using Type = MemoryInfo;
};
// The same: the device of the memory.
template <>
struct ObjectOf<OrtMemoryDevice> {
  using Type = MemoryInfo;
};
// One description of a type serves all its views in the ABI.
template <>
struct ObjectOf<OrtTypeInfo> {
  using Type = ValueType;
};
template <>
struct ObjectOf<OrtTensorTypeAndShapeInfo> {
  using Type = ValueType;
};
template <>
struct ObjectOf<OrtSequenceTypeInfo> {
  using Type = ValueType;
};
template <>
struct ObjectOf<OrtOpAttr> {
  using Type = Attribute;
};
template <>
struct ObjectOf<OrtLogger> {
  using Type = Logger;
};
template <>
struct ObjectOf<OrtMapTypeInfo> {
  using Type = ValueType;
};
template <>
struct ObjectOf<OrtOptionalTypeInfo> {
  using Type = ValueType;
};

// The object that the handle points to.
template <class Handle>
auto* Unwrap(Handle* handle) {
  using Type = typename ObjectOf<std::remove_const_t<Handle>>::Type;
  using Object = std::conditional_t<std::is_const_v<Handle>, const Type, Type>;
  return reinterpret_cast<Object*>(handle);
}

// The handle of an object.
template <class Handle>
Handle* Wrap(typename ObjectOf<Handle>::Type* object) {
  return reinterpret_cast<Handle*>(object);
}
template <class Handle>
const Handle* Wrap(const typename ObjectOf<Handle>::Type* object) {
  return reinterpret_cast<const Handle*>(object);
}

// A handle of a new object, for a client to release.
template <class Handle>
Handle* NewHandle(typename ObjectOf<Handle>::Type object) {
  return Wrap<Handle>(new typename ObjectOf<Handle>::Type(std::move(object)));
}

}  // namespace tenon::capi
