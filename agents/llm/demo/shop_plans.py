"""Recorded plans for questions about the sample shop."""

import re
from collections.abc import Callable, Sequence

from . import intents, passages, results
from .conversation import LIBRARY, Finding, Offer, Situation
from .intents import Slots
from .shop import ShopQuery, conditions, query, quote, select
from .steps import DemoPlan, DemoStep, Findings, calculation, search


class ShopPlans:
    """Fills recorded plans from the question; `explains` if it asks why."""

    def __init__(
        self, situation: Situation, slots: Slots, database: Offer, explains: bool
    ) -> None:
        self.situation = situation
        self.slots = slots
        self.database = database
        self.explains = explains
        self.question = slots.question
        self.say = slots.question.say

    def plan(self, intent: str) -> DemoPlan | None:
        special = {"share": self._share, "compare": self._compare, "tables": self._tables}
        if intent in special:
            return special[intent]()
        columns = [column for column, *_ in self.slots.values]
        if intent == "never" and (self.slots.names or columns):
            return None  # "Who never bought tea?" is another question
        if intent != "never" and self.slots.has("never") and "o.status" not in columns:
            return None
        return self._single("breakdown" if intent == "total" and self.slots.pair else intent)

    def _single(self, intent: str) -> DemoPlan | None:
        """Run one query; if it had no result before, the same per year."""
        years = self.slots._replace(periods=(), concepts=(*self.slots.concepts, "yearly"))
        options = [query(intent, self.slots)]
        options += [query("breakdown", years)] if self.slots.periods else []
        working = [option for option in options if self.situation.works(option.title)][:1]
        lost = () if working == options[:1] else (options[0].title,)
        instead = tuple(option.title for option in working if lost)
        steps = [self._step(option) for option in working] + (
            self._lookup() if self.explains else []
        )

        def answer(findings: Findings) -> str:
            reasons = map(self._reason, findings[1:])
            return "\n\n".join([results.answer(working[0], findings[0]), *reasons])

        return self._validate_plan(steps if working else [], answer, lost, instead)

    def _tables(self) -> DemoPlan | None:
        tables = re.findall(r"^\W*(\w+)\((.+)\)", self.database.description, re.MULTILINE)
        columns = [re.findall(r"(?:^|, )([a-z]\w*)", inside) for _, inside in tables]
        lines = [
            f"- **{t}**: {', '.join(c)}" for (t, _), c in zip(tables, columns, strict=True)
        ]
        answer = "\n".join([self.say("tables", count=len(tables)), "", *lines])
        return DemoPlan(lambda _: answer) if tables else None

    def _share(self) -> DemoPlan | None:
        """Return a share: two queries and a division."""
        is_ranked = self.slots.has("top", "bottom")
        numerator = query("ranking" if is_ranked else "total", self.slots)
        unfiltered = self.slots._replace(values=(), names=(), bounds=())
        denominator = query("total", self.slots if is_ranked else unfiltered)
        if denominator.sql == numerator.sql or self.situation.calculator is None:
            return None
        steps = [self._step(numerator), self._step(denominator, "again")]
        name = self.say("sum_name", name=f"{numerator.title} / {denominator.title}")
        steps.append(calculation(self.situation, "⟦0 sum⟧ / ⟦1⟧ * 100", name))

        def answer(findings: Findings) -> str:
            sentences = list(map(results.answer, (numerator, denominator), findings))
            percents = [results.percentage(finding.text) for finding in findings[2:]]
            sentences += [self.say("share", percent=percent) for percent in percents]
            return ("\n\n" if "\n" in sentences[0] else self.say("space")).join(sentences)

        return self._validate_plan(steps, answer)

    def _compare(self) -> DemoPlan | None:
        """Compare a figure for two periods or places, with the change between them."""
        if self.slots.pair and not self.situation.is_planner:
            return self._single("breakdown")
        works = self.situation.works
        requested = self._compared_queries()
        queries = [option for option in requested if works(option.title)]
        if not self.slots.pair:
            # Recent periods take the place of those without a result.
            year = self.situation.today.year
            month = self.situation.today.month
            spans = [intents.month_period(year, month - ago) for ago in range(3)]
            if requested[0].slots.periods[0].is_year:
                spans = [intents.year_period(year - ago) for ago in range(3)]
            for option in (requested[0].with_slots(periods=(span,)) for span in spans):
                if len(queries) < 2 and option not in queries and works(option.title):
                    queries.append(option)
        lost = tuple(option.title for option in requested if option not in queries)
        if len(queries) < 2 or self.situation.calculator is None:
            return self._validate_plan([], lambda _: "", lost) if lost else None
        if not self.slots.pair:
            queries.sort(key=lambda option: option.slots.periods[0].start, reverse=True)
        steps = [self._step(option, "again", "above") for option in queries]
        change = calculation(self.situation, "(⟦0⟧ - ⟦1⟧) / ⟦1⟧ * 100", self.say("change_name"))
        if self.situation.is_planner:
            steps.append(change._replace(text="⟦0⟧ - ⟦1⟧", name=self.say("difference_name")))
        steps.append(change)
        if self.explains:
            steps += self._reasons(queries)
        instead = tuple(option.title for option in queries if option not in requested)

        def answer(findings: Findings) -> str:
            """Describe both figures, the change and, if asked, its reasons."""
            sentences = list(map(results.answer, queries, findings))
            change_index = 3 if self.situation.is_planner else 2
            if len(findings) > change_index:
                percent = results.percentage(findings[change_index].text, "+")
                gap = results.number(float(results.figure(findings[2].text) or 0))
                key = "difference" if self.situation.is_planner else "change"
                sentences.append(self.say(key, gap=gap, percent=percent))
            span = None if self.slots.pair else queries[0].slots.periods[0]
            if span and span.end > self.situation.today and len(findings) > 2:
                name = span.japanese if self.question.is_japanese else span.english[3:]
                sentences.append(self.say("not_over", period=name))
            reasons = map(self._reason, findings[4:])
            return "\n\n".join([self.say("space").join(sentences), *reasons])

        return self._validate_plan(steps, answer, lost, instead)

    def _compared_queries(self) -> list[ShopQuery]:
        """Return the newer and the older query, or one per place."""
        intent = "ranking" if self.slots.has("top", "bottom") else "total"
        base = query(intent, self.slots._replace(limit=1))
        if self.slots.pair:
            return [base.with_slots(values=(value,)) for value in self.slots.pair]
        spans = self.slots.periods or (intents.year_period(self.situation.today.year),)
        year = spans[0].start.year - 1
        if spans[0].is_year:
            year_before = intents.year_period(year)
        else:
            year_before = intents.month_period(year, spans[0].start.month)
        spans = tuple(sorted([*spans, year_before][:2], key=lambda span: span.start))
        return [base.with_slots(periods=(span,)) for span in reversed(spans)]

    def _reason(self, finding: Finding) -> str:
        if rows := results.parse(finding.text):
            return results.table(rows, self.question)
        why = self.question.part(self._why())
        return passages.quote(finding.text, why, 0.75) or self.say("no_reason")

    @property
    def _unit(self) -> str:
        if self.slots.pair:
            return self.slots.pair[0][0][2:]
        is_month = self.slots.has("month") or not all(p.is_year for p in self.slots.periods)
        return "month" if is_month else "year"

    def _why(self) -> str:
        japanese = LIBRARY["groups"][self._unit][2]
        return self.say("why", unit=japanese if self.question.is_japanese else self._unit)

    def _reasons(self, pair: Sequence[ShopQuery]) -> list[DemoStep]:
        """Query the number and size of orders, and the documents."""
        unit = self._unit
        group = LIBRARY["groups"][unit][0]
        starts = [str(option.slots.periods[0].start) for option in pair if option.slots.periods]
        units = [start[: 4 if unit == "year" else 7] for start in starts]
        if pair[0].intent == "ranking":
            units = ["⟦0 label⟧", "⟦1 label⟧"]
        condition = f"\nWHERE {group} IN ({quote(*units)})"
        if self.slots.pair:
            condition = conditions(self.slots, "orders")[0]
        fields = {"group": group, "by": unit, "base": "orders", "where": condition}
        sql = select("makeup", fields)
        makeup = self._step(pair[0])._replace(text=sql, name=self.say("makeup_name"))
        return [makeup._replace(expected=self.say("expect_rows")), *self._lookup()]

    def _lookup(self) -> list[DemoStep]:
        tool = self.situation.tool("search", "query")
        return [search(self.situation, tool, self._why())._replace(expected="")] if tool else []

    def _step(
        self, shop_query: ShopQuery, thought: str = "query", expected: str = ""
    ) -> DemoStep:
        title = shop_query.title
        thought = self.say(f"think_{thought}", title=title)
        expected = expected or ("value" if shop_query.is_value else "row")
        expected = self.say(f"expect_{expected}", title=title)
        return DemoStep(title, self.database, shop_query.sql, thought, expected)

    def _validate_plan(
        self,
        steps: Sequence[DemoStep],
        answer: Callable[[Findings], str],
        lost: tuple[str, ...] = (),
        instead: tuple[str, ...] = (),
    ) -> DemoPlan | None:
        """Return the plan if it uses every value, and only the database's tables."""
        text = " ".join(step.text for step in steps)
        has_values = all(quote(english) in text for _, english, _ in self.slots.values)
        needed = set(re.findall(r"(?:FROM|JOIN) (\w+)", text))
        has_tables = all(re.search(rf"\b{t}\(", self.database.description) for t in needed)
        is_fine = has_tables and (has_values or not steps)
        return DemoPlan(answer, tuple(steps), lost, instead) if is_fine else None
