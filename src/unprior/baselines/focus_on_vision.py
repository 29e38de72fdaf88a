"""Focus on Vision: an instruction to look at the image, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unprior.baselines.method import Method
from unprior.prompts import PromptLayout

# The paper's own wording; another one would be another baseline.
GROUNDING = (
    "Ground your answer in this single image only. Before deciding, silently verify the task-focused visible count, "
    "identity, attribute, material, state, relation, cause, or scale. Treat normal commonsense defaults as hypotheses, "
    "not facts. If the image conflicts with what is typical, follow the image. Do not use paired examples, dataset "
    "labels, reference images, ground-truth claims, or any information outside the task prompt and image."
)


@dataclass(frozen=True, slots=True)
class FocusOnVision(Method):
    """A grounding instruction before the original prompt.

    >>> FocusOnVision().layout(PromptLayout()).instruction_before[:18]
    'Ground your answer'
    """

    name: ClassVar[str] = "focus-on-vision"
    label: ClassVar[str] = "Focus on Vision"
    kind: ClassVar[str] = "prompt"

    instruction: str = GROUNDING

    def layout(self, layout: PromptLayout) -> PromptLayout:
        """The same wording with the instruction in front, before any other."""
        before = "\n".join(text for text in (self.instruction, layout.instruction_before) if text)
        return replace(layout, instruction_before=before)

    def matched(self) -> None:
        """A prompt has no decoder of its own; the original answers are its reference."""
