// FunctionRef: a callable passed by reference.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tenon {

template <class Signature>
class FunctionRef;

// Refers to a callable that it does not own: two pointers, nothing allocated. For parameters that
// are called before the callee returns; the callable must outlive every call. Functions and
// function pointers are held by value and so never dangle. Never empty.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& callable) {  // NOLINT(google-explicit-constructor)
    using Callable = std::remove_reference_t<F>;
    using Pointer = std::decay_t<F>;
    if constexpr (std::is_function_v<std::remove_pointer_t<Pointer>>) {
      target_.function = reinterpret_cast<void (*)()>(static_cast<Pointer>(callable));
      call_ = [](Target target, Args... args) -> R {
        return reinterpret_cast<Pointer>(target.function)(std::forward<Args>(args)...);
      };
    } else {
      target_.object = std::addressof(callable);
      call_ = [](Target target, Args... args) -> R {
        // The constness that the union dropped is part of Callable.
        return (*static_cast<Callable*>(const_cast<void*>(target.object)))(
            std::forward<Args>(args)...);
      };
    }
  }

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    const void* object;
    void (*function)();
  };
  Target target_;
  R (*call_)(Target, Args...);
};

}  // namespace tenon
