"""Finds speech with Silero's network, as faster-whisper does before it transcribes."""

from faster_whisper import vad
from report import save, sounds

sound = sounds()[: 512 * 90]
spans = vad.get_speech_timestamps(sound, vad.VadOptions(threshold=0.3))
save(
    probabilities=vad.get_vad_model()(sound),
    spans=[(span["start"], span["end"]) for span in spans],
)
