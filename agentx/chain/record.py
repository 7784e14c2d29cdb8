"""What is made of each outcome: who rests, who is in use, what is told and what it cost in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentx.chain import ledger, verdict
from agentx.chain.classify import Failure
from agentx.chain.decide import BROKEN, Step
from agentx.chain.health import Health, Rest
from agentx.chain.returns import Position
from agentx.chain.visit import Visit
from agentx.chain.walk_state import Charge, Walk
from agentx.config.links import Link
from agentx.errors import ContextOverflow
from agentx.events import Event, LinkSwitched, Purpose


class Record:
    """The memory of a chain between and within requests; the links themselves are asked elsewhere."""

    def __init__(
        self,
        links: Sequence[Link],
        *,
        health: Health,
        tell: Callable[[Event], object],
        price: ledger.Price,
        now: Callable[[], float],
    ) -> None:
        self.links = tuple(links)
        self.health = health
        self.position = Position()
        self.too_small: set[str] = set()
        """Names of those that are known not to hold the request."""
        self.mended: set[str] = set()
        """Identities of those that take the history only when it is repaired."""
        self._lost = 0.0
        """Seconds of this request that led to no answer, since the last switch."""
        self._paid: set[str] = set()
        self._tell = tell
        self._price = price
        self._now = now

    def begin(self) -> None:
        """Another request looks for its answer."""
        self._lost = 0.0

    def returning(self, link: Link) -> bool:
        """To ask *link* would be a return to a preferred one."""
        return self.position.returning(link, self.links)

    def switch(self, link: Link, reason: str) -> None:
        """Say, once, that another link is asked than before."""
        before = self.position.move(link, self.links)
        if before is not None:
            lost, self._lost = round(self._lost, 3), 0.0
            paid = link.on_consent and not before.on_consent
            self._tell(LinkSwitched(from_=before.name, to=link.name, reason=reason, seconds_lost=lost, paid=paid))
        if link.on_consent and link.name not in self._paid:
            self._paid.add(link.name)
            if not all(other.on_consent for other in self.links[: self.links.index(link)]):
                self._tell(ledger.falls_to_paid(link))

    def failed(
        self, link: Link, failure: Failure, spent: ledger.Spent, walk: Walk, purpose: Purpose = "turn"
    ) -> None:
        """A request to *link* failed, and this is trouble."""
        self.tried(link, failure, spent, purpose)
        self._lost += spent.seconds + spent.pause
        walk.reached = walk.reached or failure.connected
        self.note(walk, verdict.of_failure(link, failure))

    def tried(self, link: Link, failure: Failure, spent: ledger.Spent, purpose: Purpose) -> None:
        """Tell of a failed request to *link*, and what it cost."""
        self._tell(ledger.failed(link, failure, spent, self._price, purpose))

    def unmade(self, link: Link, error: ContextOverflow, seconds: float, walk: Walk) -> None:
        """No request for *link* can be made: it is too small."""
        if link.name not in self.too_small:
            self._tell(ledger.unmade(link, error, seconds))
            self._lost += seconds
        self.shut_out(walk, verdict.of_overflow(link, error))

    def shut_out(self, walk: Walk, ended: verdict.Ended) -> None:
        """A link is passed over without a word until a request for it can be made."""
        self.too_small.add(ended.link)
        walk.unfit.add(ended.link)
        self.note(walk, ended)

    def note(self, walk: Walk, ended: verdict.Ended) -> None:
        walk.ended[ended.link] = walk.last = ended
        walk.in_trouble(self._now())

    def fate(self, visit: Visit, step: Step, walk: Walk) -> None:
        """Give the link of *visit* what *step* says becomes of it."""
        failure, link = visit.failure, visit.link
        assert failure is not None
        walk.broken[link.name], walk.told = visit.attempts.broken, visit.attempts.told
        if step.fate in ("out", "rest") or failure.error_class in BROKEN:
            self.charge(link, failure, walk, out=step.fate == "out")
        if step.fate == "unfit":
            walk.unfit.add(link.name)

    def charge(self, link: Link, failure: Failure, walk: Walk, *, out: bool) -> None:
        """Let *link* rest for *failure*."""
        self.position.failed(link, self._now())
        if out:
            self.health.out(link, failure.error_class, failure.message, failure.reach)
            return
        missed = walk.missed.get(link.name)
        before = missed.before if missed else self.health.last(link)
        rest = self.health.rest(link, failure.retry_at, failure.error_class, failure.message, failure.reach)
        if not failure.connected:
            walk.missed[link.name] = Charge(link, rest, before)

    def served(self, visit: Visit, walk: Walk) -> None:
        """The link is well. What others refused and it did not was their own trouble: they rest."""
        assert visit.request is not None
        self.switch(visit.link, visit.reason)
        self.position.served(visit.link, visit.request.estimate)
        self.health.succeeded(visit.link, visit.sent)
        if visit.attempts.repaired:
            self.mended.add(visit.link.identity)
        for other in self.links:
            ended = walk.ended.get(other.name)
            if ended is None or ended.error_class == "cut":  # a reply that is too long is no link's trouble
                continue
            if other.name in walk.unfit and other.name not in self.too_small:
                self.health.rest(other, None, ended.error_class, ended.message)

    def why(self, link: Link, walk: Walk, barred: Callable[[Link], str | None]) -> str:
        """Why *link* is the one to be asked."""
        if walk.last is not None:
            same = walk.last.link == link.name
            what = "its cap" if walk.last.capped else walk.last.error_class
            return "asked again after a rest" if same else f"{walk.last.link}: {what}"
        for other in self.links[: self.links.index(link)]:
            if (why := barred(other)) is not None:
                return f"{other.name}: {why}"
            if (rest := self.health.resting(other)) is not None:
                return f"{other.name}: {rest.error_class}"
            if self.position.held(other, self._now()):
                return f"{other.name}: it came back before and did not last"
        current = self.position.current
        return "its rest is over" if current and current.name != link.name else "first of the chain"

    def coming_back(self, link: Link, walk: Walk, barred: Callable[[Link], str | None]) -> Rest | None:
        """The rest of *link*, where it may be asked after it."""
        asked = link.name not in walk.unfit and barred(link) is None
        rest = self.health.resting(link) if asked else None
        return None if rest is None or rest.out else rest

    def endings(self, walk: Walk, barred: Callable[[Link], str | None]) -> list[verdict.Ended]:
        """How it stands with each link, in order: what it said to this request, else why it rests."""
        endings: list[verdict.Ended] = []
        for link in self.links:
            if (why := barred(link)) is not None:
                endings.append(verdict.of_cap(link, why))
            elif link.name in walk.ended:
                endings.append(walk.ended[link.name])
            elif (rest := self.health.resting(link)) is not None:
                endings.append(verdict.of_rest(link, rest))
        return endings
