"""What the support matrix says of an architecture, found out on a small random model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from method_support import method_support
from unprior.engines.protocol import Answered, Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError
from vllm_models import MODELS

EXAMPLES = {
    "aya_vision": "CohereLabs/aya-vision-8b",
    "blip-2": "Salesforce/blip2-opt-2.7b",
    "chameleon": "facebook/chameleon-7b",
    "cohere2_vision": "CohereLabs/command-a-vision-07-2025",
    "deepseek_vl": "deepseek-community/deepseek-vl-1.3b-chat",
    "deepseek_vl_hybrid": "deepseek-community/deepseek-vl-7b-chat",
    "emu3": "Emu3-community/Emu3-Chat-hf",
    "ernie4_5_vl_moe": "baidu/ERNIE-4.5-VL-28B-A3B-PT",
    "exaone4_5": "LGAI-EXAONE/EXAONE-4.5-33B",
    "florence2": "florence-community/Florence-2-base",
    "gemma3": "google/gemma-3-4b-it",
    "gemma4": "google/gemma-4-e2b-it",
    "glm46v": "zai-org/GLM-4.6V-Flash",
    "glm4v": "zai-org/GLM-4.1V-9B-Thinking",
    "glm4v_moe": "zai-org/GLM-4.5V",
    "glm_ocr": "zai-org/GLM-OCR",
    "got_ocr2": "stepfun-ai/GOT-OCR-2.0-hf",
    "idefics": "HuggingFaceM4/idefics-9b-instruct",
    "idefics2": "HuggingFaceM4/idefics2-8b",
    "idefics3": "HuggingFaceTB/SmolVLM-256M-Instruct",
    "instructblip": "Salesforce/instructblip-vicuna-7b",
    "internvl": "OpenGVLab/InternVL3-1B-hf",
    "janus": "deepseek-community/Janus-Pro-1B",
    "kimi_k25": "moonshotai/Kimi-K2.6",
    "kosmos-2": "microsoft/kosmos-2-patch14-224",
    "lfm2_vl": "LiquidAI/LFM2-VL-450M",
    "lighton_ocr": "lightonai/LightOnOCR-1B-1025",
    "llama4": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "llava": "llava-hf/llava-interleave-qwen-0.5b-hf",
    "llava_next": "llava-hf/llava-v1.6-mistral-7b-hf",
    "llava_next_video": "llava-hf/LLaVA-NeXT-Video-7B-hf",
    "llava_onevision": "llava-hf/llava-onevision-qwen2-0.5b-ov-hf",
    "minicpmv4_6": "openbmb/MiniCPM-V-4.6",
    "mistral3": "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
    "mllama": "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "molmo2": "allenai/Molmo2-8B",
    "ovis2": "thisisiron/Ovis2-1B-hf",
    "paddleocr_vl": "PaddlePaddle/PaddleOCR-VL",
    "paligemma": "google/paligemma-3b-mix-224",
    "pixtral": "mistral-community/pixtral-12b",
    "qwen2_5_vl": "Qwen/Qwen2.5-VL-3B-Instruct",
    "qwen2_vl": "Qwen/Qwen2-VL-2B-Instruct",
    "qwen3_5": "Qwen/Qwen3.5-27B",
    "qwen3_5_moe": "Qwen/Qwen3.5-35B-A3B",
    "qwen3_vl": "Qwen/Qwen3-VL-2B-Instruct",
    "qwen3_vl_moe": "Qwen/Qwen3-VL-30B-A3B-Instruct",
    "smolvlm": "HuggingFaceTB/SmolVLM2-256M-Video-Instruct",
    "step3p7": "stepfun-ai/Step-3.7-Flash",
    "video_llama_3": "lkhl/VideoLLaMA3-2B-Image-HF",
    "vipllava": "llava-hf/vip-llava-7b-hf",
}
"""A small public model of every kind, by hand; none of them was loaded here."""
_TORCHVISION = (
    "cohere2_vision", "kimi_k25", "lfm2_vl", "llama4", "minicpmv4_6", "mistral3", "molmo2", "pixtral", "step3p7",
)  # fmt: skip
NEEDS = {"smolvlm": ["num2words"], **{name: ["torchvision"] for name in _TORCHVISION}}
"""What a processor cannot do without, as a test finds out; a part for videos is done without."""
_ON_VLLM = {"gemma3": "text exact; image differs on CPUs"}
_QUESTION = "Is it red?\nAnswer with yes or no."


def describe(name: str, folder: Path) -> dict[str, Any]:
    """The row of an architecture; its model lies in the folder."""
    about = {"name": name, "example": EXAMPLES.get(name, "–"), "needs": NEEDS.get(name, [])}
    try:
        engine = TransformersEngine(folder, device="cpu", max_new_tokens=3)
    except UnpriorError as error:
        return about | {"refused": _reason(str(error))}
    return (
        about
        | measured(engine)
        | {"half": in_half_precision(folder), "methods": method_support(engine), "vllm": on_vllm(name)}
    )


def in_half_precision(folder: Path) -> float | None:
    """Largest difference of the chosen way from ``generate`` in bfloat16; None if no way is near enough."""
    try:
        return TransformersEngine(folder, device="cpu", dtype="bfloat16").self_test.trials[-1].difference
    except UnpriorError:
        return None


def measured(engine: TransformersEngine) -> dict[str, Any]:
    """What the engine itself tells."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    before = engine.encoded_images
    (answered,) = engine.answer_batch([Query(image, _QUESTION, (" yes", " no"))])
    assert isinstance(answered, Answered), answered
    windows = engine.self_test.limits - engine.self_test.large_limits
    known = [name for name in ("enable_thinking", "thinking") if name in engine.encoder.template.arguments]
    return {
        "level": engine.level.name,
        "encodings": engine.encoded_images - before,
        "window": min(windows, default=None),
        "thinking": ", ".join(f"{name}=false" for name in known),
    }


def on_vllm(name: str) -> str:
    """What the tests on a real vLLM hold."""
    return _ON_VLLM.get(name, "exact") if name in MODELS or name == "llava" else ""


def _reason(message: str) -> str:
    known = ("cannot read a question without an image", "is an encoder–decoder")
    return next((reason for reason in known if reason in message), message)
