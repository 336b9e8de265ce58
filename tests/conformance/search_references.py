"""The results of com.microsoft's searches, by NumPy: see contrib_search_recipes.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import contrib_search_recipes as tables
import numpy as np
from recipes import Call

BEAM = (
    *("ids", "max_length", "min_length", "beams", "returned", "length_penalty"),
    *("repetition_penalty", "vocab_mask", "prefix_mask", "attention_mask", "decoder_ids"),
    *("logits_processor", "heads", "forced", "temperature"),
)
GREEDY = (
    *("ids", "max_length", "min_length", "repetition_penalty", "vocab_mask", "prefix_mask"),
    *("attention_mask", "presence_mask", "seed"),
)
NEVER = float(np.finfo(np.float32).min)


class Model:
    """What the tables say of the followers of a row's sequence, and what the search begins with."""

    def __init__(self, given: dict[str, np.ndarray], attributes: dict[str, Any]) -> None:
        ids, kind = given["ids"], attributes.get("model_type", 0)
        self.mask = given.get("attention_mask", (ids != tables.PAD) if ids.ndim == 2 else None)
        self.is_alone, start = kind == 0, attributes.get("decoder_start_token_id")
        self.first = given.get("decoder_ids", np.full((len(ids), 1), start))
        if kind == 0:
            self.first, self.positions = ids, (ids != tables.PAD).sum(1) - ids.shape[1] - 1
        else:
            tokens = kind == 1
            self.frames = tables.MEMORY[ids] * self.mask[..., None] if tokens else ids.astype(float)

    def logits(self, row: int, tokens: list[int]) -> np.ndarray:
        states = tables.MEMORY[tokens]
        if not self.is_alone:
            return tables.TABLE[tokens[-1]] + states.sum(0) + self.frames[row].sum(0)
        given = self.mask.shape[1]
        states[:given] *= self.mask[row][:, None]
        place = tables.PLACES[self.positions[row] + len(tokens)]
        return tables.TABLE[tokens[-1]] + place + 2 * states.sum(0)


class Rules:
    """The scores from which a token is chosen."""

    def __init__(self, given: dict[str, np.ndarray], attributes: dict[str, Any]) -> None:
        if given.get("logits_processor", 0) != 0:
            raise NotImplementedError
        self.given, self.ngram = given, attributes.get("no_repeat_ngram_size", 0)
        self.temperature = float(given.get("temperature", attributes.get("temperature", 1)))
        self.presence_penalty = attributes.get("presence_penalty", 0)

    def apply(self, scores: np.ndarray, row: int, tokens: list[int], *, is_first: bool) -> None:
        penalty = float(self.given.get("repetition_penalty", 1))
        known = np.unique(tokens)
        scores[known] *= np.where(scores[known] < 0, penalty, 1 / penalty)
        n = self.ngram
        for i in range(len(tokens) - n + 1 if n else 0):
            if tokens[i : i + n - 1] == tokens[len(tokens) - n + 1 :]:
                scores[tokens[i + n - 1]] = NEVER
        if "vocab_mask" in self.given:
            scores[self.given["vocab_mask"] == 0] = NEVER
        if is_first and "prefix_mask" in self.given:
            scores[self.given["prefix_mask"][row] == 0] = NEVER
        if len(tokens) < self.given.get("min_length", 0):
            scores[tables.END] = NEVER
        scores /= self.temperature
        if "presence_mask" in self.given:
            scores -= self.given["presence_mask"][row] * self.presence_penalty


def named(names: tuple[str, ...], call: Call) -> dict[str, np.ndarray]:
    """The inputs by name, those of one number without axes."""
    pairs = zip(names, call.inputs, strict=False)
    given = {name: x for name, x in pairs if x is not None}
    return {name: x[0] if x.shape == (1,) else x for name, x in given.items()}


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max()
    return x - np.log(np.exp(x).sum())


# --- Searches with beams ---


