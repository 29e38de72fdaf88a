"""The one style of all figures: colours that colour-blind readers tell apart, quiet axes, light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from unprior._text import visible
from unprior.errors import wrong_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 72.0  # an SVG is measured in points
_PNG_DPI = 200
_FONT = "DejaVu Sans"  # comes with matplotlib; the reader's own font takes its place in the page
_PAGE_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_HEX = re.compile(r"#[0-9a-f]{6}\b")


@dataclass(frozen=True, slots=True)
class FigureStyle:
    """Colours by their role; the hues are those of Okabe and Ito."""

    name: str
    paper: str
    ink: str
    """Text."""
    quiet: str
    """Secondary text, axes, and what is not in focus."""
    grid: str
    cf: str
    """Counterfactual images."""
    cs: str
    """Commonsense images."""
    method: str
    """SPC."""
    control: str
    """What SPC is compared with."""
    repaired: str
    harmed: str
    ramp: tuple[str, ...]
    """Sequential colours, from none to all."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Draw in this style; matplotlib's own settings come back afterwards."""
        import matplotlib

        settings: dict[Any, Any] = {
            "axes.axisbelow": True,
            "axes.edgecolor": self.quiet,
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.labelcolor": self.ink,
            "axes.labelsize": 9.5,
            "axes.linewidth": 0.7,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 10.5,
            "axes.titleweight": "bold",
            "axes.titlecolor": self.ink,
            "figure.facecolor": self.paper,
            "font.family": _FONT,
            "font.size": 9.0,
            "grid.color": self.grid,
            "grid.linewidth": 0.7,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "legend.labelcolor": self.ink,
            "lines.linewidth": 1.6,
            "lines.solid_capstyle": "round",
            "svg.fonttype": "none",  # text stays text: small files, and the reader's font
            "svg.hashsalt": "unprior",  # the same figure gives the same bytes
            "text.color": self.ink,
            "text.parse_math": False,  # a dollar sign in a name is no formula
            "xtick.color": self.quiet,
            "xtick.labelcolor": self.ink,
            "xtick.major.size": 3,
            "ytick.color": self.quiet,
            "ytick.labelcolor": self.ink,
            "ytick.major.size": 3,
        }
        with matplotlib.rc_context(settings):
            yield

    def axes_or_new(self, ax: object, width: float, height: float) -> Axes:
        """The given axes; without any, empty ones on a figure of their own."""
        return self.new_axes(width, height) if ax is None else as_axes("ax", ax)

    def new_axes(self, width: float, height: float) -> Axes:
        """Empty axes on a figure of their own, sized in inches; no global state of pyplot is touched."""
        from matplotlib.figure import Figure

        return Figure(figsize=(width, height), dpi=_DPI, layout="constrained").add_subplot()


LIGHT = FigureStyle(
    name="light", paper="#ffffff", ink="#1d2430", quiet="#616b78", grid="#e9ecf0",
    cf="#0072b2", cs="#e69f00", method="#0072b2", control="#b05a86", repaired="#009e73", harmed="#d55e00",
    ramp=("#f4f7fa", "#c6dcec", "#7fb3d5", "#2f81b8", "#0b4a77"),
)  # fmt: skip
DARK = FigureStyle(
    name="dark", paper="#171b22", ink="#e4e8ee", quiet="#8f99a7", grid="#2a303a",
    cf="#56b4e9", cs="#e69f00", method="#56b4e9", control="#d993b8", repaired="#2cc295", harmed="#f28141",
    ramp=("#1f2631", "#1d4160", "#25699a", "#4a9fd4", "#a5d8f7"),
)  # fmt: skip


def as_axes(name: str, value: object) -> Axes:
    """The axes that an argument gives; whatever is no axes of matplotlib is refused by the argument's name."""
    from matplotlib.axes import Axes

    if not isinstance(value, Axes):
        raise wrong_type(name, value, "axes of matplotlib")
    return value


def readable_on(colour: tuple[float, ...]) -> str:
    """Black or white, whichever stands out against a colour (its relative luminance decides).

    >>> readable_on((1.0, 0.9, 0.2, 1.0)), readable_on((0.0, 0.1, 0.4, 1.0))
    ('#000000', '#ffffff')
    """
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def as_svg(figure: Figure) -> str:
    """A figure as SVG on a transparent ground, its text in the reader's own font.

    >>> axes = LIGHT.new_axes(2, 1)
    >>> as_svg(axes.figure).startswith("<svg")
    True
    """
    import matplotlib

    _lay_out(figure)
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "unprior"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = visible(text[text.index("<svg") :]).replace(f"'{_FONT}'", _PAGE_FONT)
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)


def as_file(figure: Figure, kind: str, *, outlines: bool = False) -> bytes:
    """A figure as PDF or PNG on white paper.

    Nothing in the file tells when it was made, so the same numbers give the same bytes. Publishers want fonts in a PDF;
    with ``outlines`` it holds the shapes of its letters instead, which takes half the time.

    >>> as_file(LIGHT.new_axes(2, 1).figure, "pdf")[:5]
    b'%PDF-'
    """
    import matplotlib

    _lay_out(figure)
    stream = io.BytesIO()
    nothing = {"pdf": {"CreationDate": None, "Producer": None, "Creator": None}, "png": {"Software": None}}[kind]
    with matplotlib.rc_context({"pdf.fonttype": 3 if outlines else 42}):
        figure.savefig(stream, format=kind, dpi=_PNG_DPI, facecolor=LIGHT.paper, metadata=nothing)
    return stream.getvalue()


def _lay_out(figure: Figure) -> None:
    """Place everything once and for all: a figure with a layout engine is drawn twice for every file."""
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def recoloured(svg: str, old: FigureStyle, new: FigureStyle) -> str | None:
    """An SVG in the colours of another style; None if it has colours of its own, such as mixed ones.

    >>> recoloured('<path style="stroke: #0072b2"/>', LIGHT, DARK), recoloured('<path fill="#123456"/>', LIGHT, DARK)
    ('<path style="stroke: #56b4e9"/>', None)
    """
    names = [each.name for each in fields(old) if each.name not in ("name", "ramp")]
    colours = {getattr(old, name): getattr(new, name) for name in names} | dict(zip(old.ramp, new.ramp, strict=True))
    if not set(_HEX.findall(svg)) <= colours.keys():
        return None
    return _HEX.sub(lambda found: colours[found[0]], svg)
