"""Pages have the sections that the measuring scripts write, each once and closed."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "explanation"
SECTIONS = {
    "baselines.md": ["bench:baselines"],
    "embedded-model.md": ["selection", "tower", "worlds", "main", "components", "attraction", "dial"],
    "guarantee.md": ["beyond"],
    "open-answers.md": ["open-answers"],
    "stable-prior.md": ["stable-prior"],
    "strength-gate-range.md": ["lambda-figure"],
}


@pytest.mark.parametrize("page", list(SECTIONS))
def test_every_section_is_there_once(page: str) -> None:
    text = (PAGES / page).read_text(encoding="utf-8")
    for section in SECTIONS[page]:
        assert text.count(f"<!-- {section} -->\n") == 1
        assert text.count(f"\n<!-- /{section} -->") == 1
        assert text.index(f"<!-- {section} -->") < text.index(f"<!-- /{section} -->")
