#include "ir/make_attributes.h"

#include "ir/graph.h"

namespace tenon {

template <class T>
Attribute Attr(std::string name, T value) {
  return Attribute(std::move(name), std::move(value));
}

template Attribute Attr(std::string, float);
template Attribute Attr(std::string, int64_t);
template Attribute Attr(std::string, std::string);
template Attribute Attr(std::string, Tensor);
template Attribute Attr(std::string, std::unique_ptr<Graph>);
template Attribute Attr(std::string, std::vector<float>);
template Attribute Attr(std::string, std::vector<int64_t>);
template Attribute Attr(std::string, std::vector<std::string>);
template Attribute Attr(std::string, std::vector<Tensor>);
template Attribute Attr(std::string, ValueType);
template Attribute Attr(std::string, std::shared_ptr<SparseTensor>);

}  // namespace tenon
