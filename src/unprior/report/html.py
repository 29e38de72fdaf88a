"""What all pages share: templates, colours, and small copies of images inside the page."""

from __future__ import annotations

import base64
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unprior._files import replacing
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.report.figures import task_name


def write_page(path: Path, template: str, **values: Any) -> None:
    """Fill a template and write it as a page that needs nothing else; it appears whole or not at all."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("unprior.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["task_name"] = task_name
    themes = {"light": _colours(LIGHT), "dark": _colours(DARK)}
    html = environment.get_template(template).render(themes=themes, **values)
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
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii"), None


def _colours(style: FigureStyle) -> dict[str, str]:
    fields = asdict(style)
    return {name: value for name, value in fields.items() if isinstance(value, str) and name != "name"}
