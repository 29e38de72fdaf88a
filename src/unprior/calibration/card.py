"""The card of a calibrator: what it was fitted on, what it does and promises, and what it is not for.

Everything on it comes from the calibrator; what the calibrator does not know is said to be unknown.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict

from unprior._text import one_line
from unprior._version import __version__
from unprior.calibration.decisions import method_name
from unprior.calibration.features import ALL_FEATURES
from unprior.calibration.gate import CONDITIONS
from unprior.calibration.show import limit_in_words, outcome_table, settings_table
from unprior.calibration.state import FittedState
from unprior.scores.provenance import Provenance, size_text
from unprior.tables.markdown import as_markdown, escape
from unprior.tables.model import Table

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
"""A repository on the hub: owner and name."""
UNKNOWN = "not known"
_FRONT = """---
library_name: unprior
tags:
- unprior
- calibration
- selective-prior-calibration
- vision-language
{base_model}---
"""


def calibration_card(
    state: FittedState, results: Sequence[Table] = (), *, name: str | None = None, about: str = "", content: bytes = b""
) -> str:
    """The card as Markdown, with the front matter of a model card of the Hugging Face hub.

    Parameters
    ----------
    state
        What was fitted.
    results
        What it did on rows that had no part in fitting, such as the ``changes_table`` of an evaluation.
    name
        Where it is loaded from: a repository of the hub, or a folder; None leaves out how to load it.
    about
        A paragraph of one's own, in Markdown.
    content
        The calibrator file, for its digest.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> print(calibration_card(SelectivePriorCalibrator().fit(synthesize(seed=0)).state_).splitlines()[9])
    # Calibrator of synthetic
    """
    model = state.model_name or "a model without a name"
    parts = [
        f"# Calibrator of {escape(model)}",
        *([about] if about else []),
        f"A calibrator for Selective Prior Calibration (SPC). It decides whether an answer of one vision-language "
        f"model to a question about an image is kept, or replaced by the candidate that leads once the model's prior, "
        f"its scores without the image, is subtracted. It holds no weights of a model. {escape(limit_in_words(state))} "
        f"CF are counterfactual images, which contradict what everyone expects, and CS commonsense images.",
        *([] if name is None else [_usage(model, name)]),
        "## The model\n\n" + as_markdown(_facts(state.provenance, state.model_name, _MODEL)),
        "## The data\n\n" + as_markdown(_facts(state.provenance, state.model_name, _DATA)) + "\n\n" + _rows(state),
        "## Settings\n\n" + _settings(state),
        "## Development rows\n\nIt was fitted on these rows, so they flatter it.\n\n" + _development(state),
        "## Held-out rows\n\n" + _results(results),
        "## What it promises\n\n" + _promise(state),
        "## Out-of-scope uses\n\n" + _out_of_scope(state),
        _origin(content),
    ]
    return _front_matter(state.model_name) + "\n" + "\n\n".join(parts) + "\n"


def _front_matter(model: str | None) -> str:
    """Only a name of the hub is a link there; other names are of no use to it."""
    known = model is not None and HUB_NAME.fullmatch(model) is not None
    return _FRONT.format(base_model=f"base_model: {model}\n" if known else "")


def _usage(model: str, name: str) -> str:
    quoted, place = shlex.quote(one_line(model)), one_line(name)
    return (
        f"```python\nfrom unprior import SelectivePriorCalibrator\n\n"
        f"calibrator = SelectivePriorCalibrator.from_pretrained({place!r})\n```\n\n"
        f"```console\n$ unprior ask photo.jpg 'How many fingers?' --options 'five|six' --model {quoted} "
        f"--calibrator {shlex.quote(place)}\n```"
    )


_MODEL = {
    "model": "Model",
    "served_model": "Served as",
    "weights": "Weights (digest of the files, or commit on the hub)",
    "precision": "Precision",
    "prompt": "Prompt (digest)",
    "image_size": "Image size",
    "prior": "Prior scores from",
    "engine": "Engine",
    "versions": "Libraries",
    "date": "Scored",
}
_DATA = {"benchmark": "Benchmark", "revision": "Revision of the benchmark", "questions": "Questions (digest)"}
_COMPARED = ("weights", "precision", "prompt", "image_size", "prior")
"""What is compared before a calibrator is used, beside the name of the model."""


def _facts(records: Sequence[Provenance], model: str | None, wanted: dict[str, str]) -> Table:
    """What is known of how the scores were made; where records differ, every value."""
    made = list(records) or [Provenance(model=model)]
    rows = [
        (label, "; ".join(dict.fromkeys(_fact(each, name) for each in made)))
        for name, label in wanted.items()
        if _is_told(made, name)
    ]
    return Table.plain("", ("", ""), rows, "", text_columns=2)


def _is_told(records: Sequence[Provenance], name: str) -> bool:
    """A model is rarely served under another name; that it is not need not be told."""
    return name != "served_model" or any(each.served_model for each in records)


def _fact(record: Provenance, name: str) -> str:
    value = getattr(record, name)
    if name == "versions":
        return ", ".join(f"{library} {version}" for library, version in value.items()) or UNKNOWN
    if value is None:
        return UNKNOWN
    return size_text(value) if name == "image_size" else f"the {value} view" if name == "prior" else str(value)


def _parts(state: FittedState) -> list[FittedState]:
    """What was fitted on questions with options, and on open questions."""
    return [part for part in (state, state.open) if part is not None]


def _counts(state: FittedState) -> str:
    """The numbers of candidates that were seen."""
    *others, last = map(str, state.candidate_counts)
    return f"{', '.join(others)} or {last}" if others else last


def _rows(state: FittedState) -> str:
    told = []
    for part in _parts(state):
        kind = "questions with options" if part.scale is None else "open questions"
        told.append(f"Fitted on {part.development_rows:,} rows of {kind}, with {_counts(part)} candidates.")
    if state.certificate is not None:
        told.append(f"The task with the fewest development pairs has {state.certificate.pairs:,} of them.")
    return " ".join(told)


def _settings(state: FittedState) -> str:
    parameters = state.parameters
    values = {
        "Version": method_name(parameters.version, parameters.epsilon_cs),
        "Retention": parameters.retention,
        "ε": f"{parameters.epsilon_cs:g}",
        **({} if parameters.retention == "paper" else {"δ": f"{parameters.delta:g}"}),
        "Strength": ", ".join(
            [type(parameters.rule).__name__.lower(), *(f"{v:g}" for v in asdict(parameters.rule).values())]
        ),
        "Prior": parameters.prior + (", strict" if parameters.strict else ""),
        **({} if parameters.features == ALL_FEATURES else {"Features": ", ".join(parameters.features) or "none"}),
        **(
            {}
            if parameters.conditions == CONDITIONS
            else {"Conditions": ", ".join(parameters.conditions or ()) or "none"}
        ),
        **({} if parameters.fit_on == "both" else {"Fitted on": parameters.fit_on}),
        **({} if parameters.select_on == "both" else {"Chosen on": parameters.select_on}),
    }
    tables = [Table.plain("", ("Parameter", "Value"), list(values.items()), "", text_columns=2)]
    tables += [settings_table(part) for part in _parts(state) if part.settings is not None]
    return "\n\n".join([f"**{escape(table.title)}**\n\n" * bool(table.title) + as_markdown(table) for table in tables])


def _development(state: FittedState) -> str:
    tables = [outcome_table(part) for part in _parts(state) if part.settings is not None]
    return "\n\n".join(map(as_markdown, tables)) or "It abstains: it changes no answer."


def _results(results: Sequence[Table]) -> str:
    if not results:
        return (
            "Repairs and harms on rows that had no part in fitting are not known to this card. `unprior evaluate` "
            "measures them."
        )
    return "\n\n".join(f"**{escape(table.title)}**\n\n{as_markdown(table)}" for table in results)


def _promise(state: FittedState) -> str:
    certificate = state.certificate
    if certificate is None:
        return (
            "Nothing about new pairs. Its settings were chosen by what they do to the development pairs; on new pairs "
            "they often lose more. `unprior fit --retention certified` makes a calibrator with a promise."
        )
    drawn = "the mixture that was asked for" if certificate.has_target else "the development pairs"
    mixture = ", ".join(f"{escape(name)} {100 * share:.1f} %" for name, share in certificate.mixture)
    told = f" {drawn[0].upper()}{drawn[1:]}: {mixture}." if mixture else ""
    return f"{escape(certificate.sentence)} It is {certificate.label} for pairs drawn like {drawn}.{told}"


def _out_of_scope(state: FittedState) -> str:
    made = state.provenance or (Provenance(model=state.model_name),)
    unknown = [_MODEL[name] for name in _COMPARED if all(getattr(each, name) is None for each in made)]
    lines = [
        f"Any model but {escape(state.model_name)}: it is refused there, and so are other weights, another precision, "
        "another wording of the prompt and another image size."
        if state.model_name
        else "Any model but the one that it was fitted on, whose name is not known here.",
    ]
    if unknown:
        lines.append(f"Not noted, so that a difference would not be noticed: {escape('; '.join(unknown))}.")
    benchmarks = sorted({each.benchmark for each in made if each.benchmark})
    where = (
        f"those of {escape(', '.join(benchmarks))}" if benchmarks else "its development data, whose name is not known"
    )
    lines.append(f"Images and questions that are not like {where}: what is told above says nothing about them.")
    for part in _parts(state):
        kind = "Questions" if part.scale is None else "Open questions"
        lines.append(f"{kind} with other than {_counts(part)} candidates: their answers are kept.")
    if state.open_part is None:
        lines.append("Open questions: it was fitted on none, and keeps their answers.")
    if state.closed_part is None:
        lines.append("Questions with options: it was fitted on open ones only, and keeps their answers.")
    return "\n".join(f"- {line}" for line in lines)


def _origin(content: bytes) -> str:
    digest = f" `calibrator.json` has the SHA-256 digest `{hashlib.sha256(content).hexdigest()}`." if content else ""
    return f"Written by unprior {__version__} from the calibrator.{digest}"
