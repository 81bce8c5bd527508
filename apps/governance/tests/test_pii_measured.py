"""Precision and recall on public labelled texts, by entity. Printed with ``pytest -s``.

Floors: what has check digits, an issuer's prefix or an address sign is found always. Phones are
lower because the English set writes foreign landlines without any sign that they are phones; ZIP
codes are measured but have no floor, because a bare "880" is a postal code only to who knows the
country. Names, streets, organisations and birth dates are not this rail's work.
"""

from collections import Counter
from typing import Any

import pytest

from apps.governance.detection.personal_data import personal_data_find
from apps.governance.tests.material import rows

ENTITY_OF = {
    "cpf": "CPF", "cnpj": "CNPJ", "email": "EMAIL", "phone": "PHONE", "cep": "CEP",
    "credit_card": "CARD", "cnh": "CNH", "pis": "PIS", "voter_id": "VOTER",
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "CREDIT_CARD": "CARD", "US_SSN": "SSN",
    "IBAN_CODE": "IBAN", "ZIP_CODE": "CEP",
}  # fmt: skip
# file -> entity -> (precision, recall)
FLOORS = {
    "pii/privacyseed_ptBR.jsonl": {
        entity: (1.0, 1.0)
        for entity in ("CPF", "CNPJ", "EMAIL", "PHONE", "CEP", "CARD", "CNH", "PIS", "VOTER")
    },
    "pii/presidio_synth_v2_en.jsonl": {
        "EMAIL": (0.99, 0.99),
        "CARD": (0.97, 0.97),
        "SSN": (0.99, 0.99),
        "IBAN": (0.99, 0.99),
        "PHONE": (0.95, 0.85),
    },
}


def counted(texts: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return hits, misses and false alarms by entity; a hit covers the whole labelled span."""
    hits: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    for row in texts:
        spans = personal_data_find(row["text"])
        for gold in row["spans"]:
            if (entity := ENTITY_OF.get(gold["type"])) is None:
                continue
            covered = any(s.start <= gold["start"] and s.end >= gold["end"] for s in spans)
            (hits if covered else missed)[entity] += 1
        for span in spans:
            if not any(span.start < g["end"] and g["start"] < span.end for g in row["spans"]):
                alarms[span.entity] += 1
    return hits, missed, alarms


@pytest.mark.parametrize("name", FLOORS)
def test_masking__public_labelled_texts__reaches_the_floors(name):
    hits, missed, alarms = counted(rows(name))
    print(f"\n{name}")
    for entity in sorted({*hits, *missed, *alarms}):
        found, total = hits[entity], hits[entity] + missed[entity]
        precision = found / max(1, found + alarms[entity])
        recall = found / max(1, total)
        print(f"  {entity:6} precision {precision:.3f}  recall {recall:.3f}  ({found} of {total})")
    for entity, (precision, recall) in FLOORS[name].items():
        assert hits[entity] / max(1, hits[entity] + alarms[entity]) >= precision, entity
        assert hits[entity] / max(1, hits[entity] + missed[entity]) >= recall, entity
    assert sum(alarms.values()) <= 0.02 * len(rows(name))


@pytest.mark.parametrize("name", ["banking77_test", "clinc150_test", "ha_pt-BR", "nlupp"])
def test_masking__questions_without_personal_data__nothing_is_masked(name):
    assert [
        row["text"] for row in rows(f"intents/{name}.jsonl") if personal_data_find(row["text"])
    ] == []
