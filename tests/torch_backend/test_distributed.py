"""Training in several processes with DistributedDataParallel is that of PyTorch."""

import contextlib
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from tenon.training import ORTModule  # noqa: E402
from torch import distributed, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

if not distributed.is_available() or not distributed.is_gloo_available():
    pytest.skip("PyTorch is built without gloo", allow_module_level=True)

STEPS, PARTS = 4, 2


def network():
    torch.manual_seed(0)
    wide = nn.Linear(600, 600)  # of more than 1 MB, so that there are several buckets
    return nn.Sequential(nn.Linear(6, 600), nn.LayerNorm(600), nn.GELU(), wide, nn.Linear(600, 3))


def parallel(model):
    return DistributedDataParallel(model, bucket_cap_mb=1)


WAYS = {
    "compiled before": lambda model: parallel(torch.compile(model, backend="tenon")),
    "compiled after": lambda model: torch.compile(parallel(model), backend="tenon"),
    "ORTModule": lambda model: parallel(ORTModule(model)),
}


def batch(step, part, rank):
    generator = torch.Generator().manual_seed(100 * step + 10 * part + rank)
    return torch.randn(5, 6, generator=generator), torch.randint(3, (5,), generator=generator)


def train(run, model, ranks, without_sync):
    """Trains with gradients of several parts. Returns losses, gradients and parameters."""
    # Without a large epsilon, the sign of a gradient near 0, which is rounding, would be a step.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, eps=1e-5)
    results = []
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(PARTS):
            batches = [batch(step, part, rank) for rank in ranks]
            x, y = (torch.cat(each) for each in zip(*batches, strict=True))
            if part < PARTS - 1:
                with without_sync():
                    loss = F.cross_entropy(run(x), y)
                    loss.backward()
            else:
                loss = F.cross_entropy(run(x), y)
                loss.backward()
            results.append(loss.detach())
        results += [parameter.grad.clone() for parameter in model.parameters()]
        optimizer.step()
    return results, [parameter.detach().clone() for parameter in model.parameters()]


def check_equal(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=1e-5)


def work(rank, count, folder):
    """What each process does."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=count)
    eager = network()
    run = parallel(eager)
    results, parameters = train(run, eager, [rank], run.no_sync)
    copies = []
    for way in WAYS.values():
        model = network()
        run = way(model)
        actual, trained = train(run, model, [rank], run.no_sync)
        check_equal(actual, results)
        check_equal(trained, parameters)
        copies.append(trained)
    # Compared by files: a process can hang that ends soon after it has gathered tensors.
    torch.save(copies, f"{folder}/{rank}")
    distributed.destroy_process_group()


@pytest.mark.parametrize("count", [2, 4])
def test_processes(tmp_path: pathlib.Path, count):
    torch.multiprocessing.spawn(work, (count, str(tmp_path)), nprocs=count)
    first, *others = [torch.load(tmp_path / str(rank)) for rank in range(count)]
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)
    # One process that has all the batches trains the same parameters.
    model = network()
    run = torch.compile(model, backend="tenon")
    _, expected = train(run, model, range(count), contextlib.nullcontext)
    for trained in first:
        check_equal(trained, expected)
