"""Gives the package its long description: the README without links and images that only the repository can follow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_ELSEWHERE = r"(?!https?://|mailto:|#)"
_LINK = re.compile(rf"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\({_ELSEWHERE}[^()\s]+\)")
_IMAGE = re.compile(rf"!\[[^\]]*\]\({_ELSEWHERE}[^()\s]+\)\n*")
_INTRODUCED = re.compile(r"(?<=\n\n)[^\n]+:\n\n(?=<picture>)")
_PAGES = re.compile(r"(?<=\n## Documentation\n\n)(?:- .*\n(?:  .*\n)*)+")
_IN_ARCHIVE = "The documentation is in the source distribution, under `docs/`.\n"
_HTML_IMAGE = re.compile(rf"""<picture>.*?</picture>\n*|<img\s[^>]*src=["']{_ELSEWHERE}[^>]*>\n*""", re.DOTALL)


class ReadmeHook(MetadataHookInterface):
    """Reads README.md at build time."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text)}


def for_index(text: str) -> str:
    """Markdown in which relative links are plain text, and images of the repository are left out.

    The sentence that introduces a picture goes with it, and one sentence stands for the list of pages.

    >>> for_index("See [the guide](docs/guide.md) and [Python](https://www.python.org).")
    'See the guide and [Python](https://www.python.org).'
    >>> for_index("Before\\n\\n![A picture](docs/a.png)\\n\\nafter [above](#try-it)")
    'Before\\n\\nafter [above](#try-it)'
    >>> for_index("Before\\n\\nThis is the page:\\n\\n<picture>it</picture>\\n\\nafter")
    'Before\\n\\nafter'
    >>> for_index("\\n## Documentation\\n\\n- **Do:** [this](docs/this.md),\\n  [that](docs/that.md).\\n\\nMore")
    '\\n## Documentation\\n\\nThe documentation is in the source distribution, under `docs/`.\\n\\nMore'
    """
    text = _PAGES.sub(_IN_ARCHIVE, _INTRODUCED.sub("", text))
    return _LINK.sub(r"\1", _HTML_IMAGE.sub("", _IMAGE.sub("", text)))
