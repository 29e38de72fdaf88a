"""Numbers and lists as people read them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

EQUAL = 1e-12
"""Values that differ by less are the same; sums of shares are not exact."""


def format_points(delta: float | None, digits: int = 1) -> str:
    """A change of accuracy in points, with its sign; a dash where there is none.

    >>> format_points(0.0783), format_points(-0.004), format_points(None)
    ('+7.8', '-0.4', '–')
    """
    return "–" if delta is None or math.isnan(delta) else f"{100 * delta + 0.0:+.{digits}f}"


def format_changes(cf: float | None, cs: float | None, digits: int = 1) -> str:
    """ΔCF/ΔCS in points.

    >>> format_changes(0.0783, -0.004)
    '+7.8/-0.4'
    """
    return f"{format_points(cf, digits)}/{format_points(cs, digits)}"


def format_percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; a dash where there is none.

    >>> format_percent(0.8514), format_percent(float("nan"))
    ('85.1', '–')
    """
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f}"


def format_interval(low: float, high: float, digits: int = 1) -> str:
    """An interval of a change in points.

    >>> format_interval(0.039, 0.122)
    '[+3.9, +12.2]'
    """
    return f"[{format_points(low, digits)}, {format_points(high, digits)}]" if not math.isnan(low) else "–"


def format_limit(epsilon: float) -> str:
    """A limit of commonsense loss, with as many digits as it has but at least two.

    >>> format_limit(0.1), format_limit(0.025)
    ('0.10', '0.025')
    """
    return max(f"{epsilon:.2f}", f"{epsilon:g}", key=len)


def format_name(label: str) -> str:
    """A row's name in a sentence; those of SPC are names already.

    >>> format_name("SPC"), format_name("Fixed strength")
    ('SPC', '“Fixed strength”')
    """
    return label if label.startswith("SPC") else f"“{label}”"


def format_list(parts: Sequence[str]) -> str:
    """Words in a row as a sentence has them.

    >>> format_list(["MC"]), format_list(["MC", "QA"]), format_list(["a", "b", "c"])
    ('MC', 'MC and QA', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def format_count(number: int, noun: str) -> str:
    """A number of things.

    >>> format_count(1, "pair"), format_count(14, "development pair"), format_count(0, "pair")
    ('1 pair', '14 development pairs', '0 pairs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_p(p_value: float) -> str:
    """p with enough digits to be read, never as zero.

    >>> format_p(0.0002772), format_p(3.6e-12), format_p(1.0), format_p(0.0)
    ('0.00028', '3.6e-12', '1', '<1e-16')
    """
    return f"{p_value:.2g}" if p_value >= 1e-16 else "<1e-16"


def format_settings(settings: Mapping[str, Any]) -> str | None:
    """Settings on one line; None without any.

    >>> format_settings({"scale": {"mc": 1.1, "qa": 2.0}, "min_margin": 0.05})
    'scale mc 1.1 qa 2, min margin 0.05'
    """

    def shown(value: Any) -> str:
        if isinstance(value, Mapping):
            return " ".join(f"{name} {shown(entry)}" for name, entry in value.items())
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in settings.items()) or None


def highest(values: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the highest value; several when they differ by no more than rounding.

    >>> highest({"a": 0.1 + 0.2, "b": 0.3, "c": 0.2})
    ('a', 'b')
    """
    most = max(values.values())
    return tuple(name for name, value in values.items() if value >= most - EQUAL)


def format_extremes(shares: Mapping[str, float]) -> str:
    """Where shares are highest and lowest, in words that are right for ties.

    >>> format_extremes({"a": 0.5, "b": 1.0, "c": 1.0})
    'is highest for b and c (100.0 %) and lowest for a (50.0 %)'
    >>> format_extremes({"a": 0.5, "b": 0.5})
    'is 50.0 % for a and b'
    """
    top, bottom = highest(shares), highest({name: -share for name, share in shares.items()})
    high, low = (f"{format_percent(shares[names[0]])} %" for names in (top, bottom))
    if len(top) == len(shares):
        return f"is {high} for {format_list(top)}"
    return f"is highest for {format_list(top)} ({high}) and lowest for {format_list(bottom)} ({low})"


def wrap_header(header: str, width: int) -> str:
    """A header in several lines, hardly wider than the numbers below it.

    >>> wrap_header("Repairs/harms (CF; CS)", 10)
    'Repairs/\\nharms (CF;\\nCS)'
    """
    parts = textwrap.wrap(header.replace("/", "/ "), max(width, 10), break_long_words=False)
    return "\n".join(parts).replace("/ ", "/")


def as_sentence(words: str) -> str:
    """A message as a sentence of a page.

    >>> as_sentence("few pairs")
    'Few pairs.'
    """
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
