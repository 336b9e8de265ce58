"""The inputs of the models: speech, singing, and seeded random numbers."""

import functools
import pathlib
import wave

import numpy as np

Feeds = dict[str, np.ndarray]


@functools.cache
def read_wav(path: pathlib.Path) -> np.ndarray:
    """Samples of a mono 16-bit file in [-1, 1)."""
    with wave.open(str(path)) as file:
        content = file.readframes(file.getnframes())
    return np.frombuffer(content, "<i2").astype(np.float32) / 32768


def speech(models: pathlib.Path) -> np.ndarray:
    """A minute of speech at 16 kHz."""
    return read_wav(models / "samples/silero_test_speech.wav")


def singing(models: pathlib.Path) -> np.ndarray:
    """Nine seconds of singing, halved to 22.05 kHz by averaging pairs."""
    samples = read_wav(models / "samples/vocadito_10.wav")
    return samples[: samples.size // 2 * 2].reshape(-1, 2).mean(axis=1, dtype=np.float32)


def windows(samples: np.ndarray, size: int, count: int) -> np.ndarray:
    """`count` windows [count, size], spread over the samples."""
    starts = np.linspace(0, samples.size - size, count).astype(int)
    return np.stack([samples[start : start + size] for start in starts])


def mel_filters(bands: int, bins: int, rate: int) -> np.ndarray:
    """Triangles on the mel scale, [bins, bands]."""
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, bands + 2) / 2595) - 1)
    frequencies = np.linspace(0, rate / 2, bins)[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rising, falling))


def log_mel(samples: np.ndarray, frames: int) -> np.ndarray:
    """[frames, 120]: decibels of the mel spectrum below its peak, as (x + 40) / 40."""
    size, hop = 321, 160
    starts = hop * np.arange(frames)[:, None] + np.arange(size)
    power = np.abs(np.fft.rfft(samples[starts] * np.hanning(size))) ** 2
    mel = power @ mel_filters(120, power.shape[1], 16000)
    decibels = 10 * np.log10(np.maximum(mel, 1e-10) / mel.max())
    return ((np.maximum(decibels, -80) + 40) / 40).astype(np.float32)
