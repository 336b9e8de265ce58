"""Tools for models, at the places where onnxruntime has them."""
