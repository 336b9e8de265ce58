"""Trains a PyTorch model on Tenon with two workers of Ray Train, which wraps it for them.

Usage: on_ray.py

Ray starts on this machine, or joins a cluster that runs. Each worker prints the same loss at the
end, of the same parameters.
"""

import sys
import tempfile
from typing import Any

try:
    import ray.train
    import tenon.torch  # noqa: F401  says at once if a part is missing
    import torch
    from ray.train import torch as ray_torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
except ImportError as error:
    sys.exit(f"on_ray.py: {error}. It needs Tenon with PyTorch, and pip install 'ray[train]'")


def train() -> None:
    """What each worker does."""
    import tenon.torch  # noqa: F401, PLC0415  registers the backend in the worker

    torch.manual_seed(0)
    x = torch.randn(512, 8)
    data = TensorDataset(x, x.square().mean(1, keepdim=True))
    batches: Any = ray_torch.prepare_data_loader(DataLoader(data, batch_size=32, shuffle=True))

    model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 1))
    compiled: Any = torch.compile(model, backend="tenon")
    parallel = ray_torch.prepare_model(compiled)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=0.01)
    for epoch in range(20):
        batches.sampler.set_epoch(epoch)
        for inputs, expected in batches:
            loss = nn.functional.mse_loss(parallel(inputs), expected)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()

    with torch.inference_mode():
        loss = nn.functional.mse_loss(model(x), data.tensors[1])
    context = ray.train.get_context()
    print(f"worker {context.get_world_rank()} of {context.get_world_size()}: loss {loss:.6f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainer = ray_torch.TorchTrainer(
            train,
            scaling_config=ray.train.ScalingConfig(num_workers=2),
            run_config=ray.train.RunConfig(storage_path=folder),
        )
        trainer.fit()


if __name__ == "__main__":
    main()
