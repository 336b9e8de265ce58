"""Modules at the places where onnxruntime's users look for them."""
