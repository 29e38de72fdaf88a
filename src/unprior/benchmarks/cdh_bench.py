"""CDH-Bench: 300 pairs of commonsense and counterfactual images, one choice and one yes/no question each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unprior._files import is_file, open_to_read
from unprior.benchmarks.annotations import find_file, find_folder, read_json_lines
from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.schema import LETTERS, OPEN, Benchmark, Example
from unprior.benchmarks.sources import HubDataset
from unprior.benchmarks.splits import split_by_rule
from unprior.benchmarks.variants import Claims, constructed, relabelled
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

_SIDES = {"cf": "counterfactual", "cs": "commonsense"}
_MARKER = re.compile(r"(?:^|[\s•]+)([A-D])\.\s+")

PACKED = (56, 59, 62, 65, 66, 262)
BROKEN = (171, 176, 243, 244, 245, 290, 293)
INVERTED = (169, 172, 180, 232, 234, 236, 243, 268, 274, 277, 282, 286, 287, 296, 300)
"""Pairs whose yes/no labels say that the ordinary claim holds on the counterfactual image only."""
EXCHANGED = (280,)
"""Pairs whose choice labels are exchanged: “yes” stands for the option that is labelled as counterfactual."""
UNMATCHED = (54, 58, 77)
"""Pairs whose choice and yes/no question are about different things or numbers, so that no claims are known."""
NAMED: dict[int | str, Claims] = {222: Claims(ordinary="green", atypical="purple")}
"""Claims of pairs whose choice labels do not tell them apart."""
NOT_OPEN = (22, 126, 147, 148, 155, 159, 160, 179, 280, 291, 294, 300)
"""Pairs whose choice question speaks of its options, so that it cannot be asked without them."""

CARD = Card(
    name="cdh-bench",
    about="300 pairs in 14 subcategories, one choice and one yes/no question each; the paper's main benchmark",
    published="hub dataset cks19999/CDH-Bench, GitHub MiLab-HITSZ/2026ChenCDH-Bench",
    revision="main, not pinned",
    licence="MIT",
    citation="Chen et al., CDH-Bench, 2026",
    counts={"pairs": 300, "examples": 1200, "images": 600, "dev": 70, "test": 230},
    flaws=(
        Flaw("all options stand in one string", "repaired: split at the letters", PACKED),
        Flaw("options are broken at their commas", "repaired: the fragments are joined again with “, ”", BROKEN),
        Flaw(
            "both choice labels are A, and no option is purple",
            "kept as published; claims and open questions use the pair's name: green (ordinary) and purple",
            (222,),
        ),
        Flaw(
            "the choice question asks about blades (77) or a cactus (54), its options are wheels or petals",
            "kept as published; the yes/no question has no claims",
            (54, 77),
        ),
        Flaw(
            "the choice labels say one stem and three, the yes/no question asks about one and two",
            "kept as published; the yes/no question has no claims",
            (58,),
        ),
        Flaw(
            "the choice labels are exchanged: “rigid” on the commonsense image of a rope",
            "kept as published; “yes” stands for the flexible rope, as the yes/no question says",
            EXCHANGED,
        ),
        Flaw("options C and D are the same text", "kept as published; only C counts as right", (9,)),
        Flaw("options A and D are the same text", "kept as published; only D counts as right", (51,)),
        Flaw("the question starts with “MC:”", "repaired: left out", (56,)),
        Flaw("both images show three centers, labelled two and one", "kept as published", (56,)),
        Flaw(
            "the yes/no labels are exchanged: “yes, the ordinary claim holds” on the counterfactual image",
            "kept as published, because published results use them; --variant qa-relabelled exchanges them",
            INVERTED,
        ),
    ),
    image_sides={"qwen3_vl": 512},
    synonyms=(
        ("gray", "grey"),
        ("vapor", "vapour"),
        ("airplane", "aeroplane"),
        ("transparent", "see-through"),
        ("gaseous", "gas"),
    ),
)


def load(folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """Read the upstream layout: ``benchmark.jsonl`` and ``images/…/Pair_N/{counterfactual,commonsense}.{png,jpg}``.

    The images need not be there; :meth:`~unprior.benchmarks.schema.Benchmark.missing_images` names those that are not.
    """
    path = _renamed(folder) or find_file(folder, "benchmark.jsonl", CARD)
    images = find_folder(folder, "images")
    examples = [
        example
        for number, record in read_json_lines(path)
        for example in _pair(record, images, f"{path}, line {number}")
    ]
    return split_by_rule(Benchmark(CARD.name, examples, CARD))


def _renamed(folder: Path) -> Path | None:
    """The file of pairs under another name, when it is the only one: repositories get tidied up."""
    files = [*folder.glob("*.jsonl"), *folder.glob("data/*.jsonl")]
    if any(path.name == "benchmark.jsonl" for path in files):
        return None
    fitting = []
    for path in filter(Path.is_file, files):
        with open_to_read(path) as stream:
            if b'"multiple_choice"' in stream.readline():
                fitting.append(path)
    return fitting[0] if len(fitting) == 1 else None


def repair_options(options: Sequence[str]) -> tuple[str, ...]:
    """Texts of the four options, whether they are packed in one string or broken at commas.

    >>> repair_options(["A. Hot  B. Warm C. Cold D. Room temperature"])
    ('Hot', 'Warm', 'Cold', 'Room temperature')
    >>> repair_options(["A. No", "weightless", "B. Slightly heavy", "C. Yes", "heavy", "D. Negative weight"])
    ('No, weightless', 'Slightly heavy', 'Yes, heavy', 'Negative weight')
    """
    whole: list[str] = []
    for option in options:
        if _MARKER.match(option):
            whole.append(option)
        elif whole:
            whole[-1] += f", {option.strip()}"
        else:
            raise ValueError(f"the first option is {option!r}, without its letter")
    pieces = _MARKER.split(" ".join(whole))
    if sorted(pieces[1::2]) != list(LETTERS):
        raise ValueError(f"the options are {', '.join(pieces[1::2]) or 'none'}, not A, B, C, D")
    return tuple(text.strip() for _, text in sorted(zip(pieces[1::2], pieces[2::2], strict=True)))


def _pair(record: Mapping[str, Any], images: Path, where: str) -> Iterator[Example]:
    try:
        number = int(str(record["pair_id"]).removeprefix("Pair "))
        choice, claim = record["multiple_choice"], record["direct_qa"]
        texts = repair_options(choice["options"])
        folder = images / record["subcategory"].replace(" ", "_").replace("/", "_") / f"Pair_{number}"
        common = {"pair_id": number, "category": record["category"], "subcategory": record["subcategory"]}
        questions = (choice["question"].removeprefix("MC:").strip(), claim["question"].strip())
        labels = [(side, choice[f"{name}_gt"], claim[f"{name}_gt"].lower()) for side, name in _SIDES.items()]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnpriorError(f"{where}: not a pair of CDH-Bench ({error!r}); get the file again") from None
    if any(letter not in LETTERS or answer not in YES_NO for _, letter, answer in labels):
        raise UnpriorError(f"{where}: pair {number} has the labels {labels}; A–D, and yes or no, needed")
    claims = _claims(number, *(texts[LETTERS.index(letter)] for _, letter, _ in reversed(labels)))
    for side, letter, answer in labels:
        placed = {**common, "image": _image(folder, _SIDES[side]), "side": side}
        yield Example(f"{number}-{side}-mc", question=questions[0], task="mc", labels=LETTERS, texts=texts,
                      answer=letter, **placed)  # fmt: skip
        yield Example(f"{number}-{side}-qa", question=questions[1], task="qa", labels=YES_NO, answer=answer,
                      claims=claims, open_question=None if claims is None else questions[0], **placed)  # fmt: skip


def _claims(number: int, ordinary: str, atypical: str) -> tuple[str, str] | None:
    """The two claims of a yes/no question, the one of “yes” first, in the words of the options.

    The wording decides, not the labels: “Is the ice cold and not hot?” is about the ordinary claim whatever its labels
    say.
    """
    if number in NAMED:
        return NAMED[number]
    if number in UNMATCHED or ordinary == atypical:
        return None
    return (atypical, ordinary) if number in EXCHANGED else (ordinary, atypical)


def _image(folder: Path, name: str) -> Path:
    """The image in whichever of the published formats is there."""
    paths = [folder / f"{name}{suffix}" for suffix in (".png", ".jpg", ".jpeg")]
    return next((path for path in paths if is_file(path)), paths[0])


_CONSTRUCTED = constructed(NAMED)
ENTRY = Entry(
    CARD,
    load,
    variants={
        **_CONSTRUCTED,
        OPEN: replace(_CONSTRUCTED[OPEN], about=f"{_CONSTRUCTED[OPEN].about} ({len(NOT_OPEN)} of 300 pairs)"),
        "qa-relabelled": relabelled(INVERTED),
    },
    sources=(HubDataset("cks19999/CDH-Bench"),),
)
