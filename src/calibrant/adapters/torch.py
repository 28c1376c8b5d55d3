"""A torch module as an agent: trained with Adam on cross-entropy, one world for each module or for each dropout mask.

`factory(inputs, classes)` makes an untrained `torch.nn.Module` from float32 [batch, inputs] to logits [batch, classes].
Training runs on the CPU, on all rows at once when there are at most `batch` of them, else on shuffled minibatches. All
randomness (initial weights, order, dropout) follows from the seed, and torch's global generator is left as it was.

A world is ONE function, so a dropout mask belongs to the world and not to the input. `torch.nn.Dropout` left in
training mode draws a new mask for every row of a batch: the rows then come from different functions, and what they say
together about several inputs is wrong even where each of them alone is right. With `dropout_worlds=True` every world
therefore has one mask over units, drawn from its seed and shared by all inputs of all calls. Only `torch.nn.Dropout`
layers can be steered like this; `torch.nn.functional.dropout(..., training=self.training)` is off after training.

torch is optional: nothing is imported before an agent is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import seeds
from calibrant.adapters.callables import FiniteBelief, SampledBelief
from calibrant.types import Array, CalibrantError, Data, Facts

Module = Any  # torch.nn.Module, which need not be installed
Factory = Callable[[int, int], Module]


@dataclass(frozen=True)
class TorchAgent:
    """See the top of this file; `torch_agent` makes it after checking its numbers."""

    factory: Factory
    steps: int = 1000
    lr: float = 1e-3
    size: int = 1
    batch: int = 100
    dropout_worlds: bool = False

    def fit(self, seed: int, train: Data, facts: Facts) -> FiniteBelief | SampledBelief:
        members = [self._trained(seeds.child(seed, member) % 2**63, train, facts) for member in range(self.size)]
        if not self.dropout_worlds:
            return FiniteBelief(lambda x: np.stack([_answer(one, x) for one in members]), self.size, facts.classes)
        if not all(_dropout_layers(member) for member in members):
            raise CalibrantError("dropout_worlds needs a module with torch.nn.Dropout layers, and this one has none")
        return SampledBelief(lambda x, world: _masked_answer(members[world % self.size], x, world), facts.classes)

    def _trained(self, seed: int, train: Data, facts: Facts) -> Module:
        torch = _torch()
        x, y = torch.from_numpy(train.x), torch.from_numpy(train.y)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self.factory(facts.inputs, facts.classes)
            optimiser = torch.optim.Adam(module.parameters(), lr=self.lr)
            module.train()
            for rows in _minibatches(np.random.default_rng(seed), len(train.y), self.batch, self.steps):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(module(x[rows]), y[rows]).backward()
                optimiser.step()
        return module.eval()


def torch_agent(
    factory: Factory,
    steps: int = 1000,
    lr: float = 1e-3,
    size: int = 1,
    batch: int = 100,
    dropout_worlds: bool = False,
) -> TorchAgent:
    """An agent that trains `size` modules; with `dropout_worlds`, a world is a module (by its seed) and a mask."""
    for name, value in {"steps": steps, "lr": lr, "size": size, "batch": batch}.items():
        if not value > 0:
            raise CalibrantError(f"{name}={value}: expected a number above 0")
    if not callable(factory):
        raise CalibrantError("torch_agent expects factory(inputs, classes) -> torch.nn.Module as its first argument")
    return TorchAgent(factory, steps, lr, size, batch, dropout_worlds)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise CalibrantError("this agent needs torch, which is not installed (pip install torch)") from error
    return torch


def _minibatches(random: np.random.Generator, rows: int, batch: int, steps: int) -> Iterator[Array]:
    """`steps` sets of row numbers; every row is used once before any is used again, short sets at the end included."""
    waiting = np.arange(0)
    for _ in range(steps):
        if not len(waiting):
            waiting = random.permutation(rows)
        yield waiting[:batch]
        waiting = waiting[batch:]


def _answer(module: Module, x: Array) -> Array:
    torch = _torch()
    with torch.inference_mode():
        return module(torch.from_numpy(x)).numpy()


def _masked_answer(module: Module, x: Array, seed: int) -> Array:
    torch = _torch()
    generator = torch.Generator().manual_seed(seed)

    def drop(layer: Module, inputs: Any, output: Any) -> Any:
        keep = 1.0 - layer.p
        mask = torch.rand(output.shape[1:], generator=generator) < keep  # no batch axis: one mask for all inputs
        return output * mask / keep if keep > 0 else output * 0.0

    hooks = [layer.register_forward_hook(drop) for layer in _dropout_layers(module)]
    try:
        return _answer(module, x)
    finally:
        for hook in hooks:
            hook.remove()


def _dropout_layers(module: Module) -> list[Module]:
    return [layer for layer in module.modules() if isinstance(layer, _torch().nn.Dropout)]
