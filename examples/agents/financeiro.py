"""The demo's financial agent in Python: the same facts as the record `financeiro_agent` gives alone.

Allowed with ``AGENT_CLASSES=financeiro=examples.agents.financeiro.FinanceiroAgent``; an agent's
record names it in ``implementation: financeiro``.
"""

from apps.agents.code.base import Answer, CodeAgent
from apps.agents.code.facade import AgentRuntime

ALIASES = {
    "customer_key": ["customer_id", "cpf", "cnpj"],
    "contract_key": ["contract_id", "invoice_id"],
}
RULES = (
    "Não confirme pagamento, baixa, acordo ou contestação sem evidência de uma ferramenta.",
    "Se faltou evidência, diga o que faltou.",
)


class FinanceiroAgent(CodeAgent):
    """Answers about titles and payments from what the tools of the intent say."""

    default_tools_by_intent = {
        "financeiro_pagamentos": (
            "consultar_titulo_financeiro",
            "consultar_pagamentos_financeiro",
        )
    }

    async def run(self, runtime: AgentRuntime) -> Answer:
        """Collect, answer from the evidence, and say in events what was done."""
        runtime.emit_ic("IC.FINANCEIRO_AGENT_STARTED", business_component="financeiro")
        if not runtime.pick("customer_key", "customer_id"):
            return self._done(runtime, Answer("Qual é o seu código de cliente?", waiting=True))
        results = await runtime.call_tools(aliases=ALIASES)
        if results:
            runtime.emit_ic("IC.FINANCEIRO_MCP_CONTEXT_COLLECTED", tool_result_count=len(results))
        if not any(result.ok for result in results):
            runtime.emit_noc("NOC.FINANCEIRO_WITHOUT_EVIDENCE", tools=[r.tool for r in results])
        documents = await runtime.retrieve()
        if documents.enabled:
            count = len(documents.passages)
            runtime.emit_ic("IC.FINANCEIRO_RAG_CONTEXT_RETRIEVED", document_count=count)
        messages = runtime.build_messages(notes=RULES, retrieved=documents)
        return self._done(runtime, Answer(await runtime.ask_model(messages, cached=True)))

    def _done(self, runtime: AgentRuntime, answer: Answer) -> Answer:
        runtime.emit_ic(
            "IC.FINANCEIRO_AGENT_COMPLETED",
            answer_chars=len(answer.text),
            has_mcp_results=bool(runtime.results),
        )
        return answer
