"""tenon train: it is the loop that a program would write, and it stops and resumes exactly."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

artifacts = pytest.importorskip("tenon.training.artifacts")
api = pytest.importorskip("tenon.training.api")

FLOAT = np.float32
SAMPLES = 50


def network(batch: str | int = "n", dropout: bool = False) -> onnx.ModelProto:
    """scores = relu(x w1 + b1) w2"""
    rng = np.random.default_rng(1)
    values = {
        name: (rng.standard_normal(shape) / 2).astype(FLOAT)
        for name, shape in {"w1": (4, 8), "b1": (8,), "w2": (8, 3)}.items()
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
    ]
    if dropout:
        values |= {"ratio": np.array(0.5, FLOAT), "training": np.array(True)}
        nodes.append(helper.make_node("Dropout", ["active", "ratio", "training"], ["kept"]))
    nodes.append(helper.make_node("MatMul", ["kept" if dropout else "active", "w2"], ["scores"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 3])
    constants = [numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = helper.make_graph(nodes, "network", [x], [scores], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_artifacts(folder, model, optimizer="AdamW", **options):
    artifacts.generate_artifacts(
        model,
        requires_grad=["w1", "b1", "w2"],
        loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=artifacts.OptimType[optimizer] if optimizer else None,
        artifact_directory=folder,
        **options,
    )


def draw(samples: int, seed: int = 0) -> dict[str, np.ndarray]:
    x = np.random.default_rng(seed).standard_normal((samples, 4)).astype(FLOAT)
    return {
        "x": x,
        "labels": (x @ np.array([[1, 0, 2], [0, 1, 1], [2, 1, 0], [1, 1, 1]])).argmax(1),
    }


@pytest.fixture
def folder(tmp_path):
    """With artifacts in `art` and samples in train.npz and test.npz."""
    write_artifacts(tmp_path / "art", network())
    np.savez(tmp_path / "train.npz", **draw(SAMPLES))
    np.savez(tmp_path / "test.npz", **draw(21, seed=1))
    return tmp_path


def parameters_of(path) -> dict[str, np.ndarray]:
    return {name: p.data for name, p in api.CheckpointState.load_checkpoint(path).parameters}


def properties_of(path) -> dict[str, object]:
    return dict(api.CheckpointState.load_checkpoint(path).properties)


# --- Training ---


def test_the_loss_falls_and_is_reported(tenon, folder):
    report = tenon.json(
        *"train art --data train.npz --validation test.npz --epochs 30".split(),
        *"--batch-size 8 --learning-rate 0.02".split(),
    )
    assert (report["samples"], report["batch_size"], report["steps_per_epoch"]) == (50, 8, 7)
    assert (report["interrupted"], report["epoch"], report["step"]) == (False, 30, 210)
    assert (report["checkpoint"], report["exported"]) == ("trained_checkpoint", None)
    epochs = report["epochs"]
    assert [(one["epoch"], one["step"]) for one in epochs] == [(i, 7 * i) for i in range(1, 31)]
    assert epochs[-1]["loss"] < 0.3 * epochs[0]["loss"]
    assert epochs[-1]["validation_loss"] < 0.5 * epochs[0]["validation_loss"]
    assert all(one["samples_per_second"] > 0 and one["seconds"] > 0 for one in epochs)
    assert epochs[0]["learning_rate"] == pytest.approx(0.02)

    lines = tenon.ok("train", "art", "--data", "train.npz", "--epochs", 2).splitlines()
    assert re.fullmatch(r"epoch 1/2: loss [0-9.]+, \d+ samples/s", lines[0])
    assert lines[2] == "saved trained_checkpoint"


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
@pytest.mark.parametrize("schedule", ["constant", "linear"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_it_is_the_loop_of_a_program(tenon, folder, optimizer, schedule, accumulate):
    write_artifacts(folder / "art", network(), optimizer)
    epochs, size, rate = 3, 8, 0.01
    report = tenon.json(
        *f"train art --data train.npz --validation test.npz --epochs {epochs}".split(),
        *f"--batch-size {size} --accumulate {accumulate} --no-shuffle".split(),
        *f"--schedule {schedule} --learning-rate {rate} --checkpoint out".split(),
        *("--warmup 4".split() if schedule == "linear" else []),
    )

    state = api.CheckpointState.load_checkpoint(folder / "art" / "checkpoint")
    models = [folder / "art" / f"{name}_model.onnx" for name in ("training", "eval", "optimizer")]
    module = api.Module(models[0], state, models[1])
    trainer = api.Optimizer(models[2], module)
    steps = -(-7 // accumulate)  # 7 batches, of which the last has 2 samples
    if schedule == "linear":
        scheduler = api.LinearLRScheduler(trainer, 4, epochs * steps, rate)
    else:
        trainer.set_learning_rate(rate)
    data, test = draw(SAMPLES), draw(21, seed=1)

    def batches(columns):
        for first in range(0, len(columns["x"]), size):
            yield [column[first : first + size] for column in columns.values()]

    for epoch in range(epochs):
        losses = []
        module.train()
        for i, batch in enumerate(batches(data)):
            losses.append(float(module(*batch)) * len(batch[0]))
            if (i + 1) % accumulate == 0 or i == 6:
                trainer.step()
                module.lazy_reset_grad()
                if schedule == "linear":
                    scheduler.step()
        module.eval()
        validation = [float(module(*batch)) * len(batch[0]) for batch in batches(test)]
        got = report["epochs"][epoch]
        assert got["loss"] == pytest.approx(sum(losses) / SAMPLES, rel=1e-12)
        assert got["validation_loss"] == pytest.approx(sum(validation) / 21, rel=1e-12)
        assert got["step"] == (epoch + 1) * steps
        assert got["learning_rate"] == trainer.get_learning_rate()

    # The same bits, the optimizer's state included.
    for name, value in properties_of(folder / "out").items():
        state.properties[name] = value
    api.CheckpointState.save_checkpoint(state, folder / "loop", include_optimizer_state=True)
    assert (folder / "out").read_bytes() == (folder / "loop").read_bytes()


def write_scalar(folder, nodes) -> None:
    """Artifacts of a model that makes `loss` of samples `x` and one weight `w`, with SGD."""
    x, loss = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in {"x": ["n"], "loss": []}.items()
    )
    nodes = [*nodes, helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)]
    weight = numpy_helper.from_array(np.array([0], FLOAT), "w")
    graph = helper.make_graph(nodes, "scalar", [x], [loss], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    artifacts.generate_artifacts(
        model, ["w"], optimizer=artifacts.OptimType.SGD, artifact_directory=folder
    )


def test_each_epoch_has_every_sample_once(tenon, folder):
    # The gradient of x w is x: w has the sum of all samples, each another bit of it.
    write_scalar(folder / "sum", [helper.make_node("Mul", ["x", "w"], ["y"])])
    np.save(folder / "x.npy", 2.0 ** np.arange(12, dtype=FLOAT))
    tenon.ok(*"train sum --data x.npy --batch-size 5 --learning-rate 1 --epochs 3".split())
    assert parameters_of(folder / "trained_checkpoint")["w"] == [-3 * 4095]


def test_each_epoch_has_another_order(tenon, folder):
    # With (w - x)^2 and a rate of 1/2 a step sets w to the sample, so the loss tells the next one.
    nodes = [
        helper.make_node("Sub", ["w", "x"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["y"]),
    ]
    write_scalar(folder / "last", nodes)
    x = np.arange(40, dtype=FLOAT)
    np.save(folder / "x.npy", x)
    command = "train last --data x.npy --batch-size 1 --learning-rate 0.5 --epochs 4".split()

    def losses(*options):
        return [one["loss"] for one in tenon.json(*command, *options)["epochs"]]

    first = losses()
    assert len(set(first)) == 4
    assert losses() == first
    assert len({*losses("--seed", 1), *first}) == 8
    in_order = losses("--no-shuffle")
    assert in_order == [39 / 40] + 3 * [(39 + 39**2) / 40]
    assert parameters_of(folder / "trained_checkpoint")["w"] == [39]


def test_batches_of_a_fixed_size(tenon, folder):
    write_artifacts(folder / "fixed", network(batch=10))
    report = tenon.json("train", "fixed", "--data", "train.npz")
    assert (report["batch_size"], report["steps_per_epoch"]) == (10, 5)
    result = tenon("train", "fixed", "--data", "train.npz", "--batch-size", 8)
    assert result.returncode == 2
    assert "takes 10 samples at a time, got 8" in result.stderr
    np.savez(folder / "odd.npz", **draw(13))
    result = tenon("train", "fixed", "--data", "odd.npz")
    assert result.returncode == 1
    assert "takes 10 samples at a time, and 13 samples are no multiple" in result.stderr


def test_artifacts_and_samples_may_lie_anywhere(tenon, folder):
    expected = tenon.json("train", "art", "--data", "train.npz")["epochs"][0]["loss"]
    write_artifacts(folder / "parts", network(), prefix="net_")
    data = draw(SAMPLES)
    np.save(folder / "a.npy", data["x"])
    np.savez_compressed(folder / "b.npz", labels=data["labels"])
    report = tenon.json(
        *"train --training-model parts/net_training_model.onnx".split(),
        *"--optimizer-model parts/net_optimizer_model.onnx --start parts/net_checkpoint".split(),
        *"--data x=a.npy --data labels=b.npz --checkpoint parts/out --threads 1".split(),
    )
    assert report["epochs"][0]["loss"] == expected
    assert (folder / "parts" / "out").exists()


def test_a_trained_checkpoint_can_be_the_start_of_another_training(tenon, folder):
    command = "train art --data train.npz --epochs 2 --learning-rate 0.01".split()
    first = tenon.json(*command)["epochs"]
    start = ["--start", "trained_checkpoint", "--checkpoint", "out"]
    second = tenon.json(*command, *start)["epochs"]
    assert second[0]["loss"] < first[1]["loss"]
    assert properties_of(folder / "out")["train.step"] == 4
    result = tenon(*command, *start, "--schedule", "linear")
    assert result.returncode == 1
    assert "'trained_checkpoint' has the state of an optimizer, whose steps" in result.stderr


def test_the_model_for_inference_is_exported(tenon, folder):
    tenon.ok(
        *"train art --data train.npz --epochs 2 --export m.onnx --export-output scores".split(),
        *"--export-output active".split(),
    )
    trained = parameters_of(folder / "trained_checkpoint")
    np.save(folder / "x.npy", draw(5)["x"])
    tenon.ok("run", "m.onnx", "--input", "x.npy", "--output", "y.npz")
    outputs = np.load(folder / "y.npz")
    active = np.maximum(draw(5)["x"] @ trained["w1"] + trained["b1"], 0)
    np.testing.assert_allclose(outputs["active"], active, 1e-5, 1e-6)
    np.testing.assert_allclose(outputs["scores"], active @ trained["w2"], 1e-5, 1e-6)
    assert not list(folder.glob("*.trial*"))

    write_artifacts(folder / "more", network(), additional_output_names=["scores"])
    report = tenon.json("train", "more", "--data", "train.npz", "--export", "n.onnx")
    assert report["exported"] == "n.onnx"
    assert [output.name for output in onnx.load(folder / "n.onnx").graph.output] == ["scores"]


def test_the_example_of_the_guide_works(tenon, folder):
    guide = (tenon.root / "docs" / "training.md").read_text()
    (block,) = re.findall(r"^```\n\$ (tenon train .*?)^```", guide, re.DOTALL | re.MULTILINE)
    command, _, shown = block.replace("\\\n", "").partition("\n")
    (folder / "art").rename(folder / "artifacts")
    lines = tenon.ok(*command.split()[1:]).splitlines()
    pattern = re.compile(r"[0-9.]+")
    assert [pattern.sub("0", line) for line in lines if not line.startswith("epoch 3")][:2] == [
        pattern.sub("0", line) for line in shown.splitlines()[:2]
    ]
    assert lines[-2:] == shown.splitlines()[-2:]


# --- Checkpoints ---


@pytest.mark.parametrize("dropout", [False, True])
def test_resuming_gives_the_same_bits(tenon, folder, dropout):
    write_artifacts(folder / "art", network(dropout=dropout))
    options = "--batch-size 8 --accumulate 2 --seed 7 --learning-rate 0.01".split()
    command = ["train", "art", "--data", "train.npz", "--validation", "test.npz"]
    tenon.ok(*command, *options, "--epochs", 2, "--checkpoint", "part")
    assert properties_of(folder / "part") == {
        "train.accumulate": 2,
        "train.batch-size": 8,
        "train.epoch": 2,
        "train.epochs": 2,
        "train.learning-rate": pytest.approx(0.01),
        "train.samples": SAMPLES,
        "train.schedule": "constant",
        "train.seed": 7,
        "train.shuffle": 1,
        "train.step": 8,
        "train.warmup": 0,
    }
    second = tenon.json(*command, "--resume", "--epochs", 5, "--checkpoint", "part")
    assert [one["epoch"] for one in second["epochs"]] == [3, 4, 5]
    whole = tenon.json(
        *command, *options, "--epochs", 5, "--checkpoint", "whole", "--save-every", 4
    )
    for name in ("loss", "validation_loss"):
        assert [one[name] for one in whole["epochs"][2:]] == [one[name] for one in second["epochs"]]
    assert (folder / "part").read_bytes() == (folder / "whole").read_bytes()

    result = tenon(*command, "--resume", "--checkpoint", "part")
    assert (result.returncode, result.stdout) == (0, "")
    assert "all 5 epochs are done already" in result.stderr


class Started:
    """A training that is interrupted after its first epoch."""

    def __init__(self, tenon, *arguments: str):
        self.process = subprocess.Popen(
            [tenon.command, *arguments],
            cwd=tenon.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("epoch 1/")

    def interrupt(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.mark.parametrize("dropout", [False, True])
def test_an_interrupt_saves_and_resuming_gives_the_same_bits(tenon, folder, dropout):
    write_artifacts(folder / "art", network(dropout=dropout))
    np.savez(folder / "large.npz", **draw(20_000))
    options = "train art --data large.npz --batch-size 2 --accumulate 2".split()
    linear = "--epochs 3 --schedule linear --checkpoint".split()
    code, errors = Started(tenon, *options, *linear, "part").interrupt()
    assert code == 130, errors
    epoch, step = (properties_of(folder / "part")[f"train.{name}"] for name in ("epoch", "step"))
    assert f"interrupted after {epoch} epochs and {step} steps; saved 'part'" in errors
    assert epoch in {1, 2}
    assert 5000 * epoch <= step < 5000 * (epoch + 1)
    tenon.ok("train", "art", "--data", "large.npz", "--resume", "--checkpoint", "part")
    tenon.ok(*options, *linear, "whole")
    assert (folder / "part").read_bytes() == (folder / "whole").read_bytes()


def test_a_second_interrupt_ends_at_once(tenon, folder):
    # One step has all batches of the epoch, so the first interrupt has to wait for them.
    np.savez(folder / "large.npz", **draw(400_000))
    options = "train art --data large.npz --batch-size 1 --accumulate 1000000 --epochs 9".split()
    started = Started(tenon, *options, "--save-every", "9")
    time.sleep(0.2)  # until the second epoch is under way
    started.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        started.process.wait(0.2)
    code, errors = started.interrupt()
    assert (code, errors) == (-signal.SIGINT, "")
    assert not (folder / "trained_checkpoint").exists()


# --- Mistakes ---


@pytest.fixture
def mistakes(folder):
    data = draw(SAMPLES)
    np.savez(folder / "unknown.npz", **data, lables=data["labels"])
    np.savez(folder / "fewer.npz", x=data["x"], labels=data["labels"][1:])
    np.savez(folder / "double.npz", x=data["x"].astype(float), labels=data["labels"])
    np.savez(folder / "wide.npz", x=np.zeros((4, 5), FLOAT), labels=data["labels"][:4])
    np.savez(folder / "none.npz", x=data["x"][:0], labels=data["labels"][:0])
    np.savez(folder / "range.npz", x=data["x"], labels=data["labels"] + 7)
    np.save(folder / "x.npy", data["x"])
    archive = bytearray((folder / "train.npz").read_bytes())
    archive[300] ^= 1
    (folder / "damaged.npz").write_bytes(archive)
    write_artifacts(folder / "plain", network(), optimizer=None)
    for name in ("training_model.onnx", "eval_model.onnx", "optimizer_model.onnx", "checkpoint"):
        copy = shutil.copytree(folder / "art", folder / f"cut_{name.split('_', maxsplit=1)[0]}")
        (copy / name).write_bytes((copy / name).read_bytes()[:200])
    shutil.copytree(folder / "art", folder / "alone")
    (folder / "alone" / "eval_model.onnx").unlink()
    other = api.CheckpointState.from_parameters({"w1": np.zeros((2, 2), FLOAT)})
    api.CheckpointState.save_checkpoint(other, folder / "other")


# arguments after `train`, exit code, what stderr has
CASES = [
    ("art", 2, ["--data is required"]),
    ("none --data train.npz", 1, ["'none': expected a folder of artifacts"]),
    ("--data train.npz", 2, ["folder of the artifacts", "--training-model"]),
    ("plain --data train.npz", 1, ["plain/optimizer_model.onnx", "needs an optimizer model"]),
    ("cut_training --data train.npz", 1, ["cut_training/training_model.onnx", "byte"]),
    ("cut_eval --data train.npz", 1, ["model 'cut_eval/eval_model.onnx'", "byte"]),
    ("cut_optimizer --data train.npz", 1, ["model 'cut_optimizer/optimizer_model.onnx'", "byte"]),
    ("cut_checkpoint --data train.npz", 1, ["cut_checkpoint/checkpoint", "damaged"]),
    ("art --start other --data train.npz", 1, ["art/training_model.onnx", "w1"]),
    ("art --data absent.npz", 1, ["'absent.npz': No such file"]),
    ("art --data damaged.npz", 1, ["damaged.npz", "damaged"]),
    ("art --data art/checkpoint", 1, ["art/checkpoint", "expected an .npz file"]),
    ("art --data unknown.npz", 2, ["no input 'lables'", "did you mean 'labels'?", "x, labels"]),
    ("art --data y=train.npz", 2, ["no input 'y'", "x, labels"]),
    ("art --data x.npy", 2, ["which of the 2 inputs", "x.npy"]),
    ("art --data x=x.npy", 2, ["input 'labels' (int64 [n])", "has no samples", "labels=FILE"]),
    ("art --data train.npz --data x=x.npy", 2, ["'x' is given twice"]),
    (
        "art --data fewer.npz",
        1,
        ["expected 50 samples for input 'labels'", "got 49 in 'fewer.npz'"],
    ),
    ("art --data double.npz", 1, ["'x': expected float [samples, 4], got double [50, 4]"]),
    ("art --data wide.npz", 1, ["'x': expected float [samples, 4], got float [4, 5]"]),
    ("art --data none.npz", 1, ["'none.npz' has no samples"]),
    ("art --data range.npz", 1, ["art/training_model.onnx", "SoftmaxCrossEntropyLoss"]),
    ("art --data train.npz --validation fewer.npz", 1, ["--validation: expected 50 samples"]),
    ("alone --data train.npz --validation test.npz", 2, ["--validation", "no evaluation model"]),
    ("alone --data train.npz --export m.onnx", 2, ["--export", "no evaluation model"]),
    (
        "art --data train.npz --export m.onnx",
        2,
        ["names of the model's outputs", "--export-output"],
    ),
    ("art --data train.npz --export-output scores", 2, ["--export FILE"]),
    (
        "art --data train.npz --export m.onnx --export-output score",
        1,
        ["art/eval_model.onnx", "no value 'score'"],
    ),
    ("art --data train.npz --checkpoint none/out", 1, ["'none/out': No such file"]),
    ("art --data train.npz --warmup 3", 2, ["--warmup", "--schedule linear"]),
    ("art --data train.npz --schedule cosine", 2, ["--schedule", "cosine"]),
    ("art --data train.npz --batch-size 0", 2, ["--batch-size"]),
    ("art --data train.npz --learning-rate -1", 2, ["--learning-rate"]),
    ("art --data train.npz --resume", 1, ["'trained_checkpoint': No such file"]),
    (
        "art --data train.npz --resume --checkpoint art/checkpoint",
        1,
        ["'art/checkpoint': expected a checkpoint that `tenon train` wrote", "'train.samples'"],
    ),
]


@pytest.mark.parametrize(("arguments", "code", "texts"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.usefixtures("mistakes")
def test_mistake_is_named(tenon, arguments, code, texts):
    before = sorted(tenon.folder.rglob("*"))
    result = tenon("train", *arguments.split())
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    for text in texts:
        assert text in result.stderr
    assert sorted(tenon.folder.rglob("*")) == before


RESUMED = [
    ("--batch-size 16", 2, "--batch-size: expected 8, with which the training of 'part' began"),
    ("--seed 1", 2, "--seed: expected 0"),
    ("--no-shuffle", 2, "--shuffle: expected 1"),
    ("--accumulate 2", 2, "--accumulate: expected 1"),
    ("--data test.npz", 1, "--data: expected the 50 samples with which the training began, got 21"),
]


@pytest.mark.parametrize(("options", "code", "text"), RESUMED)
def test_what_a_step_sees_stays_as_it_was(tenon, folder, options, code, text):
    tenon.ok(*"train art --data train.npz --batch-size 8 --checkpoint part".split())
    data = [] if "--data" in options else ["--data", "train.npz"]
    result = tenon("train", "art", *data, "--checkpoint", "part", "--resume", *options.split())
    assert (result.returncode, result.stdout) == (code, "")
    assert text in result.stderr


def test_properties_that_do_not_belong_together_are_named(tenon, folder):
    tenon.ok(*"train art --data train.npz --checkpoint part".split())
    command = "train art --data train.npz --checkpoint part --resume --epochs 9".split()
    for name, value, text in [
        ("step", 7, "1 epochs and 7 steps, which do not belong together: an epoch has 2 steps"),
        ("accumulate", 0, "expected numbers of samples, batches and epochs, got 32, 0 and 9"),
        ("seed", 0.5, "the property 'train.seed' has another type"),
    ]:
        state = api.CheckpointState.load_checkpoint(folder / "part")
        state.properties[f"train.{name}"] = value
        api.CheckpointState.save_checkpoint(state, folder / "part", include_optimizer_state=True)
        result = tenon(*command)
        assert result.returncode == 1
        assert text in result.stderr
        tenon.ok(*"train art --data train.npz --checkpoint part".split())
