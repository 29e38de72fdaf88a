"""RQ5: which prediction changes with the claims before anything is corrected?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from unprior.baselines.controls import fixed_strength_answers
from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM
from unprior.evaluation import Share, prior_winners
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES
from unprior.studies.result import StudyResult
from unprior.studies.rq5.claims import fitted_form, share_of
from unprior.studies.study import Study
from unprior.tables.format import format_extremes, format_percent
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class PredictionSource:
    """One way to read an answer off the model."""

    name: str
    label: str
    """The name for people."""
    cf: Share
    """Counterfactual pairs whose answer changes with the claims."""
    cs: Share
    """Commonsense pairs whose answer changes with the claims."""


@dataclass(frozen=True, slots=True)
class PriorDirection(StudyResult):
    """Consistency under claim exchange before correction, and how often the prior favours the ordinary claim.

    >>> from unprior.synthetic import synthesize_claims
    >>> result = study_prior_direction(synthesize_claims().where(split="test"))
    >>> [(source.name, source.cf.total) for source in result.sources]
    [('original', 40), ('image', 40), ('text-only', 40)]
    """

    sources: tuple[PredictionSource, ...]
    """Original answer, image-conditioned scores, text-only scores."""
    favours_ordinary: tuple[Share, Share]
    """Counterfactual examples whose text-only winner speaks for the ordinary claim, by claim order."""

    @property
    def table(self) -> Table:
        """Sources by side."""
        rows = [(source.label, f"{source.cf.value:.3f}", f"{source.cs.value:.3f}") for source in self.sources]
        return Table.plain(
            f"Consistency under claim exchange before correction ({FITTED_FORM} form)",
            ("Prediction source", "CF", "CS"),
            rows,
            "Share of test pairs whose yes/no answer reverses when the two claims change places.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Where the difference between orders first appears."""
        sentences = []
        for side in SIDES:
            shares = {f"the {source.label.lower()}": getattr(source, side).value for source in self.sources}
            sentences.append(
                f"The share of {side.upper()} pairs whose answer reverses with the claims {format_extremes(shares)}."
            )
        first, second = (format_percent(share.value) for share in self.favours_ordinary)
        sentences.append(
            f"With the ordinary/atypical claim first, text-only scores favour the ordinary answer on {first}/{second} "
            "% of CF examples."
        )
        return tuple(sentences)

    def records(self) -> list[dict[str, Any]]:
        """One record per source and side, then one per claim order for the direction of the prior."""
        found: list[tuple[str, str, str | None, str, Share]] = [
            *((each.name, side, None, "consistent", getattr(each, side)) for each in self.sources for side in SIDES),
            *(("text-only", "cf", order, "favours-ordinary", share)
              for order, share in zip(CLAIM_ORDERS, self.favours_ordinary, strict=True)),
        ]  # fmt: skip
        return [
            {"source": source, "side": side, "order": order, "measure": measure, **asdict(share), "share": share.value}
            for source, side, order, measure, share in found
        ]


def study_prior_direction(test: ScoreTable) -> PriorDirection:
    """Read three predictions off the rows of the fitted form and exchange the claims."""
    form = fitted_form(test)
    prior = prior_winners(test)
    sources = (
        ("original", "Original answer", test.original_positions),
        ("image", "Image-conditioned winner", fixed_strength_answers(test, 0.0)),
        ("text-only", "Text-only winner", prior),
    )
    ordinary = (("yes", CLAIM_ORDERS[0]), ("no", CLAIM_ORDERS[1]))
    first, second = (share_of(form.says(word, prior, order, "cf")) for word, order in ordinary)
    found = (
        PredictionSource(name, label, *(share_of(form.consistent(given, side)) for side in SIDES))
        for name, label, given in sources
    )
    return PriorDirection(tuple(found), (first, second))


STUDY = Study(
    name="prior-direction",
    title="Consistency before correction",
    asks="Which prediction fails to change with the claims: the answer, or the scores with or without the image?",
    how="Contrastive form, both claim orders of the test pairs; a prediction is consistent when exchanging the claims "
    "turns yes into no or no into yes. Nothing is fitted.",
    label="tab:prior-direction",
    needs=("forms",),
    run=lambda inputs: study_prior_direction(inputs.variants["forms"].where(split="test")),
)
