"""Every architecture by name, and what is special about it. To add one: write its function, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from tiny_models import (
    cohere,
    deepseek,
    drawing,
    gemma,
    glm,
    grids,
    idefics,
    llama,
    llava,
    mistral,
    older,
    others,
    qwen,
)
from tiny_models.checkpoint import Checkpoint, Shape


@dataclass(frozen=True)
class Architecture:
    """How a model is made, and what one must know to use it with the library alone."""

    make: Callable[[Shape], Checkpoint]
    needs: tuple[str, ...] = ()
    """Packages without which `AutoProcessor` cannot load the processor."""
    prompt: str | None = None
    """How a question is written where there is no chat template; ``{image}`` is empty where there is no image."""
    image: str = ""
    """What stands for ``{image}`` where there is one; empty where the processor writes it."""
    nested: bool = False
    """Whether the processor wants a list of images for every prompt."""
    reads_text_alone: bool = True
    """Whether the model takes a prompt without an image."""

    def text(self, question: str, has_image: bool) -> str:
        """A question where there is no chat template."""
        return (self.prompt or "").format(image=self.image if has_image else "", question=question)

    def missing(self) -> list[str]:
        """The packages that are needed and cannot be imported."""
        return [name for name in self.needs if not _importable(name)]


def _importable(name: str) -> bool:
    try:
        import_module(name)
    except (ImportError, RuntimeError):  # torchvision's beside a torch that it was not built for
        return False
    return True


_VIDEO = ("torchvision",)
"""The image processor works with PIL, but a video processor belongs to the processor."""

REGISTRY = {
    "llava": Architecture(llava.llava),
    "llava_next": Architecture(llava.llava_next),
    "llava_onevision": Architecture(llava.llava_onevision, _VIDEO),
    "llava_next_video": Architecture(llava.llava_next_video, _VIDEO),
    "granite4_vision": Architecture(llava.granite4_vision),
    "vipllava": Architecture(llava.vip_llava),
    "qwen2_vl": Architecture(qwen.qwen2_vl, _VIDEO),
    "qwen2_5_vl": Architecture(qwen.qwen2_5_vl, _VIDEO),
    "qwen3_vl": Architecture(qwen.qwen3_vl, _VIDEO),
    "qwen3_vl_moe": Architecture(qwen.qwen3_vl_moe, _VIDEO),
    "qwen3_5": Architecture(qwen.qwen3_5, _VIDEO),
    "qwen3_5_moe": Architecture(qwen.qwen3_5_moe, _VIDEO),
    "idefics2": Architecture(idefics.idefics2),
    "idefics3": Architecture(idefics.idefics3),
    "smolvlm": Architecture(idefics.smolvlm, ("torchvision", "num2words")),
    "pixtral": Architecture(mistral.pixtral, ("torchvision",)),
    "mistral3": Architecture(mistral.mistral3, ("torchvision",)),
    "mistral3_without_torchvision": Architecture(mistral.mistral3_without_torchvision),
    "lighton_ocr": Architecture(mistral.lighton_ocr),
    "aya_vision": Architecture(cohere.aya_vision),
    "cohere2_vision": Architecture(cohere.cohere2_vision, ("torchvision",)),
    "gemma3": Architecture(gemma.gemma3),
    "gemma4": Architecture(gemma.gemma4, _VIDEO),
    "paligemma": Architecture(gemma.paligemma, prompt="{image}{question}", image="<image>"),
    "mllama": Architecture(llama.mllama),
    "llama4": Architecture(llama.llama4, ("torchvision",)),
    "glm4v": Architecture(glm.glm4v, _VIDEO),
    "glm46v": Architecture(glm.glm46v, _VIDEO),
    "glm4v_moe": Architecture(glm.glm4v_moe, _VIDEO),
    "glm_ocr": Architecture(glm.glm_ocr, _VIDEO),
    "deepseek_vl": Architecture(deepseek.deepseek_vl),
    "deepseek_vl_hybrid": Architecture(deepseek.deepseek_vl_hybrid),
    "janus": Architecture(deepseek.janus),
    "got_ocr2": Architecture(
        deepseek.got_ocr2,
        prompt="<|im_start|>user\n{image}{question}<|im_end|>\n<|im_start|>assistant\n",
        image="<img><imgpad></img>\n",
    ),
    "internvl": Architecture(others.internvl, _VIDEO),
    "ovis2": Architecture(others.ovis2),
    "lfm2_vl": Architecture(others.lfm2_vl, ("torchvision",)),
    "minicpmv4_6": Architecture(others.minicpm_v, _VIDEO),
    "molmo2": Architecture(others.molmo2, ("torchvision",)),
    "step3p7": Architecture(others.step3p7, ("torchvision",)),
    "ernie4_5_vl_moe": Architecture(grids.ernie4_5_vl_moe, _VIDEO),
    "kimi_k25": Architecture(grids.kimi_k25, ("torchvision",)),
    "exaone4_5": Architecture(grids.exaone4_5, _VIDEO),
    "video_llama_3": Architecture(grids.video_llama_3, _VIDEO),
    "paddleocr_vl": Architecture(grids.paddleocr_vl),
    "emu3": Architecture(drawing.emu3),
    "chameleon": Architecture(drawing.chameleon, prompt="{image}{question}", image="<image>"),
    "blip-2": Architecture(older.blip_2, prompt="Question: {question} Answer:", reads_text_alone=False),
    "instructblip": Architecture(older.instructblip, prompt="Question: {question} Answer:", reads_text_alone=False),
    "kosmos-2": Architecture(older.kosmos_2, prompt="<grounding>{question}", reads_text_alone=False),
    "idefics": Architecture(older.idefics, prompt="User: {question} Assistant:", reads_text_alone=False),
    "florence2": Architecture(older.florence2, prompt="{question}"),
    "t5gemma2": Architecture(gemma.t5gemma2, prompt="{image} {question}", image="<start_of_image>", nested=True),
}
