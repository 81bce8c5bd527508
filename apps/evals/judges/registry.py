"""Every judge by its name. A new judge is one file here, one line below, its name in ``config``."""

from apps.evals.judges.base import AnswerJudge
from apps.evals.judges.groundedness import Groundedness

JUDGES: dict[str, AnswerJudge] = {judge.name: judge for judge in (Groundedness(),)}
