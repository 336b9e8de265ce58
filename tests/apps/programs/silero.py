"""Finds speech with the package silero-vad."""

import silero_vad
import torch
from report import save, sounds

sound = torch.from_numpy(sounds())
model = silero_vad.load_silero_vad(onnx=True)
spans = silero_vad.get_speech_timestamps(sound, model, threshold=0.05)
save(
    spans=[(span["start"], span["end"]) for span in spans],
    probabilities=model.audio_forward(sound, 16000).numpy(),
)
