"""Counts for Prometheus; every label has few values, whatever clients send."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from unprior.serving.decider import UNAVAILABLE, Arm, Outcome
from unprior.serving.replies import decision_name, reason_of

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


class Metrics:
    """What is counted about one server."""

    def __init__(self) -> None:
        """Begin at zero."""
        own = self.registry = CollectorRegistry()
        self.requests = Counter("unprior_requests", "Requests", ["route", "status"], registry=own)
        self.decisions = Counter("unprior_decisions", "Answers", ["decision", "reason"], registry=own)
        self.seconds = Histogram("unprior_request_seconds", "Of a request", ["route"], registry=own, buckets=_SECONDS)
        self.upstream_seconds = Histogram(
            "unprior_upstream_seconds", "Of asking the model", ["arm"], registry=own, buckets=_SECONDS
        )
        self.prior_cache = Counter("unprior_prior_cache", "Priors", ["result"], registry=own)
        self.mass = Histogram(
            "unprior_candidate_mass", "The model's probability of all candidates, with the image",
            registry=own, buckets=_SHARES,
        )  # fmt: skip
        self.unavailable = Counter(
            "unprior_unavailable", "Original answers that went out without a decision", ["reason"], registry=own
        )
        self.log_failures = Counter("unprior_log_failures", "Decisions that could not be logged", registry=own)
        self.inside = Gauge("unprior_requests_inside", "Requests worked on or waiting", registry=own)

    def timing(self, arm: Arm) -> AbstractContextManager[Any]:
        """Measure how long the model takes."""
        return self.upstream_seconds.labels(arm).time()

    def count(self, outcomes: Iterable[Outcome], *, enforce: bool) -> None:
        """Count what was decided."""
        for outcome in outcomes:
            reason = reason_of(outcome)
            self.decisions.labels(decision_name(outcome, enforce=enforce), reason).inc()
            if outcome.prior_known is not None:
                self.prior_cache.labels("hit" if outcome.prior_known else "miss").inc()
            if reason in UNAVAILABLE:
                self.unavailable.labels(reason).inc()
            if outcome.answer is not None:
                self.mass.observe(outcome.answer.mass)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)
