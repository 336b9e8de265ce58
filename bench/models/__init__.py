"""Architectures for the benchmarks, written as PyTorch's exporter writes them, random weights."""
