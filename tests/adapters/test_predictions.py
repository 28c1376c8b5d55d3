"""Saved predictions: what is read, which tuples are formed, and that every defect is one sentence."""

import io
import zipfile

import numpy as np
import pytest

from calibrant.adapters import predictions
from calibrant.adapters.predictions import load_predictions, read_predictions
from calibrant.metrics import score
from calibrant.types import CalibrantError

RNG = np.random.default_rng(1)
LOGITS = RNG.normal(size=(4, 40, 3)).astype(np.float32)
LABELS = RNG.integers(3, size=40)
GOOD = {"logits": LOGITS, "labels": LABELS}


def softmax(logits):
    p = np.exp(logits.astype(float))
    return p / p.sum(axis=-1, keepdims=True)


def save(tmp_path, **arrays):
    path = tmp_path / "predictions.npz"
    np.savez(path, **arrays)
    return path


# --- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_a_file_gives_the_inputs_of_scoring(tmp_path, write):
    path = tmp_path / "predictions.npz"
    write(path, **GOOD)
    answers, question, truth = load_predictions(path)
    np.testing.assert_allclose(np.exp(answers.logp), softmax(LOGITS), rtol=1e-5)
    assert answers.weights is None and not answers.exact
    assert truth.logp is None and (truth.labels == LABELS).all()
    assert question.x.shape == (40, 0) and question.marginal.shape == (40, 1)
    scores = score(answers, question, truth)
    expected = -np.log(softmax(LOGITS).mean(axis=0)[np.arange(40), LABELS]).mean()
    assert scores["nll"].mean == pytest.approx(expected, rel=1e-5)
    assert {"joint_nll_tau10", "joint_nll_tau10_dyadic"} <= set(scores) and "kl_tau10" not in scores


def test_logits_logp_and_probs_say_the_same():
    p = softmax(LOGITS)
    for arrays in ({"logp": np.log(p)}, {"probs": p}, {"probs": p.astype(np.float16)}):
        answers, _, _ = read_predictions({**arrays, "labels": LABELS})
        np.testing.assert_allclose(np.exp(answers.logp), p, atol=1e-3)


def test_extreme_logits_keep_their_log_probabilities():
    answers, _, _ = read_predictions({"logits": np.array([[[0.0, 5000.0]]]), "labels": [1]})
    np.testing.assert_allclose(answers.logp[0, 0], [-5000, 0])


def test_a_saved_zero_is_an_underflow_and_stays_finite():
    answers, _, truth = read_predictions(
        {"probs": [[[0.0, 1.0]]], "labels": np.array([1]), "truth": np.array([[0.0, 1.0]])}
    )
    assert answers.logp[0, 0, 0] == pytest.approx(np.log(1.1754944e-38)) and np.isfinite(truth.logp).all()


def test_one_world_or_weights_make_the_whole_belief():
    assert read_predictions({"logits": LOGITS[:1], "labels": LABELS})[0].exact
    answers, _, _ = read_predictions({**GOOD, "weights": [1, 1, 2, 0]})
    assert answers.exact
    np.testing.assert_allclose(answers.weights, [0.25, 0.25, 0.5, 0])


def test_true_probabilities_make_the_score_a_kl():
    p = softmax(LOGITS[0])
    perfect = {"probs": p[None], "labels": LABELS, "truth": p}
    scores = score(*read_predictions(perfect))
    assert scores["kl_tau1"].mean == pytest.approx(0, abs=1e-6)
    assert scores["kl_tau10_dyadic"].mean == pytest.approx(0, abs=1e-5)


# --- tuples --------------------------------------------------------------------------------------


