"""Chat templates that do not let an assistant's turn be continued just so, as some models have them."""

from __future__ import annotations

import shutil
from pathlib import Path


def _template(said: str, opening: str, answer: str | None = None) -> str:
    """``said``: how a text is shown; ``opening``: how a new answer begins; ``answer``: how an answer is shown."""
    shown = (
        f"{{%- if message['content'] is string -%}}{{{{- message['content']{said} -}}}}{{%- else -%}}"
        "{%- for item in message['content'] -%}{%- if item['type'] == 'image' -%}{{- '<image>\n' -}}"
        f"{{%- elif item['type'] == 'text' -%}}{{{{- item['text']{said} -}}}}{{%- endif -%}}"
        "{%- endfor -%}{%- endif -%}"
    )
    if answer is not None:
        shown = f"{{%- if message['role'] == 'assistant' -%}}{answer}{{%- else -%}}{shown}{{%- endif -%}}"
    return (
        "{%- for message in messages -%}{{- message['role'] + ':\n' -}}"
        + shown
        + "{{- '\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- 'assistant:\n' + "
        + opening
        + " -}}{%- endif -%}"
    )


TRIMMING = _template(" | trim", "''")
"""Takes white space off both ends of all that is said, as Gemma's does."""
THINKING = _template("", "'<think>\n'")
"""Opens a thinking block for a new answer, and none for one that is continued."""
HYBRID = _template("", "'<think>\n' + ('\n</think>\n\n' if enable_thinking is false else '')")
"""The same, but the block can be closed at once."""
CLOSING = _template("", "('<think>\n\n</think>\n\n' if enable_thinking is false else '')")
"""Opens no block, but writes an empty one where thinking is to be left out."""
STYLED = _template("", "('[' + style + '] ' if style else '')")
"""Begins an answer as it is told."""
WORDS_ONLY = _template("", "''", answer="{{- '' + message['content'] -}}")
"""Takes an answer as a text only: fails where it comes as a list of parts."""


def with_template(model: Path, template: str, folder: Path) -> Path:
    """A copy of a model with another chat template."""
    shutil.copytree(model, folder, dirs_exist_ok=True)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder
