"""Torch modules as agents (torch has to be installed: it is not one of our dependencies).

    calibrant run testbed --agent examples/torch_agent.py:ensemble --agent examples/torch_agent.py:dropout

The ensemble is ten worlds. With dropout, every world has a mask of its own that it shares between all inputs; see
`calibrant.adapters.torch` for why a mask for each input would be wrong.
"""

from __future__ import annotations

from torch import nn

from calibrant.adapters.torch import TorchAgent, torch_agent


def network(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, classes))


def network_with_dropout(inputs: int, classes: int) -> nn.Module:
    hidden = [nn.Linear(inputs, 100), nn.ReLU(), nn.Dropout(0.1), nn.Linear(100, 100), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*hidden, nn.Linear(100, classes))


def ensemble() -> TorchAgent:
    return torch_agent(network, steps=500, size=10)


def dropout() -> TorchAgent:
    return torch_agent(network_with_dropout, dropout_worlds=True)
