from __future__ import annotations

from claim_tables import ORDERS, cell, twelve_claim_pairs
from unprior import ScoreTable
from unprior.studies.rq5.prior_direction import study_prior_direction

TEST = twelve_claim_pairs(seed=6).where(split="test")
ROWS = TEST.arrow.to_pylist()


def winner(scores: list[float]) -> str:
    return "yes" if scores[0] >= scores[1] else "no"


def test_consistency_of_every_source_agrees_with_plain_loops() -> None:
    result = study_prior_direction(TEST)
    read = {
        "original": [row["original"] for row in ROWS],
        "image": [winner(row["image_scores"]) for row in ROWS],
        "text-only": [winner(row["prior_scores"]) for row in ROWS],
    }
    for source in result.sources:
        for side, share in (("cf", source.cf), ("cs", source.cs)):
            first, second = (cell(ROWS, "contrastive", order, side) for order in ORDERS)
            said = read[source.name]
            assert share.count == sum(said[one] != said[other] for one, other in zip(first, second, strict=True))
            assert share.total == 8
    for share, order, word in zip(result.favours_ordinary, ORDERS, ("yes", "no"), strict=True):
        assert share.count == sum(read["text-only"][at] == word for at in cell(ROWS, "contrastive", order, "cf"))
    assert len(result.records()) == 8
    assert [row.cells[0] for row in result.table.rows] == [source.label for source in result.sources]
    assert result.figure() is None


def test_sentences_name_the_least_consistent_source() -> None:
    always_yes = [row | {"prior_scores": [-0.1, -3.0], "original": row["answer"]} for row in ROWS]
    said = study_prior_direction(ScoreTable.from_rows(always_yes)).sentences
    assert "highest for the original answer" in said[0]
    assert "lowest for the text-only winner (0.0 %)" in said[0]
    assert "favour the ordinary answer on 100.0/0.0 % of CF examples" in said[2]
    never = [row | {"prior_scores": [-0.1, -3.0], "image_scores": [-0.1, -3.0], "original": "yes"} for row in ROWS]
    said = study_prior_direction(ScoreTable.from_rows(never)).sentences
    assert "is 0.0 % for the original answer, the image-conditioned winner and the text-only winner" in said[0]
