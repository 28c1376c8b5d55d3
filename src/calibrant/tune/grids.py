"""What each agent is searched over, as data in the language of `--space`.

`grid` is the union of its blocks, each the product of its values: all that the released 2-D sweeps and the appendix of
Osband et al., "The Neural Testbed", 2022, try, in our field names. `entries` counts what the original lists and `note`
says where that holds repetitions or settings without effect, and what stands here instead. Every study also tries the
agent as it is given, so that value is left out of blocks that would only repeat it.

`ranges` is for samplers of continuous values. Of native agents it holds numbers only, which are data of the compiled
program: a whole study then compiles one program.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Searched:
    grid: tuple[str, ...]
    ranges: str
    entries: int = 0  # configurations in the original's sweep; 0 where it has none
    note: str = ""


_L2 = "0.0001|0.001|0.01|0.1|1|10|100"
_FORMS = "adaptive|fixed"
_SGMCMC = "lr=0.0001|0.0005|0.001|0.005,prior_variance=0.05|0.1|0.2"

SEARCHED = {
    "mlp": Searched((f"l2_form={_FORMS},l2={_L2}",), "l2=0.001..100:log,lr=0.0001..0.01:log", 14),
    "logistic": Searched((f"l2_form={_FORMS},l2={_L2}",), "l2=0.001..100:log,lr=0.0001..0.01:log", 14),
    "ensemble": Searched(
        ("size=1|3|10|30|100", f"size=30,l2_form={_FORMS},l2={_L2}"),
        "l2=0.001..100:log,lr=0.0001..0.01:log",
        19,
        "size=30 at the default weight decay is listed twice: 18 differ",
    ),
    "ensemble+": Searched(
        ("size=1|3|10|30", "bootstrap=bernoulli|exponential", f"l2_form={_FORMS},l2=0.1|0.3|1|3|10"),
        "l2=0.01..100:log,prior_scale=0.3..30:log",
        13,
        "the default is listed three times: 11 differ; the appendix also names the fixed weight decay, which the "
        "released sweep leaves out and which is added here",
    ),
    "dropout": Searched(
        (
            "rate=0|0.1|0.2|0.3|0.4|0.5|0.6|0.7|0.8|0.9",
            "rate=0.1|0.2|0.3|0.4|0.5|0.6|0.7|0.8|0.9,drop_inputs=true",
            f"l2_form={_FORMS},length=1|3|10",
            "hidden=50x50|50x50x50",
        ),
        "rate=0.01..0.9,length=0.1..10:log",
        29,
        "the default is listed three times, and dropping inputs at rate 0 drops nothing: 26 differ",
    ),
    "bbb": Searched(
        (
            "lr=0.001|0.003,sigma_1=0.3|0.5|0.7|1|2,steps=1000|2000",
            "sigma_1=4",
            "prior=mixture,sigma_1=1|2|4,sigma_2=0.3|0.5|0.7,p=0.5",
            "hidden=100x100|50x50x50",
            "kl_form=fixed",
        ),
        "sigma_1=0.1..10:log,lr=0.0003..0.03:log",
        32,
        "the original ignores sigma_2 and p, so its nine mixtures are three single Gaussians, two of them repeated; "
        "here mixtures are mixtures, and sigma_1=4 is tried alone too; the default network is listed again as 50x50; "
        "kl_form=fixed is named in the appendix only",
    ),
    "hypermodel": Searched(
        (
            "prior_scale=1,prior_form=linear|sqrt,prior_hidden=10|10x10,l2=1|2",
            "prior_scale=0,l2=1|2",
            "index=1|3|5|7",
            "bootstrap=bernoulli|exponential",
            f"l2_form={_FORMS},l2=0.1|0.3|1|3|10",
        ),
        "l2=0.03..30:log,prior_scale=0.1..10:log",
        28,
        "without a prior its form and its network have no effect, and the default is listed three times; the "
        "fixed weight decay is named in the appendix only",
    ),
    "epinet": Searched(
        ("prior_scale=0|0.1|0.3|1,l2=0.05|0.2|0.5|1", "index=4|16"),
        "l2=0.02..2:log,prior_scale=0.03..3:log",
        note="the original has no sweep of it; this grid is ours",
    ),
    "sgmcmc": Searched(
        (f"{_SGMCMC},momentum=0|0.9",),
        "lr=0.00003..0.01:log,prior_variance=0.01..1:log,momentum=0..0.95",
        24,
        "the original's 'sgld' half inherits momentum 0.9, so only 12 differ; here that half is without momentum",
    ),
    "deep_kernel": Searched(
        ("form=code,scale=0.5|1|1.5|2|2.5|3,noise=0.5|1|2|3|4",),
        "noise=0.4..40:log,scale=0.1..10:log",
        30,
        "the original's scale factors 1 to 6 are twice ours",
    ),
    "knn": Searched(
        ("neighbours=1|5|10|30|50|100,weights=uniform|distance",),
        "neighbours=1..100:log,clip=0.001..0.2:log",
        12,
        "its default of 3 neighbours is not in the original's grid; it is tried as the agent as given",
    ),
    "random_forest": Searched(
        ("trees=10|100|1000,criterion=gini|entropy",), "trees=10..1000:log,clip=0.001..0.2:log", 6
    ),
}
