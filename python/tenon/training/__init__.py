"""Training on the device, with the names of ``onnxruntime.training``.

``tenon.training.api`` trains models from artifacts: a training model, an evaluation model, an
optimizer model and a checkpoint.
"""