@dataclasses.dataclass
class Beam:
    score: float
    tokens: list[int]


class BeamSearch:
    def __init__(self, call: Call) -> None:
        self.call, self.given = call, named(BEAM, call)
        self.early = call.attributes.get("early_stopping", 0)
        self.model, self.rules = (make(self.given, call.attributes) for make in (Model, Rules))
        self.beams, self.most = int(self.given["beams"]), int(self.given["max_length"])
        self.batch, self.first = len(self.model.first), self.model.first.shape[1]
        self.live = [
            [Beam(-1e9 if i else 0.0, [*row]) for i in range(self.beams)]
            for row in self.model.first.tolist()
        ]
        self.found: list[list[Beam]] = [[] for _ in range(self.batch)]
        self.is_done = [False] * self.batch
        shape = (self.most - self.first, self.batch, self.beams, tables.VOCABULARY)
        self.scores = np.zeros(shape)

    def normalized(self, beam: Beam) -> float:
        return beam.score / len(beam.tokens) ** float(self.given.get("length_penalty", 1))

    def follow(self, step: int, row: int) -> list[Beam]:
        """The best 2 * beams of all followers."""
        for i, beam in enumerate(self.live[row]):
            scores = log_softmax(self.model.logits(row, beam.tokens))
            self.rules.apply(scores, row, beam.tokens, is_first=step == 0)
            ahead = self.given.get("forced", np.empty((self.batch, 0), int))[row][: step + 1]
            if len(ahead) == step + 1 and (ahead >= 0).all():
                scores[:] = NEVER
                scores[ahead[-1]] = 0
            self.scores[step, row, i] = scores + beam.score
        flat = self.scores[step, row].reshape(-1)
        best = np.argsort(-flat, kind="stable")[: 2 * self.beams]
        sources, tokens = np.divmod(best, tables.VOCABULARY)
        return [
            Beam(flat[at], [*self.live[row][source].tokens, int(token)])
            for at, source, token in zip(best, sources, tokens, strict=True)
        ]

    def keep(self, row: int, beam: Beam) -> None:
        self.found[row].append(beam)
        self.found[row].sort(key=self.normalized, reverse=True)
        del self.found[row][self.beams :]

    def run(self) -> list[np.ndarray]:
        for step in range(len(self.scores)):
            followers = [self.follow(step, row) for row in range(self.batch)]
            best = [beam.score for row in followers for beam in row]
            for row, candidates in enumerate(followers):
                if self.is_done[row]:  # goes on with padding
                    self.live[row] = [
                        Beam(0.0, [*self.live[0][0].tokens[: self.first + step], tables.PAD])
                        for _ in range(self.beams)
                    ]
                    continue
                for x in candidates[: self.beams]:
                    if x.tokens[-1] == tables.END:
                        self.keep(row, Beam(x.score, x.tokens[:-1]))
                going = [x for x in candidates if x.tokens[-1] != tables.END]
                self.live[row] = going[: self.beams]
                if len(self.found[row]) == self.beams:
                    # onnxruntime looks for the best at these places of the list of all rows.
                    top = Beam(
                        max(best[row * self.beams :][: 2 * self.beams]), going[0].tokens[:-1]
                    )
                    worst = self.normalized(self.found[row][-1])
                    self.is_done[row] = bool(self.early) or worst >= self.normalized(top)
            if all(self.is_done):
                break
        return self.outputs()

    def outputs(self) -> list[np.ndarray]:
        returned = int(self.given["returned"])
        sequences = np.full((self.batch, returned, self.most), tables.PAD, np.int32)
        totals = np.zeros((self.batch, returned))
        for row in range(self.batch):
            for beam in self.live[row] if not self.is_done[row] else []:
                self.keep(row, beam)
            for i, beam in enumerate(self.found[row][:returned]):
                sequences[row, i, : len(beam.tokens)] = beam.tokens
                totals[row, i] = self.normalized(beam)
        made = [sequences, totals, self.scores]
        if self.call.outputs > 3:
            made += [self.crosses(returned), self.no_speech()]
        penalties = [x for x in self.call.inputs[5:7] if x is not None]
        typed = penalties[0].dtype if penalties else np.float32
        return (
            made[:1]
            + [y.astype(np.float32 if i == 2 else typed) for i, y in enumerate(made[1:])][
                : self.call.outputs - 1
            ]
        )

    def crosses(self, returned: int) -> np.ndarray:
        """[row, returned, pair, run of the decoder, frame]; all of the one head."""
        pairs = len(self.given.get("heads", [0]))
        runs = max(len(beam.tokens) for row in self.live for beam in row) - self.first - 1
        shape = (self.batch, returned, pairs, runs, self.model.frames.shape[1])
        y = np.zeros(shape)
        for row in range(self.batch):
            for i, beam in enumerate(self.found[row][:returned]):
                for j, token in enumerate(beam.tokens[self.first :][:runs]):
                    y[row, i, :, j] = tables.MEMORY[token] @ self.model.frames[row].T
        return y

    def no_speech(self) -> np.ndarray:
        token = tables.MARKS["no_speech_token_id"]
        rows = enumerate(self.model.first.tolist())
        return np.exp([log_softmax(self.model.logits(row, x))[token] for row, x in rows])


