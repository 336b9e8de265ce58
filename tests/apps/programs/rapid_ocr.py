"""Reads a picture with rapidocr."""

import rapidocr
from report import LINES, picture, save

found = rapidocr.RapidOCR()(picture(*LINES))
save(texts=found.txts, scores=found.scores, boxes=found.boxes)
