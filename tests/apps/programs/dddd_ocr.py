"""Reads and finds words with ddddocr: its two models that read, and the one that finds."""

import ddddocr
from report import picture, png, save

word = png(picture("K7xQ2", size=36))
save(
    read=ddddocr.DdddOcr(show_ad=False).classification(word),
    read_by_old_model=ddddocr.DdddOcr(old=True, show_ad=False).classification(word),
    found=ddddocr.DdddOcr(det=True, ocr=False, show_ad=False).detection(png(picture("Find me"))),
)
