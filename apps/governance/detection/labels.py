"""What the words before a number say it is ("CPF nº", "protocolo", "me liga no").

A label decides between readings of the same digits: eleven digits after *pedido* are an order,
after *celular* a phone. The nearest label in the folded ``WINDOW`` characters before the number
counts, when only filler words stand between the two.
"""

import re

from apps.runtime.text import fold

WINDOW = 48

_LABELS = {
    "CNH": r"cnh|habilitacao|carteira de motorista|driver'?s? licen[cs]e",
    "PIS": r"pis|pasep|nit|nis",
    "VOTER": r"titulo (?:de |do )?eleitor(?:al)?|inscricao eleitoral",
    "SSN": r"ssn|social security",
    "RG": r"rg|carteira de identidade|registro geral|identidade",
    "CNPJ": r"cnpj",
    "CPF": r"cpf",
    "CEP": r"cep|codigo postal|zip ?code|zip|postal code|postcode",
    "CARD": r"cartao|card|cc",
    "PHONE": r"tel|telefones?|fone|fixo|cel|celular(?:es)?|whats ?app|whats|zap|phones?|telephone|"
    r"mobile|cell|cellphone|fax|desk|liga|ligar|ligue|liguem|call|calling|reach me|text me|"
    r"answering|messages?|registered|sms|contato",
    "OTHER": r"protocolos?|pedidos?|ordem|ordens|orders?|faturas?|invoices?|notas?|nfe?|nf-e|"
    r"contratos?|contracts?|chamados?|tickets?|ocorrencia|matricula|codigo|cod|id|rastreio|"
    r"rastreamento|tracking|boletos?|serie|serial|imei|valor|total|processo|contas?|agencia|"
    r"accounts?|titulos?|linha digitavel|reference|ref|versao|version|r\$|us\$|\$",
}
_LABEL = re.compile(
    r"(?<![a-z0-9])(?:"
    + "|".join(f"(?P<{kind}>{words})" for kind, words in _LABELS.items())
    + r")(?![a-z0-9])"
)
_LETTER = re.compile(r"[^\W\d_]")
_FILLER = re.compile(
    r"(?:[\W_]+|n|no|nr|num|numero|numbers?|e|eh|is|are|do|da|de|o|a|as|at|on|to|in|meu|minha|seu|"
    r"sua|my|your|the|para|pro|pra|em|na|novo|nova|fiscal|credito|debito|credit|debit|atual|"
    r"titular|cliente|escritorio|comercial|residencial|foi|era|was|code|final|ssp|[a-z]{2}(?=-)|"
    r"informad[oa]|pessoal|empresa|me|us|him|her|with|this|com|financeiro)*"
)


def label_before(text: str, start: int) -> str:
    """Return the kind of label that stands before ``start``, or "" when there is none.

    ``OTHER`` labels something that is no personal data.
    """
    before = text[max(0, start - WINDOW) : start]
    if not _LETTER.search(before):
        return "OTHER" if before.rstrip().endswith("$") else ""
    window = fold(before)
    found = None
    for found in _LABEL.finditer(window):  # noqa: B007 - the last one counts
        pass
    if found is None or _FILLER.fullmatch(window, found.end()) is None:
        return ""
    return found.lastgroup or ""