# --- Searches without ---


def uniform(seed: int) -> Iterator[float]:
    """std::uniform_real_distribution over std::minstd_rand0 of libstdc++."""
    state, most = max(seed, 1), 2**31 - 2
    while True:
        draws = []
        for _ in range(2):
            state = state * 16807 % (most + 1)
            draws.append(state - 1)
        yield (draws[0] + draws[1] * most) / most**2


def greedy(call: Call, choose: Callable[[np.ndarray, int], int]) -> np.ndarray:
    given = named(GREEDY, call)
    model, rules = (make(given, call.attributes) for make in (Model, Rules))
    sequences = [[*row] for row in model.first.tolist()]
    has_ended = [False] * len(sequences)
    y = np.full((len(sequences), int(given["max_length"])), tables.PAD, np.int32)
    for _ in range(y.shape[1] - model.first.shape[1]):
        for row, tokens in enumerate(sequences):
            scores = model.logits(row, tokens)
            is_first = len(tokens) == model.first.shape[1]
            rules.apply(scores, row, tokens, is_first=is_first)
            token = choose(scores, row)
            has_ended[row] = has_ended[row] or token == tables.END
            tokens.append(tables.PAD if has_ended[row] else token)
        if all(has_ended):
            break
    for row, tokens in enumerate(sequences):
        y[row, : len(tokens)] = tokens
    return y


def sampling(call: Call) -> list[np.ndarray]:
    attributes, given = call.attributes, named(GREEDY, call)
    numbers = uniform(int(given["seed"]))

    def choose(scores: np.ndarray, _: int) -> int:
        kept, order = np.ones(len(scores), bool), np.argsort(scores, kind="stable")
        if attributes["custom"]:
            order = np.argsort(-scores, kind="stable")
        sums = np.cumsum(np.exp(log_softmax(scores))[order])
        if attributes["custom"]:
            kept[order[1:]] = sums[:-1] <= attributes["top_p"]
        else:
            kept[order] = sums > 1 - attributes["top_p"]
            kept[order[-attributes["min_tokens_to_keep"] :]] = True
        chances = np.cumsum(np.exp(log_softmax(scores)) * kept)
        return int(np.argmax(chances > next(numbers) * chances[-1]))

    return [greedy(call, choose)]


FUNCTIONS = {
    "BeamSearch": lambda call: BeamSearch(call).run(),
    "GreedySearch": lambda call: [greedy(call, lambda scores, _: int(scores.argmax()))],
    "Sampling": sampling,
    "WhisperBeamSearch": lambda call: BeamSearch(call).run(),
}
