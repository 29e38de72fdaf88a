"""What REVIS has learned of one model: directions, layer, threshold; in memory and on disk."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unprior._files import parse_json, read_whole, replacing
from unprior.baselines.revis.directions import LayerChoice
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.baselines.steering import GateCounter
    from unprior.engines.transformers.engine import TransformersEngine

FORMAT = "unprior.revis"
VERSION = 1
_REMEDY = "fit REVIS anew for this model"


@dataclass(frozen=True, slots=True, eq=False)
class RevisVectors:
    """Directions of every decoder layer, and where and when to steer along them."""

    visual: NDArray[np.float32]
    """What an image adds beside the prior, with its usual length; shape (layers, size)."""
    prior: NDArray[np.float32]
    """What a hallucination without an image adds, of length 1; shape (layers, size)."""
    separation: tuple[float, ...]
    """By layer: share of images whose own caption lies nearer to ``visual`` than the hallucinated one."""
    choice: LayerChoice
    """Layer and threshold, or why REVIS stays inactive; mean risks by layer."""
    strength: float
    """How much of ``visual`` is added."""
    counts: dict[str, int]
    """Captions and presence questions, and among these false positives and factual answers."""
    recipe: dict[str, Any]
    """Model, data and wording that this was made with."""

    @classmethod
    def random(cls, layers: int, size: int) -> RevisVectors:
        """Directions that were not learned, which steer about half of the positions of a middle layer, for a trial."""
        visual = np.random.default_rng(0).normal(size=(layers, size)).astype(np.float32)
        choice = LayerChoice(layers // 2, 0.0, "not learned", (), ())
        return cls(visual, visual, (), choice, 1.0, {}, {})

    def steering(self, model: Any) -> AbstractContextManager[GateCounter | None]:
        """Steer the model while the context is open; nothing happens when REVIS is inactive."""
        if self.choice.layer is None or self.choice.threshold is None:
            return nullcontext()
        from unprior.baselines.steering import steered

        return steered(
            model,
            layer=self.choice.layer,
            direction=self.visual[self.choice.layer],
            strength=self.strength,
            threshold=self.choice.threshold,
        )

    def save(self, path: Path) -> None:
        """Write a safetensors file: the directions as tensors, everything else as JSON in its metadata."""
        from safetensors.numpy import save_file

        about = {
            "version": VERSION,
            "choice": asdict(self.choice),
            "separation": self.separation,
            "strength": self.strength,
            "counts": self.counts,
            "recipe": self.recipe,
        }
        with replacing(path) as temporary:
            save_file(
                {"visual": self.visual, "prior": self.prior},
                temporary,
                metadata={"format": FORMAT, "about": json.dumps(about)},
            )

    @classmethod
    def load(cls, path: Path, engine: TransformersEngine) -> RevisVectors:
        """Read a file that :meth:`save` wrote; one that was made with another model is refused."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        content = read_whole(path)
        try:
            tensors = load(content)
            header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
            metadata = header.get("__metadata__", {})
            if metadata.get("format") != FORMAT:
                raise UnpriorError(f"{path}: this is no file of REVIS vectors; {_REMEDY}")
            about = parse_json(metadata["about"])
            if about["version"] != VERSION:
                raise UnpriorError(f"{path}: written in version {about['version']}, this is {VERSION}; {_REMEDY}")
            vectors = cls(
                tensors["visual"],
                tensors["prior"],
                tuple(about["separation"]),
                _choice(about["choice"]),
                about["strength"],
                about["counts"],
                about["recipe"],
            )
        except UnpriorError:
            raise
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise UnpriorError(f"{path}: not a whole file of REVIS vectors ({error}); {_REMEDY}") from None
        _check_model(path, vectors.recipe, engine)
        return vectors


def _choice(values: dict[str, Any]) -> LayerChoice:
    risks = {name: tuple(values[name]) for name in ("false_positive_risk", "factual_risk")}  # JSON knows no tuples
    return LayerChoice(**(values | risks))


def _check_model(path: Path, recipe: dict[str, Any], engine: TransformersEngine) -> None:
    if recipe.get("fingerprint") == engine.fingerprint:
        return
    made_with, now = recipe.get("identity", {}), engine.identity
    differing = [name for name in now if made_with.get(name) != now[name]] or ["prompt layout"]
    raise UnpriorError(
        f"{path}: made with {recipe.get('model')}, which differs from {engine.name} in {', '.join(differing)}; "
        f"{_REMEDY}"
    )
