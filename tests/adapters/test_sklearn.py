"""Scikit-learn classifiers as agents: clipping, missing classes, tiny data, seeds, trees as worlds."""

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.adapters.sklearn import read_parameter, sklearn_agent
from calibrant.types import CalibrantError, Data, Facts

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64) * 2  # classes 0 and 2 of three: 1 never occurs
TRAIN = Data(X, Y)


def facts(rows, classes=3):
    return Facts(inputs=2, classes=classes, train_size=rows, temperature=0.1)


def probabilities(agent, train=TRAIN, classes=3, key=0, x=X):
    worlds = as_agent(agent).fit(key, train, facts(len(train.y), classes)).worlds(0, 1000)
    return np.exp(worlds(x))


def test_a_classifier_is_a_point_belief_with_clipped_probabilities():
    belief = as_agent(KNeighborsClassifier(3)).fit(0, TRAIN, facts(40))
    assert belief.atoms == 1
    p = np.exp(belief.worlds(0, 10)(X))
    raw = KNeighborsClassifier(3).fit(X, Y).predict_proba(X)
    assert p.shape == (1, 40, 3)
    np.testing.assert_allclose(p[0][:, [0, 2]], np.clip(raw, 0.01, 0.99), rtol=1e-5)
    np.testing.assert_allclose(p[0][:, 1], 0.01, rtol=1e-5)  # the class that was never seen


def test_the_clip_can_be_set():
    p = probabilities(sklearn_agent(KNeighborsClassifier(1), clip="0.2"))
    assert p.min() == pytest.approx(0.2) and p.max() == pytest.approx(0.8)


@pytest.mark.parametrize("neighbours", [1, 3, 5, 11])
def test_one_point_is_enough_for_any_number_of_neighbours(neighbours):
    p = probabilities(KNeighborsClassifier(neighbours), Data(X[:1], Y[:1]))
    assert np.isfinite(p).all()
    if (
        neighbours == 11
    ):  # the point and four rounds of pseudo-points of each class: 13 rows, so ties are broken by sklearn
        assert p[0].max() < 0.7


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(), RandomForestClassifier(5)])
def test_a_single_class_gets_one_pseudo_point_of_every_class(estimator):
    one = Data(X, np.full(40, 2))
    p = probabilities(estimator, one)[0]
    assert np.isfinite(p).all() and (p[:, 2] >= 0.01).all()
    assert p[:, 2].mean() > 1 / 3


def test_pseudo_points_are_added_only_when_needed():
    far = Data(X + 100, Y)
    p = probabilities(KNeighborsClassifier(1), far, x=np.zeros((1, 2), np.float32))[0, 0]
    np.testing.assert_allclose(p[1], 0.01, rtol=1e-5)  # a pseudo-point at x=0 would have made this class possible
    crowd = probabilities(KNeighborsClassifier(41), TRAIN, x=np.zeros((1, 2), np.float32))[0, 0]
    assert crowd[1] > 0.01  # 40 rows for 41 neighbours: the pseudo-points vote


def test_neighbours_inside_a_pipeline_are_counted():
    pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier(5))
    assert np.isfinite(probabilities(pipeline, Data(X[:1], Y[:1]))).all()


def test_the_seed_reaches_every_random_state_and_the_estimator_is_left_alone():
    forest = RandomForestClassifier(3)
    nested = make_pipeline(StandardScaler(), forest)
    for estimator in (forest, nested):
        first, again, other = (probabilities(estimator, key=key) for key in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
    assert forest.random_state is None and not hasattr(forest, "estimators_")


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(7, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(), 7, max_samples=3, max_features=1, random_state=0),
    ],
)
def test_trees_are_worlds_whose_mean_is_the_forest(estimator):
    agent = as_agent(sklearn_agent(estimator, clip=1e-9, worlds="trees"))
    belief = agent.fit(0, TRAIN, facts(40))
    trees = np.exp(belief.worlds(0, 1000)(X))
    assert belief.atoms == 7 and trees.shape == (7, 40, 3)
    forest = probabilities(sklearn_agent(estimator, clip=1e-9))[0]
    np.testing.assert_allclose(trees.mean(axis=0), forest, atol=1e-6)
    assert trees.std(axis=0).max() > 0.1


def test_specs_name_estimators_with_their_parameters():
    agent = as_agent(
        registry.resolve("agents", "sklearn.neighbors:KNeighborsClassifier?n_neighbors=3&weights=distance")
    )
    direct = probabilities(KNeighborsClassifier(3, weights="distance"))
    np.testing.assert_array_equal(probabilities(agent), direct)
    spec = "calibrant.adapters.sklearn:sklearn_agent?estimator=sklearn.ensemble:RandomForestClassifier"
    forest = registry.resolve("agents", f"{spec}&n_estimators=4&max_depth=2&worlds=trees")
    assert as_agent(forest).fit(0, TRAIN, facts(40)).atoms == 4
    assert forest.estimator.max_depth == 2


def test_words_become_values_of_the_default_type():
    assert read_parameter("bootstrap", "false", True) is False
    assert read_parameter("min_samples_leaf", "0.1", 1) == 0.1
    assert type(read_parameter("C", "3", 1.0)) is float
    assert read_parameter("max_depth", "none", None) is None
    assert read_parameter("gamma", "0.5", "scale") == 0.5
    assert read_parameter("early_stopping", "true", "auto") is True
    assert read_parameter("penalty", "none", "l2") == "none"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: sklearn_agent(LinearSVC()), "LinearSVC has no predict_proba"),
        (lambda: as_agent(StandardScaler()), "StandardScaler has no predict_proba"),
        (lambda: sklearn_agent(KNeighborsClassifier, n_neighbors="three"), "n_neighbors=three: expected a number"),
        (lambda: sklearn_agent(KNeighborsClassifier, neighbours=3), "unknown parameter 'neighbours'.*'n_neighbors'"),
        (lambda: sklearn_agent(RandomForestClassifier, bootstrap="maybe"), "bootstrap=maybe: expected true or false"),
        (lambda: sklearn_agent("sklearn.neural_network:MLPClassifier", hidden_layer_sizes="big"), "joined by x"),
        (lambda: sklearn_agent(KNeighborsClassifier, n_neighbors="inf"), "expected a number"),
        (lambda: sklearn_agent(KNeighborsClassifier, clip=0), "clip=0: expected a number between 0 and 0.5"),
        (lambda: sklearn_agent(KNeighborsClassifier, worlds="leaves"), "worlds=leaves: expected one or trees"),
        (lambda: sklearn_agent("sklearn.ensemble:VotingClassifier"), "cannot be made without arguments"),
        (lambda: probabilities(sklearn_agent(KNeighborsClassifier, worlds="trees")), "expected a forest"),
    ],
)
def test_mistakes_are_one_sentence(make, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        make()


def test_a_look_alike_without_get_params_works():
    class Frequencies:
        def fit(self, x, y):
            self.share = np.bincount(y) / len(y)
            return self

        def predict_proba(self, x):
            return np.tile(self.share, (len(x), 1))

    p = probabilities(Frequencies())[0]
    np.testing.assert_allclose(p[:, [0, 2]], np.tile(np.bincount(Y)[[0, 2]] / 40, (40, 1)), rtol=1e-5)
