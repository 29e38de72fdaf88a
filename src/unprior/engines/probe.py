"""One fixed question whose rendered prompts show whether two engines ask a model in the same words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from unprior.prompts import YES_NO, PromptLayout

_QUESTION = "Is there a zebra in the image?"


def probe_texts(layout: PromptLayout) -> tuple[str, str]:
    """User turns of the probe: the one for the original answer, and the one for candidate scores.

    >>> probe_texts(PromptLayout())[1]
    'Is there a zebra in the image?\\nAnswer with yes or no.\\nFinal answer:'
    """
    text = layout.user_text(_QUESTION, YES_NO, None)
    return text, text + layout.scoring_suffix


def prompt_digest(prompts: Sequence[Sequence[int]]) -> str:
    """Digest of the token ids of the probe's prompts without an image, in the order of :func:`probe_texts`.

    Every engine that knows the model's tokens computes the same value for the same wording, so it stands in
    ``identity["prompt"]`` of an engine, in score tables and in calibrators.

    >>> prompt_digest([[1, 2], [1, 2, 3]])[:12]
    'c9cb304d4174'
    """
    return hashlib.sha256(json.dumps([list(map(int, ids)) for ids in prompts]).encode()).hexdigest()
