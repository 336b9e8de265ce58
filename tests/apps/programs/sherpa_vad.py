"""Finds speech with sherpa-onnx.

Usage: sherpa_vad.py RESULTS MODEL
"""

import sys

import sherpa_onnx
from report import save, sounds

config = sherpa_onnx.VadModelConfig()
config.silero_vad.model = sys.argv[2]
config.silero_vad.threshold = 0.05
config.sample_rate = 16000
detector = sherpa_onnx.VoiceActivityDetector(config, buffer_size_in_seconds=30)
sound = sounds()
window = config.silero_vad.window_size
is_speech = []
for start in range(0, len(sound) - window, window):
    detector.accept_waveform(sound[start : start + window])
    is_speech.append(detector.is_speech_detected())
detector.flush()
spans = []
while not detector.empty():
    spans.append((detector.front.start, len(detector.front.samples)))
    detector.pop()
save(is_speech=is_speech, spans=spans)
