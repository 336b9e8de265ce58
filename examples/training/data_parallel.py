"""Trains a PyTorch model on Tenon in several processes, each with its own part of the data.

Usage: torchrun --nproc-per-node 2 data_parallel.py       on one machine
       torchrun --nnodes 2 ... data_parallel.py           on each of two machines, see torchrun

Every process prints the same loss at the end, of the same parameters.
"""

import sys

try:
    import tenon.torch  # noqa: F401  registers the backend
    import torch
    from torch import distributed, nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
except ImportError as error:
    sys.exit(f"data_parallel.py: {error}. Tenon's part of PyTorch: pip install 'tenon[torch]'")


def main() -> None:
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(512, 8)
    data = TensorDataset(x, x.square().mean(1, keepdim=True))
    sampler: DistributedSampler[tuple[torch.Tensor, ...]] = DistributedSampler(data)

    model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 1))
    parallel = DistributedDataParallel(torch.compile(model, backend="tenon"))
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=0.01)
    for epoch in range(20):
        sampler.set_epoch(epoch)
        for inputs, expected in DataLoader(data, batch_size=32, sampler=sampler):
            loss = nn.functional.mse_loss(parallel(inputs), expected)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()

    with torch.inference_mode():
        loss = nn.functional.mse_loss(model(x), data.tensors[1])
    print(f"process {distributed.get_rank()} of {distributed.get_world_size()}: loss {loss:.6f}")
    # A group that is destroyed while its threads still finish the last step can wait forever.
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
