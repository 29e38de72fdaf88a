"""What all pages share: templates, colours, and small copies of images inside the page."""

from __future__ import annotations

import io
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import replacing
from unprior.plots.style import DARK, LIGHT
from unprior.report.glossary import GLOSSARY
from unprior.report.section import data_uri
from unprior.tables.html import typographic

if TYPE_CHECKING:
    from markupsafe import Markup

_COMMAND = re.compile("`([^`]+)`")


def write_page(path: Path, template: str, **values: Any) -> None:
    """Fill a template and write it as a page that needs nothing else; it appears whole or not at all."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from unprior._version import __version__

    environment = Environment(
        loader=PackageLoader("unprior.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"commands": _with_commands, "prose": _prose}
    themes = {
        style.name: {name: value for name, value in asdict(style).items() if isinstance(value, str) and name != "name"}
        for style in (LIGHT, DARK)
    }
    environment.globals |= {"themes": themes, "glossary": GLOSSARY, "version": __version__}
    html = environment.get_template(template).render(**values)
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def embed_image(path: Path, side: int, quality: int) -> tuple[str | None, str | None]:
    """A small copy of an image as a data URI, or the reason why there is none."""
    from unprior.images import ImageError, open_image

    try:
        image = open_image(path)
    except ImageError as error:
        return None, str(error)
    image.thumbnail((side, side))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality, optimize=True)
    return data_uri("image/jpeg", stream.getvalue()), None


def _with_commands(text: str) -> Markup:
    """What stands in backticks is a command."""
    from markupsafe import Markup, escape

    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))


def _prose(text: str) -> str:
    """Numbers as a page has them: a true minus sign, and no line break before a percent sign or within “ε = 0.04”."""
    return (
        typographic(text).replace(" %", "\N{NO-BREAK SPACE}%").replace("ε = ", "ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    )
