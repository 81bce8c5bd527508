"""Words for field names of business systems, so that a record can be read as a sentence.

Data only. ``FIELDS`` maps a whole snake_case field name to (Portuguese, English); ``ACCENTS`` gives
a Portuguese word its accents; the sets say what a word in a field name tells about the value.
"""

FIELDS: dict[str, tuple[str, str]] = {
    "amount": ("valor", "amount"),
    "amount_due": ("valor devido", "amount due"),
    "amount_paid": ("valor pago", "amount paid"),
    "balance": ("saldo", "balance"),
    "barcode": ("código de barras", "barcode"),
    "benefits": ("benefícios", "benefits"),
    "carrier": ("transportadora", "carrier"),
    "category": ("categoria", "category"),
    "city": ("cidade", "city"),
    "codigo_barras": ("código de barras", "barcode"),
    "codigo_rastreio": ("código de rastreio", "tracking code"),
    "contract": ("contrato", "contract"),
    "created_at": ("criado em", "created at"),
    "data_entrega": ("data de entrega", "delivery date"),
    "data_pagamento": ("data de pagamento", "payment date"),
    "data_vencimento": ("vencimento", "due date"),
    "delivered_at": ("entregue em", "delivered at"),
    "delivery": ("entrega", "delivery"),
    "delivery_date": ("data de entrega", "delivery date"),
    "descricao": ("descrição", "description"),
    "description": ("descrição", "description"),
    "discount": ("desconto", "discount"),
    "due_date": ("vencimento", "due date"),
    "entrega": ("entrega", "delivery"),
    "estimated_delivery": ("previsão de entrega", "estimated delivery"),
    "fatura": ("fatura", "invoice"),
    "faturas": ("faturas", "invoices"),
    "forma_pagamento": ("forma de pagamento", "payment method"),
    "fee": ("taxa", "fee"),
    "invoice": ("fatura", "invoice"),
    "invoices": ("faturas", "invoices"),
    "item": ("item", "item"),
    "items": ("itens", "items"),
    "itens": ("itens", "items"),
    "linha_digitavel": ("linha digitável", "payment line"),
    "mensalidade": ("mensalidade", "monthly fee"),
    "mes_referencia": ("mês de referência", "reference month"),
    "method": ("forma", "method"),
    "monthly_fee": ("mensalidade", "monthly fee"),
    "motivo": ("motivo", "reason"),
    "name": ("nome", "name"),
    "nome": ("nome", "name"),
    "order": ("pedido", "order"),
    "orders": ("pedidos", "orders"),
    "pagamento": ("pagamento", "payment"),
    "pagamentos": ("pagamentos", "payments"),
    "paid_at": ("pago em", "paid at"),
    "payment": ("pagamento", "payment"),
    "payment_date": ("data de pagamento", "payment date"),
    "payment_method": ("forma de pagamento", "payment method"),
    "payments": ("pagamentos", "payments"),
    "pedido": ("pedido", "order"),
    "pedidos": ("pedidos", "orders"),
    "plan": ("plano", "plan"),
    "plano": ("plano", "plan"),
    "preco": ("preço", "price"),
    "previsao_entrega": ("previsão de entrega", "estimated delivery"),
    "price": ("preço", "price"),
    "product": ("produto", "product"),
    "produto": ("produto", "product"),
    "protocol": ("protocolo", "reference"),
    "protocolo": ("protocolo", "reference"),
    "quantidade": ("quantidade", "quantity"),
    "quantity": ("quantidade", "quantity"),
    "reason": ("motivo", "reason"),
    "reference_month": ("mês de referência", "reference month"),
    "result": ("resultado", "result"),
    "saldo": ("saldo", "balance"),
    "service": ("serviço", "service"),
    "services": ("serviços", "services"),
    "servico": ("serviço", "service"),
    "servicos": ("serviços", "services"),
    "situacao": ("situação", "status"),
    "status": ("situação", "status"),
    "ticket": ("chamado", "ticket"),
    "titulo": ("título", "bill"),
    "titulos": ("títulos", "bills"),
    "total": ("total", "total"),
    "total_amount": ("valor total", "total amount"),
    "tracking_code": ("código de rastreio", "tracking code"),
    "transportadora": ("transportadora", "carrier"),
    "updated_at": ("atualizado em", "updated at"),
    "valor": ("valor", "amount"),
    "valor_pago": ("valor pago", "amount paid"),
    "valor_total": ("valor total", "total amount"),
    "vencimento": ("vencimento", "due date"),
}

