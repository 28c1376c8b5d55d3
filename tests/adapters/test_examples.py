"""The examples keep the contract that they explain."""

from pathlib import Path

import pytest

from calibrant.engine.check import check_agent

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "name", ["numpy_agent.py:Agent?features=20", "sklearn_agent.py:forest", "sklearn_agent.py:quadratic"]
)
def test_an_example_passes_every_check(name):
    findings = check_agent(f"{EXAMPLES}/{name}", "testbed?train=10&temp=0.1&tuples=2")
    assert [finding.message for finding in findings if not finding.ok] == []
    assert len(findings) == 12


@pytest.mark.parametrize("name", ["torch_agent.py:ensemble", "torch_agent.py:dropout"])
def test_a_torch_example_passes_every_check(name):
    pytest.importorskip("torch")
    findings = check_agent(f"{EXAMPLES}/{name}", "testbed?train=10&temp=0.1&tuples=2")
    assert [finding.message for finding in findings if not finding.ok] == []