def test_formed_tuples_are_disjoint_shuffled_and_always_the_same():
    iid, dyadic = read_predictions(GOOD)[1].tuples
    assert (iid.name, iid.tau, iid.anchors.shape) == ("", 10, (4, 10))
    assert (dyadic.name, dyadic.tau, dyadic.anchors.shape) == ("dyadic", 10, (20, 2))
    for family in (iid, dyadic):
        assert sorted(family.anchors.ravel()) == list(range(40))
        assert (family.repeats.sum(axis=1) == 10).all()
        assert not (np.diff(family.anchors.ravel()) == 1).all()
    assert len(np.unique(dyadic.repeats[:, 0])) > 1
    again = read_predictions(GOOD)[1].tuples
    np.testing.assert_array_equal(again[0].anchors, iid.anchors)
    np.testing.assert_array_equal(again[1].repeats, dyadic.repeats)


@pytest.mark.parametrize(("items", "names"), [(3, []), (4, ["dyadic"]), (19, ["dyadic"]), (20, ["", "dyadic"])])
def test_too_few_items_form_no_tuples(items, names):
    _, question, _ = read_predictions({"logits": LOGITS[:, :items], "labels": LABELS[:items]})
    assert [family.name for family in question.tuples] == names


def test_given_tuples_replace_the_formed_ones_and_repeats_are_counted():
    _, question, _ = read_predictions({**GOOD, "tuples": np.array([[5, 3, 5, 5], [1, 2, 0, 4]])})
    (family,) = question.tuples
    assert (family.name, family.tau) == ("given", 4)
    asked = [
        {int(a): int(r) for a, r in zip(*row, strict=True) if r}
        for row in zip(family.anchors, family.repeats, strict=True)
    ]
    assert asked == [{3: 1, 5: 3}, {0: 1, 1: 1, 2: 1, 4: 1}]


def test_given_tuples_are_scored_as_written_out():
    rows = RNG.integers(40, size=(6, 5))
    scores = score(*read_predictions({**GOOD, "tuples": rows}))
    log_likelihood = np.log(softmax(LOGITS)[:, rows, LABELS[rows]]).sum(axis=2)
    expected = -np.log(np.exp(log_likelihood).mean(axis=0)).mean()
    assert scores["joint_nll_tau5_given"].mean == pytest.approx(expected, rel=1e-5)


# --- defects -------------------------------------------------------------------------------------


def changed(**arrays):
    return {name: value for name, value in (GOOD | arrays).items() if value is not None}


