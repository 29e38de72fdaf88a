from __future__ import annotations

import re
from collections.abc import Callable

from unprior.report.glossary import GLOSSARY, terms_in
from unprior.studies.registry import STUDIES
from unprior.studies.result import StudyResult


def test_every_symbol_of_the_pages_has_one_plain_sentence() -> None:
    names = " ".join(term.name for term in GLOSSARY)
    for symbol in ("CF", "CS", "CFAD", "RPD", "CCR", "ΔCF", "ΔCS", "Repairs and harms", "U", "ε", "λ", "Margin",
                   "Stable range", "Gate", "Prior attraction", "Holm", "McNemar", "Promise", "certificate", "δ",
                   "Canonical prior"):  # fmt: skip
        assert symbol in names
    for term in GLOSSARY:
        assert re.fullmatch(r"[A-ZΔ].*[^.]\.", term.meaning), term
        assert term.meaning.count(". ") == 0, "one sentence"
        assert re.search(term.pattern, term.name), "a term recognises its own name"
    assert len({term.anchor for term in GLOSSARY}) == len(GLOSSARY)


def test_terms_are_found_as_words() -> None:
    assert [term.anchor for term in terms_in(["U = ΔCF + 0.5 ΔCS"])] == ["cf", "cs", "delta", "utility"]
    assert terms_in(["Unequal answers of CFO and aggregate"]) == ()


def test_no_term_is_idle(study_result: Callable[[str], StudyResult]) -> None:
    """Each is used by a study, or by the gallery."""
    texts = []
    for name, study in STUDIES.items():
        table = study_result(name).table
        texts += [study.asks, study.explained(), table.title, table.caption, *table.columns,
                  *study_result(name).sentences]  # fmt: skip
    assert {term.anchor for term in GLOSSARY} - {term.anchor for term in terms_in(texts)} <= {"margin", "stable-range"}
