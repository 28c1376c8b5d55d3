"""Torch modules as agents; runs only where torch is installed."""

import numpy as np
import pytest

from calibrant.adapters import as_agent
from calibrant.adapters.torch import torch_agent
from calibrant.types import CalibrantError, Data, Facts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
FACTS = Facts(inputs=2, classes=2, train_size=150, temperature=0.1)


def fit(agent, key=0):
    return as_agent(agent).fit(key, Data(X, Y), FACTS)


def network(inputs, classes, *middle):
    nn = pytest.importorskip("torch").nn
    return nn.Sequential(nn.Linear(inputs, 20), nn.ReLU(), *middle, nn.Linear(20, classes))


def network_with_dropout(inputs, classes):
    return network(inputs, classes, pytest.importorskip("torch").nn.Dropout(0.5))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"lr": -1.0}, {"size": 0}, {"batch": 0}])
def test_numbers_are_checked_without_torch(wrong):
    with pytest.raises(CalibrantError, match="expected a number above 0"):
        torch_agent(network, **wrong)


def test_a_factory_is_expected():
    with pytest.raises(CalibrantError, match="factory"):
        torch_agent("network")


def test_absent_torch_is_one_sentence():
    try:
        import torch  # noqa: F401
    except ImportError:
        with pytest.raises(CalibrantError, match="needs torch"):
            fit(torch_agent(network))
    else:
        pytest.skip("torch is installed")


def test_an_ensemble_learns_and_is_reproducible():
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    agent = torch_agent(network, steps=300, lr=1e-2, size=3)
    belief = fit(agent)
    logits = belief.worlds(0, 1000)(X)
    assert belief.atoms == 3 and logits.shape == (3, 150, 2)
    assert ((logits.argmax(axis=2) == Y).mean(axis=1) > 0.9).all()
    assert not np.allclose(logits[0], logits[1])
    np.testing.assert_allclose(fit(agent).worlds(0, 3)(X), logits, rtol=1e-4, atol=1e-4)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_dropout_world_has_one_mask_for_all_inputs():
    pytest.importorskip("torch")
    belief = fit(torch_agent(network_with_dropout, steps=50, size=2, dropout_worlds=True))
    worlds = belief.worlds(0, 20)
    logits = worlds(X)
    assert belief.atoms is None and logits.std(axis=0).max() > 0
    np.testing.assert_allclose(worlds(X[::-1])[:, ::-1], logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(worlds(np.repeat(X[:1], 9, axis=0)), np.repeat(logits[:, :1], 9, axis=1), atol=1e-4)


def test_dropout_worlds_need_dropout():
    pytest.importorskip("torch")
    with pytest.raises(CalibrantError, match=r"torch\.nn\.Dropout"):
        fit(torch_agent(network, steps=1, dropout_worlds=True))