def holed(value):
    logits = LOGITS.copy()
    logits[2, 3, 1] = value
    return logits


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (changed(labels=None), "no array 'labels'"),
        (changed(logits=None), "holds none of logits, logp, probs"),
        (changed(probs=softmax(LOGITS)), "holds logits and probs; expected exactly one"),
        (changed(weight=np.ones(4)), "unknown array 'weight', did you mean 'weights'"),
        (changed(logits=LOGITS[0]), r"'logits' has shape \[40, 3\]; expected \[worlds, items, classes\]"),
        (changed(logits=LOGITS[:, :, :1]), "has 1 class; expected at least 2"),
        (changed(logits=LOGITS[:, :0]), "'logits' is empty"),
        (changed(logits=LOGITS[:0]), "'logits' is empty"),
        (changed(logits=holed(np.nan)), "'logits' holds NaN"),
        (changed(logits=holed(-np.inf)), "'logits' holds infinite numbers"),
        (changed(logits=LOGITS.astype(complex)), "'logits' holds complex128"),
        (changed(logits=LOGITS.astype(str)), "expected real numbers"),
        (changed(labels=LABELS[:, None]), r"'labels' has shape \[40, 1\]; expected \[items\]"),
        (changed(labels=LABELS + 0.5), "'labels' holds float64; expected integers"),
        (changed(labels=LABELS + 1), "'labels' runs from 1 to 3; expected 0 to 2, as there are 3 classes"),
        (changed(labels=LABELS - 1), "'labels' runs from -1"),
        (changed(labels=LABELS[:39]), "'labels' has 39 items and the predictions have 40"),
        (changed(logits=None, probs=softmax(LOGITS) * 1.1), "of world 0 sum to 1.1 at item 0; expected 1"),
        (changed(logits=None, probs=softmax(LOGITS) * 2 - softmax(LOGITS)[..., ::-1]), "negative probabilities"),
        (changed(logits=None, logp=LOGITS), "exponentials in 'logp' of world 0 sum to"),
        (changed(logits=None, logp=LOGITS + 900), "exponentials in 'logp'"),
        (changed(weights=[1, 1, 1]), r"the weights have shape \[3\]; expected \[4\]"),
        (changed(weights=[1, 1, 1, -1]), "not negative"),
        (changed(weights=[0, 0, 0, 0]), "not all zero"),
        (changed(weights=[1, 1, 1, np.nan]), "finite"),
        (changed(weights=["a"] * 4), "the weights, of shape .*expected real numbers"),
        (changed(truth=softmax(LOGITS[0])[:39]), r"'truth' has shape \[39, 3\]; expected \[40, 3\]"),
        (changed(truth=softmax(LOGITS)), r"'truth' has shape \[4, 40, 3\]; expected \[items, classes\]"),
        (changed(truth=LOGITS[0]), "'truth' holds negative probabilities"),
        (changed(truth=softmax(LOGITS[0]) / 2), "in 'truth' sum to 0.5 at item 0"),
        (changed(tuples=[1, 2, 3]), r"'tuples' has shape \[3\]; expected \[n, tau\]"),
        (changed(tuples=[[1, 40]]), "'tuples' runs from 1 to 40; expected 0 to 39, as there are 40 items"),
        (changed(tuples=[[1.0, 2.0]]), "'tuples' holds float64"),
        (changed(tuples=[[1], [2]]), "'tuples' has one column"),
        (changed(tuples=np.zeros((0, 10), int)), "'tuples' is empty"),
    ],
)
def test_every_defect_is_one_sentence(tmp_path, arrays, sentence):
    with pytest.raises(CalibrantError, match=sentence) as caught:
        load_predictions(save(tmp_path, **arrays))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CalibrantError, match=r"no file '.*nothing\.npz'"):
        load_predictions(tmp_path / "nothing.npz")


def test_pickled_objects_are_never_read(tmp_path):
    path = save(tmp_path, logits=np.array([{"a": 1}], dtype=object), labels=LABELS)
    with pytest.raises(CalibrantError, match="holds pickled objects, which are never read"):
        load_predictions(path)


@pytest.mark.parametrize("content", [b"", b"labels,logits\n1,2\n", b"\x93NUMPY\x01\x00"])
def test_what_is_no_archive_is_said(tmp_path, content):
    path = tmp_path / "predictions.npz"
    path.write_bytes(content)
    with pytest.raises(CalibrantError, match=r"is not an \.npz archive"):
        load_predictions(path)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_truncated_archive_is_said(tmp_path, kept):
    path = save(tmp_path, **GOOD)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(CalibrantError, match="is damaged or cut short"):
        load_predictions(path)


def test_flipped_bytes_are_noticed(tmp_path):
    path = save(tmp_path, **GOOD)
    content = bytearray(path.read_bytes())
    content[600] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(CalibrantError, match="damaged"):
        load_predictions(path)


def zipped(tmp_path, header, body):
    """An archive whose array has this header and only this body."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    path = tmp_path / "predictions.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", stream.getvalue() + body)
    return path


def test_a_header_that_promises_more_than_there_is_takes_no_memory(tmp_path):
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 10)}
    with pytest.raises(CalibrantError, match="not as long as its header says"):
        load_predictions(zipped(tmp_path, header, b"12345678"))


def test_a_member_that_is_no_array_is_said(tmp_path):
    path = tmp_path / "predictions.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", "these are not numbers")
    with pytest.raises(CalibrantError, match=r"cannot be read as an \.npz archive"):
        load_predictions(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "LIMIT_BYTES", 1000)
    with pytest.raises(CalibrantError, match="expected at most"):
        load_predictions(save(tmp_path, **GOOD))
