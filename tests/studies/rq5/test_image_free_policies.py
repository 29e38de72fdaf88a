from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from claim_tables import twelve_claim_pairs, with_wrong_test_answers
from plain_selection import best, value
from small_tables import count_changes
from unprior import ScoreTable
from unprior.studies.rq5.image_free_policies import POLICIES, ImageFreePolicies, study_image_free_policies

TABLE = twelve_claim_pairs()
OTHER = {"yes": "no", "no": "yes", None: None}
RULES = {
    "keep": lambda row: row["original"],
    "always-yes": lambda _: "yes",
    "always-no": lambda _: "no",
    "reverse": lambda row: OTHER[row["original"]],
}


def upside_down() -> ScoreTable:
    """Every original answer is the wrong one, so that reversing is perfect."""
    return ScoreTable.from_rows([row | {"original": OTHER[row["answer"]]} for row in TABLE.arrow.to_pylist()])


def test_policies_are_chosen_as_plain_loops_would() -> None:
    for table in (TABLE, upside_down()):
        rows = table.arrow.to_pylist()
        development = [row for row in rows if row["split"] == "dev" and "-contrastive-" in row["example_id"]]
        result = study_image_free_policies(table)
        finals = {name: [rule(row) for row in development] for name, rule in RULES.items()}
        chosen, _ = best(development, list(POLICIES), finals.__getitem__, Fraction(1, 10))
        assert result.selected.name == chosen
        for policy in result.policies:
            assert policy.feasible == value(development, finals[policy.name], Fraction(1, 10))[0]


def test_changes_on_development_and_test_agree_with_plain_loops() -> None:
    rows = TABLE.arrow.to_pylist()
    parts = {
        "development": [row for row in rows if row["split"] == "dev" and "-contrastive-" in row["example_id"]],
        "test": [row for row in rows if row["split"] == "test" and "-contrastive-" in row["example_id"]],
        "all_forms": [row for row in rows if row["split"] == "test"],
    }
    for policy in study_image_free_policies(TABLE).policies:
        for place, part in parts.items():
            found = getattr(policy, place)
            finals = [RULES[policy.name](row) for row in part]
            for side, change in (("cf", found.cf), ("cs", found.cs)):
                assert (change.repairs, change.harms, change.total) == count_changes(part, finals, "qa", side)


def test_keeping_is_selected_when_nothing_is_feasible_or_better() -> None:
    result = study_image_free_policies(TABLE)
    assert result.selected.name == "keep"
    assert [row.bold for row in result.table.rows] == [True, False, False, False]
    assert result.sentences[0].startswith("With ε = 0.10 the development rows select “keep the original answer”, which")
    for policy in result.policies[1:]:
        assert f"{100 * policy.test.utility:+.1f} with “{policy.label.lower()}”" in result.sentences[1]
    assert result.sentences[1].endswith("it is highest with “keep the original answer”.")


def test_a_rule_that_works_is_selected_and_said() -> None:
    result = study_image_free_policies(upside_down())
    assert result.selected.name == "reverse"
    assert "which changes CF/CS accuracy on the test pairs by +100.0/+100.0 points" in result.sentences[0]
    assert result.sentences[0].endswith("(U +150.0).")
    assert result.sentences[1].endswith("it is highest with “reverse yes and no”.")
    same = study_image_free_policies(TABLE).policies[0]
    tied = ImageFreePolicies((same, replace(same, name="always-no", selected=False)), 0.1)
    assert tied.sentences[1].endswith("it is highest with “keep the original answer” and “always no”.")
    assert len(result.records()) == 12
    assert result.figure() is None


def test_test_rows_have_no_part_in_the_choice() -> None:
    changed = study_image_free_policies(with_wrong_test_answers(TABLE))
    same = study_image_free_policies(TABLE)
    assert changed.selected.name == same.selected.name
    assert [policy.development for policy in changed.policies] == [policy.development for policy in same.policies]
    assert [policy.test for policy in changed.policies] != [policy.test for policy in same.policies]
