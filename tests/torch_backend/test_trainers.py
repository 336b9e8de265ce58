"""Trainers of other packages train compiled models as they train others."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from tenon.training import ORTModule  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def compiled_in_place(model):
    model.compile(backend="tenon")
    return model


class TestTransformers:
    """The Trainer of transformers."""

    @staticmethod
    def fit(transformers, folder, change):
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=16, num_labels=3,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        model = change(transformers.BertForSequenceClassification(config))
        data = [{"input_ids": torch.randint(0, 50, (9,)), "labels": i % 3} for i in range(12)]
        arguments = transformers.TrainingArguments(
            str(folder), max_steps=4, per_device_train_batch_size=4, logging_steps=1, use_cpu=True,
            learning_rate=0.01, report_to=[], disable_tqdm=True, label_names=["labels"],
        )  # fmt: skip
        trainer = transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        losses.append(trainer.evaluate()["eval_loss"])
        trainer.save_model(str(folder / "model"))
        return model, torch.tensor(losses)

    @pytest.mark.parametrize("change", [compiled_in_place, ORTModule])
    def test_training(self, tmp_path, runs, change):
        transformers = pytest.importorskip("transformers", reason="transformers is not installed")
        pytest.importorskip("accelerate", reason="accelerate is not installed")
        _, expected = self.fit(transformers, tmp_path / "eager", lambda model: model)
        assert runs == []
        model, actual = self.fit(transformers, tmp_path / "tenon", change)
        assert len(runs) >= 10
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        # What was saved is loaded without compilation.
        if change is ORTModule:
            model.module.save_pretrained(tmp_path / "tenon" / "model")
        loaded = transformers.BertForSequenceClassification.from_pretrained(
            tmp_path / "tenon" / "model"
        )
        torch.testing.assert_close(loaded.state_dict(), model.state_dict())


class TestLightning:
    """The Trainer of Lightning."""

    @staticmethod
    def fit(lightning, folder, change_parts, change_all):
        class Autoencoder(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.encoder = change_parts(nn.Sequential(nn.Linear(12, 8), nn.ReLU()))
                self.decoder = change_parts(nn.Linear(8, 12))

            def training_step(self, batch, _):
                (x,) = batch
                return F.mse_loss(self.decoder(self.encoder(x)), x)

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters(), lr=0.01)

        losses = []

        class Recorder(lightning.Callback):
            def on_train_batch_end(self, trainer, module, outputs, *_):
                losses.append(outputs["loss"].detach())

        torch.manual_seed(0)
        model = Autoencoder()
        data = DataLoader(TensorDataset(torch.randn(20, 12)), batch_size=4)
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=folder, callbacks=[Recorder()],
        )  # fmt: skip
        trainer.fit(change_all(model), data)
        trainer.save_checkpoint(folder / "checkpoint")
        state = torch.load(folder / "checkpoint", weights_only=True)["state_dict"]
        return torch.stack(losses), state

    @pytest.mark.parametrize("way", ["compiled", "ORTModule"])
    def test_training(self, tmp_path, runs, way):
        lightning = pytest.importorskip("lightning", reason="lightning is not installed")

        def same(model):
            return model

        def compiled(model):
            return torch.compile(model, backend="tenon")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice about workers
            expected, trained = self.fit(lightning, tmp_path, same, same)
            assert runs == []
            changes = (same, compiled) if way == "compiled" else (ORTModule, same)
            actual, state = self.fit(lightning, tmp_path, *changes)
        assert len(runs) >= 20
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(state, trained, rtol=1e-4, atol=1e-5)
