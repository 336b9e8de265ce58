"""Tools for models, in the modules where onnxruntime has them."""
