"""The HTTP engine: a model behind a server that speaks OpenAI's protocol, such as vLLM."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any, TypeVar

from PIL import Image

from unprior.engines.answer_search import check_count
from unprior.engines.candidate_tree import Token
from unprior.engines.openai.asking import Asking
from unprior.engines.openai.client import HttpClient, RetryPolicy, UnreachableError, WrongAnswerError
from unprior.engines.openai.endings import EndProbe
from unprior.engines.openai.images import Shown, encode_image
from unprior.engines.openai.replies import NamedModel, prompt_tokens
from unprior.engines.openai.sameness import SameServers
from unprior.engines.openai.server import examine
from unprior.engines.openai.sizes import Sizes
from unprior.engines.openai.sizes_probe import SizesProbe
from unprior.engines.openai.tokens import ServerTokenizer
from unprior.engines.probe import probe_texts, prompt_digest
from unprior.engines.protocol import (
    Answered,
    CandidateScores,
    Capabilities,
    Proposed,
    Query,
    QueryFailure,
    fingerprint_of,
    proposed,
)
from unprior.errors import UnpriorError
from unprior.prompts import PromptLayout

MAX_NEW_TOKENS = 64
_BATCH_PER_SLOT = 4  # queries handed over at once for every one in flight: the last of a batch wait for few

Result = TypeVar("Result")


class HttpEngine:
    """Original answers and candidate scores from a served model.

    Scores are exact where the server tells the log-probability of any token it is asked for (vLLM 0.26 and newer).
    Where it shows only the most probable tokens, candidates outside are censored: their score is an upper bound and
    marked. What a server can do is found out by asking it. Every answer is checked; a wrong one is asked for again and
    never becomes a score. The API key is read from ``UNPRIOR_API_KEY`` or ``OPENAI_API_KEY``.

    The fingerprint covers what the server tells: model and what replies call it, what it was loaded from, longest
    prompt, version, and the tokens of a question behind its chat template. It cannot notice other weights behind the
    same name. A reply that names another model than those before ends the run.

    Parameters
    ----------
    model
        The model's name on the server.
    base_urls
        One or more equal servers. Queries take turns; all requests of one query go to one server.
    concurrency
        Queries in flight.
    layout
        The wording around questions.
    retry_policy
        Timeouts and retries.
    name
        What score tables call the model; by default its name on the server.
    max_new_tokens
        Longest original answer, in tokens; a thinking model needs more than the paper's 64.
    template_arguments
        What the chat template is told beside the conversation, e.g. ``{"enable_thinking": False}``; for servers that
        take ``chat_template_kwargs``, as vLLM does.
    """

    def __init__(
        self,
        model: str,
        base_urls: Sequence[str],
        *,
        concurrency: int = 16,
        layout: PromptLayout | None = None,
        retry_policy: RetryPolicy | None = None,
        name: str | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Find out what the servers are and can do."""
        if concurrency < 1:
            raise UnpriorError(f"the concurrency is {concurrency}, it must be at least 1")
        self._name, self._layout, self.concurrency = name or model, layout or PromptLayout(), concurrency
        self._client = HttpClient(base_urls, retry_policy or RetryPolicy(), self._layout.system)
        self.max_new_tokens = max_new_tokens
        """Longest original answer."""
        self._loop = asyncio.new_event_loop()
        # Our own thread, so that the engine also works where an event loop is running already, as in notebooks.
        thread = threading.Thread(target=self._loop.run_forever, name="unprior-http", daemon=True)
        thread.start()
        self._close = weakref.finalize(self, _stop, self._loop, thread, self._client)
        try:
            self.served = self._run(examine(self._client, model, template_arguments or {}))
            self._tokenizer = self._new_tokenizer()
            self._prompt = self._run(self._probe_prompt())
            self.remarks = self._run(self._find_remarks())
            """What people should know about this server, found out when it was asked first."""
            self._named = NamedModel(self._client.mask, self.served.served_model)
            end = self._run(EndProbe(self._client, self._tokenizer, self.served, self._named).find())
        except BaseException:
            self.close()
            raise
        self._asking = Asking(
            self._client, self._tokenizer, self.served, self._named, end, self._layout, max_new_tokens
        )

    def close(self) -> None:
        """Give up the connections; the engine cannot be used any more."""
        self._close()

    @property
    def name(self) -> str:
        """What score tables call the model."""
        return self._name

    @property
    def model_type(self) -> str | None:
        """The architecture, as far as the model's name tells it."""
        for name in (self.served.root, self.served.model):
            if "qwen3-vl" in name.lower().replace("_", "-"):
                return "qwen3_vl"
        return None

    @property
    def layout(self) -> PromptLayout:
        """The wording around questions."""
        return self._layout

    @property
    def capabilities(self) -> Capabilities:
        """What the server was seen to do."""
        top_k = self.served.top_k
        batch_size = _BATCH_PER_SLOT * self.concurrency
        return Capabilities(top_k is None, top_k, batch_size=batch_size, proposes=self._asking.end is not None)

    @property
    def retry_policy(self) -> RetryPolicy:
        """Timeouts and retries; another one counts from the next request on."""
        return self._client.retry_policy

    @retry_policy.setter
    def retry_policy(self, policy: RetryPolicy) -> None:
        self._client.retry_policy = policy

    @property
    def requests(self) -> int:
        """Requests sent so far, repeated ones included."""
        return self._client.requests

    @property
    def identity(self) -> dict[str, str]:
        """What the fingerprint is made of, for people."""
        from unprior._version import __version__

        told = asdict(self.served)
        if not told["template_arguments"]:  # results of runs that tell nothing keep their fingerprint
            del told["template_arguments"]
        served = {key: self._client.mask(str(value)) for key, value in told.items()}
        prompt = {} if self._prompt is None else {"prompt": self._prompt}
        return {"engine": "openai", **served, **prompt, "unprior": __version__}

    @cached_property
    def fingerprint(self) -> str:
        """Changes with what the server tells about its model and itself, and with the layout."""
        return fingerprint_of(self.identity, self._layout, self.max_new_tokens)

    def original_answer(self, image: Image.Image | None, question: str) -> str:
        """Greedy answer to one question."""
        return self._run(self._asking.original(self._shown(image), question))

    def score_candidates(self, image: Image.Image | None, question: str, candidates: Sequence[str]) -> CandidateScores:
        """Scores of candidate answers to one question."""
        return self._run(self._asking.score(Query(image, question, tuple(candidates)), self._shown(image)))

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores for many queries."""
        return self._run(self._all(queries, self._asking.score))

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        """Original answers and scores for many queries."""
        return self._run(self._all(queries, self._asking.answer))

    def propose(self, image: Image.Image | None, question: str, count: int) -> Proposed:
        """The most probable whole answers to one question."""
        return proposed(self, image, question, count)

    def propose_batch(self, queries: Sequence[Query], count: int) -> list[Proposed | QueryFailure]:
        """The most probable whole answers to every query, and their scores beside those of the query's candidates.

        Behind a server that shows only the most probable tokens, scores outside of them are censored as ever.
        """
        return self._run(self.propose_async(queries, count))

    @property
    def score_in_full(self) -> Callable[[Query], CandidateScores] | None:
        """Scores past the server's cache of prompts, for ``unprior doctor``; None where that cannot be asked for."""
        if not self.served.tells_prompt or self.served.top_k is not None:
            return None
        return lambda query: self._run(self._asking.score(query, self._shown(query.image, in_full=True)))

    def candidate_tokens(self, query: Query) -> list[list[tuple[Token, str]]] | None:
        """Number and text of every token of the candidates; None if the server does not tell."""

        async def tell() -> list[list[tuple[Token, str]]]:
            found = await self._asking.tokens(query)
            text = self._tokenizer.text_of
            return [[(token, await text([token])) for token in each] for each in found.candidates]

        return self._run(tell()) if self.served.tokenizes else None

    def prompt_as_read(self, image: Image.Image | None, text: str) -> str | None:
        """The prompt of a question as the model read it, tokens of the image included; None if that is not told."""

        def check(answer: Any) -> list[int]:
            tokens = prompt_tokens(answer)
            if tokens is None:
                raise WrongAnswerError("it does not repeat the prompt")
            return tokens

        async def tell() -> str:
            tokens = await self._asking.post(self._shown(image), text, None, {"return_token_ids": True}, check)
            return await self._tokenizer.text_of(tokens)

        return self._run(tell()) if self.served.tells_prompt else None

    def sizes(self, queries: Sequence[Query], texts: Sequence[str] = ()) -> Sizes:
        """What the cost model must know: ask a few queries with images, and have further texts tokenised."""
        probe = SizesProbe(self._client, self._tokenizer, self.served, self._layout.scoring_suffix, self.max_new_tokens)
        return self._run(probe.sizes(queries, texts))

    async def awaited(self, work: Coroutine[Any, Any, Result]) -> Result | QueryFailure:
        """Wait in another event loop for this engine's own work; cancelling it gives up its requests."""
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        except UnpriorError as error:
            return QueryFailure(str(error))

    async def answer_apart(
        self, image: Image.Image, queries: Sequence[Query], patience: float
    ) -> list[tuple[str, CandidateScores | QueryFailure] | QueryFailure]:
        """Original answers to questions about one image, and the scores or why there are none in so many seconds.

        For :meth:`awaited`. All of them go to one server, which then has read the image already.
        """
        shown = Shown(await asyncio.to_thread(encode_image, image), self._client.turn())
        slots = asyncio.Semaphore(self.concurrency)

        async def one(query: Query) -> tuple[str, CandidateScores | QueryFailure] | QueryFailure:
            async with slots:
                return await self._asking.answer_soon(query, shown, patience)

        return await asyncio.gather(*map(one, queries))

    def watch(self) -> SameServers:
        """Compare the servers now, and later with what they are now; its ``difference`` is for :meth:`awaited`."""
        return SameServers(self._asking, self._run)

    async def answer_alone(self, image: Image.Image, text: str) -> str:
        """The original answer to one question; for :meth:`awaited`."""
        return await self._asking.original(
            Shown(await asyncio.to_thread(encode_image, image), self._client.turn()), text
        )

    async def score_async(self, query: Query) -> CandidateScores:
        """Scores of candidate answers to one question; for :meth:`awaited`."""
        return await self._asking.score(query, self._shown(query.image))

    async def propose_async(self, queries: Sequence[Query], count: int) -> list[Proposed | QueryFailure]:
        """The most probable whole answers to every query, as :meth:`propose_batch`; for :meth:`awaited`."""
        check_count(count)
        self._asking.require_end()
        return await self._all(queries, partial(self._asking.propose, count=count))

    async def _all(
        self, queries: Sequence[Query], work: Callable[[Query, Shown], Awaitable[Result]]
    ) -> list[Result | QueryFailure]:
        """Work on all, so many at a time; a query that fails does not spoil the others."""
        if self._named.changed is not None:  # seen in the batch before, whose good results are stored by now
            raise self._named.changed
        slots, gone = asyncio.Semaphore(self.concurrency), []
        ahead = asyncio.Semaphore(2 * self.concurrency)  # images are encoded while the server works on others

        async def one(query: Query) -> Result | QueryFailure:
            async with ahead:
                image = None if query.image is None else await asyncio.to_thread(encode_image, query.image)
                async with slots:
                    try:
                        return await work(query, Shown(image, self._client.turn()))
                    except UnpriorError as error:
                        if isinstance(error, UnreachableError):
                            gone.append(error)
                        return QueryFailure(str(error))

        results = await asyncio.gather(*(one(query) for query in queries))
        if gone and len(gone) == len(queries):  # not one answer: going on would fail everything that is left
            raise UnpriorError(f"the server is gone; what was scored so far is stored: {gone[0]}")
        return results

    def _shown(self, image: Image.Image | None, *, in_full: bool = False) -> Shown:
        return Shown(encode_image(image), self._client.turn(), in_full)

    def _new_tokenizer(self, only: int | None = None) -> ServerTokenizer:
        served = self.served
        return ServerTokenizer(
            self._client, served.model, adds_start=served.adds_start, settings=served.template_settings, only=only
        )

    async def _probe_prompt(self) -> str | None:
        """What tells one chat template from another: the tokens of a fixed question; None if the server has none."""
        if not self.served.tokenizes:
            return None
        found = set()
        for server in range(len(self._client.base_urls)):
            asked = self._new_tokenizer(only=server)
            found.add(prompt_digest([await asked.chat(text) for text in probe_texts(self._layout)]))
        if len(found) > 1:
            raise UnpriorError(
                f"the servers lay out one question for {self.served.model} in different ways; give only servers with "
                f"the same chat template"
            )
        return found.pop()

    async def _find_remarks(self) -> tuple[str, ...]:
        served, remarks = self.served, []
        if served.served_model not in {"", served.model}:
            remarks.append(
                f"{served.model}: the server answers as {self._client.mask(served.served_model)!r}; this is recorded, "
                f"and an answer under yet another name will end the run"
            )
        if served.tokenizes:
            beginning = self._layout.continuations(("yes",))[0]
            if not await self._tokenizer.continues(probe_texts(self._layout)[1], beginning):
                remarks.append(
                    f"{served.model}: the chat template does not leave words such as {beginning!r} as they are, so "
                    f"only candidates of one token can be scored exactly; serve the model with a template that does"
                )
        return tuple(remarks)

    @property
    def refusal(self) -> str | None:
        """Why the server's scores are of no use, and what to do; None where they are."""
        return self.served.refusal(self._client.base_urls[0])

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupted run leaves no requests behind
            raise


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, client: HttpClient) -> None:
    closing = asyncio.run_coroutine_threadsafe(client.close(), loop)
    if threading.current_thread() is thread:  # the collector may run anywhere, also in the loop it would wait for
        closing.add_done_callback(lambda _: loop.stop())
        return
    closing.result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
    loop.close()
