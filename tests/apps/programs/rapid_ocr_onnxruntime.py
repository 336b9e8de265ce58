"""Reads a picture with rapidocr-onnxruntime."""

import rapidocr_onnxruntime
from report import LINES, picture, save

found, _ = rapidocr_onnxruntime.RapidOCR()(picture(*LINES))
boxes, texts, scores = zip(*found, strict=True)
save(texts=texts, scores=scores, boxes=boxes)