ACCENTS: dict[str, str] = {
    "ate": "até", "competencia": "competência", "beneficio": "benefício", "beneficios": "benefícios", "cartao": "cartão",
    "cobranca": "cobrança", "codigo": "código", "conclusao": "conclusão",
    "credito": "crédito", "debito": "débito", "devolucao": "devolução",
    "digitavel": "digitável", "duracao": "duração", "emissao": "emissão",
    "endereco": "endereço", "historico": "histórico", "liquido": "líquido",
    "localizacao": "localização", "mes": "mês", "minimo": "mínimo", "maximo": "máximo",
    "numero": "número", "observacao": "observação", "periodo": "período",
    "previsao": "previsão", "preco": "preço", "proximo": "próximo", "proxima": "próxima",
    "referencia": "referência", "servico": "serviço", "servicos": "serviços",
    "situacao": "situação", "solicitacao": "solicitação", "titulo": "título",
    "titulos": "títulos", "transacao": "transação", "ultimo": "último", "ultima": "última",
    "valido": "válido", "validade": "validade", "atualizacao": "atualização",
    "descricao": "descrição", "informacao": "informação", "promocao": "promoção",
}  # fmt: skip

ID_WORDS = frozenset({"id", "numero", "number", "num"})
ENTITIES = frozenset({
    "fatura", "invoice", "pedido", "order", "contrato", "contract", "titulo", "chamado", "ticket",
})  # fmt: skip
NAME_FIELDS = (
    "nome",
    "name",
    "produto",
    "product",
    "servico",
    "service",
    "descricao",
    "description",
)
MONEY_WORDS = frozenset({
    "valor", "amount", "preco", "price", "saldo", "balance", "juros", "multa", "desconto",
    "discount", "mensalidade", "custo", "cost", "fee", "subtotal", "frete",
})  # fmt: skip
# "total" alone is money only beside these words: "total_faturas" is a count.
TOTAL_COMPANIONS = frozenset({
    "total", "geral", "grand", "pago", "paid", "due", "devido", "order", "invoice", "pedido",
    "fatura",
})  # fmt: skip
UNIT_WORDS = frozenset({
    "percentual", "percent", "pct", "quantidade", "quantity", "qtd", "count", "parcelas",
    "installments", "dias", "days", "gb", "mb", "minutos", "minutes", "pontos", "points",
})  # fmt: skip
SIZE_WORDS = frozenset({"gb", "mb"})
# Fields whose ALL_CAPS codes are read as words.
STATE_WORDS = frozenset({"status", "situacao", "state", "tipo", "type", "forma", "method"})
PERCENT_WORDS = frozenset({"percentual", "percent", "pct"})
CENTS_WORDS = frozenset({"cents", "centavos"})
CURRENCY_FIELDS = ("moeda", "currency")
SYMBOLS = {"BRL": "R$", "USD": "US$", "EUR": "€"}
# Who the customer is: the customer knows it, so an answer does not repeat it. Envelope fields say
# something about the call, not about the business.
UNSPOKEN = frozenset({
    "customer_key", "contract_key", "interaction_key", "account_key", "resource_key",
    "session_key", "msisdn", "cpf", "cnpj", "document", "documento", "email", "phone", "telefone",
    "customer_id", "cliente_id", "id_cliente", "user_id", "ok", "success", "sucesso", "metadata",
    "source", "server", "tool", "moeda", "currency",
})  # fmt: skip

SAYINGS: dict[str, tuple[str, str]] = {
    "open_other": (
        "Ficou ainda um ponto em aberto; posso continuar com ele.",
        "One point is still open; I can go on with it.",
    ),
    "yes": ("sim", "yes"),
    "no": ("não", "no"),
    "none": ("nenhum registro", "no records"),
    "more": ("e mais {count}", "and {count} more"),
    "open": ("Ainda vou ver com você: {items}.", "Still to look at with you: {items}."),
    "nothing": (
        "Não tenho essa informação no momento.",
        "I do not have that information right now.",
    ),
}
