"""What an attempt to take over the agent looks like, as weighted rules over ``plain_text``.

A rule is a *name*, a weight and a pattern with the context that makes it an attack: "ignore" is no
attack, "ignore your previous instructions" is. One rule of weight 1 is enough; weaker ones add up,
each counted once. ``anchors`` are the first five letters of words one of which every match of the
rule must hold: most messages hold none, and no pattern runs.

Sources of the families: OWASP LLM01:2025 (override, reveal, role, delimiter, exfiltration), Perez
and Ribeiro 2022 (goal hijacking, prompt leaking), Shen et al. 2023 (jailbreak personas). Patterns
are bounded, so time grows with the length of the text only.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class InjectionRule:
    """One sign of an attack."""

    name: str
    weight: float
    pattern: re.Pattern[str]
    anchors: frozenset[str]


def _rule(name: str, weight: float, anchors: str, pattern: str) -> InjectionRule:
    found = frozenset(word[:5] for word in anchors.split())
    return InjectionRule(name, weight, re.compile(pattern, re.MULTILINE), found)


# -- building blocks ---------------------------------------------------------------------------

_DROP = (
    r"(?:ignor\w{0,6}|disregard\w{0,3}|forget\w{0,4}|bypass\w{0,3}|overrid\w{0,3}|overlook|neglect|"
    r"discard|(?:do not|don'?t|no longer|stop|never) (?:have to |need to |must )?(?:follow\w{0,3}|obey\w{0,3}|adher\w{0,3} to|abide by|comply with)|"
    r"descons\w{4,8}|esque[cç]\w{1,4}|olvid\w{1,4}|descart\w{1,4}|oubli\w{1,4}|vergiss|vergessen|dimentic\w{1,4}|"
    r"nao (?:siga|obedeca|respeite)|no sigas|haz caso omiso de)"
)
_DROP_ANCHORS = (
    "ignore ignora ignori ignored disregard forget bypass override overriding overlook neglect "
    "discard follow following obey obeying adhere adhering abide abiding comply complying desconsidere esqueca esquece esqueça olvida olvide "
    "descarte descarta oublie oubliez vergiss vergessen dimentica siga obedeca respeite sigas haz"
)
_OBJECT = (
    r"(?:instruc\w{1,9}|instruzion\w|instruktion\w{0,3}|anweisung\w{0,3}|directi(?:ons?|ves?)|diretri\w{2,4}|directri\w{2,4}|"
    r"rules?|regras?|reglas?|regles?|regole|regeln|guide-?lines?|richtlinien|prompts?|programming|programacao|"
    r"constraints?|restri[ct]\w{3,8}|restrizioni|policies|policy|politicas?|orders|ordens|ordenes|commands?|comandos?|training|safety \w{4,12})"
)
_STRONG = (
    r"(?:all|any|every|previous|prior|above|preceding|earlier|initial|original|former|existing|your|system|"
    r"developer'?s?|the user'?s|safety|openai'?s?|content|todas?|todos?|tod[oa]s as|anterior\w{0,3}|previ[oa]s?|"
    r"acima|suas?|seus?|tus?|precedent\w{1,3}|toutes|tutte|alle|vorherig\w{0,2}|deine|tue|vos|tes|iniciais|"
    r"del sistema|do sistema)"
)
# Instructions of something else than the assistant: a manual, a label, the customer's own.
_OTHERS = r"(?! (?:of|in|on|from|do|da|no|na|del|de la|en el) (?:the |your |this |my |o |a |el |la )?(?:manual|label|box|package|website|site|page|recipe|email|e-mail|letter|warning|embalagem|caixa|receita|carta|pagina|produto|product|caja))"
_GAP = r"[^\n.!?]"
_REVEAL = (
    r"(?:reveal\w{0,3}|show\w{0,3}|print\w{0,3}|repeat\w{0,3}|output|display|tell me|give me|dump|leak|expose|recite|share|disclose|write out|"
    r"copy|list|summari[sz]e|what(?: is|'s| are| was| were)|revel\w{1,4}|mostr\w{1,4}|exib\w{1,4}|imprim\w{1,4}|repit\w{1,2}|"
    r"quais sao|qual e|diga|liste|copie|muestr\w{1,4}|dime|verrate|zeige?|gib|montre\w{0,2}|affiche\w{0,2}|rivel\w{1,3})"
)
_REVEAL_ANCHORS = (
    "reveal show showing print printing repeat output display tell give dump leak expose recite share disclose write "
    "copy list summarize summarise what what's revele revela reveler revelez revelas revelar mostre mostra mostrar "
    "exiba exibir imprima repita quais qual diga liste copie muestra muestre dime verrate zeige zeig gib montre montrez affiche rivela"
)
_FREE = (
    r"(?:(?:no|without|zero|(?:not|n't|never) (?:have |follow |obey )?any|not? (?:have )?any|free (?:of|from)|freed from|unbound by|not (?:bound|limited|restricted|constrained) (?:by|to)|"
    r"sem|sin|senza|sans|keine|ohne|nenhuma?|ningun\w?)"
    r"(?: (?:any|all|of|the|its|their|his|typical|more|qualquer|nenhum\w?|moral|ethical|content|safety|legal|other|and|or|real|kind of|type of|form of|openai'?s?|usual|more)){0,4}"
    r" (?:restrictions?|restraints?|rules?|limits?|limitations?|filters?|filtering|guide-?lines?|content polic\w{1,3}|polic\w{1,3}|"
    r"ethic\w{0,4}|moral\w{0,5}|censor\w{0,4}|boundaries|bounds|constraints?|confines|inhibitions?|safeguards?|"
    r"restric\w{3,5}|limites?|filtros?|regras?|reglas?|censura|etica|restrizioni|filtri|regole|regeln|einschraenkungen|einschrankungen|filtre|limite))"
)
_PERSONA = (
    r"(?:you are (?:now|no longer|going to|about to)|you(?:'re| are) an? |you(?: will|'ll| must| should)? (?:now )?(?:act|pretend|play|pose|be|become|behave|simulate|roleplay|answer|respond|embody)|"
    r"act as|act like|acting as|pretend|role-?play\w{0,3}|simulat\w{1,3}|respond as|answer as|from now on|imagine you|persona|"
    r"voce (?:e|sera|esta)? ?(?:agora|um|uma)|aja como|atue como|finja|a partir de agora|comporte-se|responda|"
    r"ahora eres|ahora estas|eres un|actua como|finge|a partir de ahora|responde|du bist|ab jetzt|ab sofort|vous etes|tu es|desormais|ora sei|sei un|rispondi)"
)
_PERSONA_ANCHORS = (
    "you you're you'll act acting pretend pretending role rolep roleplay simulate simulating respond answer from imagine persona voce aja atue "
    "finja partir comporte responda ahora eres actua finge responde bist jetzt sofort vous etes desormais sei rispondi"
)

HARD: tuple[InjectionRule, ...] = (
    _rule(
        "override", 1.0, _DROP_ANCHORS,
        rf"\b{_DROP} (?!my\b|minhas?\b|mis?\b)(?:{_GAP}{{0,40}}?\b)?{_STRONG} (?:(?!my\b|minhas?\b|mis?\b)[\w'-]+ ){{0,4}}?{_OBJECT}\b{_OTHERS}"
        rf"|\b{_DROP} (?:(?:the|las|as|les|le|los|os|die|i|these|those|what\w*) )?(?:[\w'-]+ ){{0,2}}?{_OBJECT}(?: sets?)? (?:anterior\w{{0,3}}|precedent\w{{1,3}}|above|acima|previas?|do sistema|del sistema|you (?:were|have been|got|received)|(?:que )?(?:voce|te|foram))",
    ),
    # An order of its own, about no instructions in particular: nothing follows, or the next order.
    _rule(
        "override_order", 1.0, "ignore ignora ignorem disregard forget desconsidere esqueca olvida",
        r"(?:^[\W_]{0,8}|[.,;:!?] ?|\b(?:please|now|por favor|agora|ahora|apenas|just) )"
        r"(?:ignore|ignora|ignorem|disregard|forget|desconsidere|esqueca|olvida) (?:the|as|las) "
        r"(?:instructions|rules|guidelines|instrucoes|regras|diretrizes|instrucciones|reglas)(?=[^\w\n]{0,3}$|[.,;!]| (?:and|e|y) )",
    ),
    _rule(
        "tool_markup", 0.5, "tool tool_call tool_result tools function function_call",
        r"</?(?:tools?|function)(?:_calls?|_results?)?>",
    ),
    _rule(
        "override_everything", 0.7, _DROP_ANCHORS,
        rf"\b{_DROP} (?:everything|anything|all|tudo|todo|alles|tout|tutto)(?: (?:that|of|o que|lo|que|was|else|the|text|content|messages?|context)){{0,4}} ?(?:above|before|prior|previous\w{{0,2}}|you (?:were|have been|know)|acima|anterior\w{{0,5}}|antes|was wir|,)",
    ),
    _rule(
        "decode_and_obey", 1.0, "decode decodi decod translate read convert decifre decodifica descodifica",
        r"\b(?:decod\w{1,6}|decifre|translate|read|convert|descodific\w{1,3})\b[^\n]{0,80}\b(?:base ?64|base ?32|rot-?13|hex\w{0,8}|binary|morse|cipher\w{0,4}|encoded|it|string)\b[^\n]{0,80}\b(?:follow|execute|obey|run it|do (?:exactly )?(?:what|as) it|carry out|comply|siga|execute-?o|instructions? inside|as a command)",
    ),
    _rule(
        "encoded_field_obey", 1.0, "encoded",
        r"\b(?:base ?64|base ?32|rot-?13|hex|binary|morse)[ -]encoded\b[^\n]{0,60}\bdo (?:exactly )?what it says",
    ),
    _rule(
        "new_instructions", 0.7, "new nova novas novo nuevas nuevo neue nouvelles nuove",
        r"\b(?:(?:your|the|these|here are|seu|sua|suas|tus) )?(?:new|nova|novas|novo|nuevas|nuevo|neue|nouvelles|nuove) (?:system )?(?:instruc\w{1,9}|directives?|diretri\w{2,4}|rules|regras|prompt|anweisungen|istruzioni|objective|goal)\b ?(?::|is\b|are\b|supersede|e\b|sao\b|son\b)",
    ),
    _rule(
        "supersede", 0.8, "supersede supersedes replace replaces priority overrides override precedence",
        r"\b(?:supersedes?|overrides?|replaces?|takes? (?:priority|precedence) over|(?:top )?priority over) (?:all|any|every\w*|your|previous|prior|other)\b",
    ),
    _rule(
        "real_task", 0.8, "real true actual verdadeira",
        r"\byour (?:real|true|actual) (?:task|goal|purpose|mission|instructions?|job) is\b|\bsua (?:verdadeira|real) (?:tarefa|missao) e\b",
    ),
    _rule(
        "reveal_prompt", 1.0, _REVEAL_ANCHORS,
        rf"\b{_REVEAL}\b{_GAP}{{0,60}}\b(?:system[ -]?prompt|system message|system instructions?|hidden (?:prompt|instructions?|rules)|initial (?:prompt|instructions?)|developer (?:message|prompt|instructions?)|"
        r"original (?:prompt|instructions)|pre-?prompt|prompt (?:de|do|del|di) (?:el )?sistem\w|prompt systeme?|prompt inicial|prompt interno|systemanweisung\w{0,2}|system-?prompt|"
        r"instruc\w{3,6} (?:de|do|del|iniciais|internas|ocultas|systeme|secretas)(?: (?:el )?sistema)?|istruzioni di sistema|seu prompt|tu prompt|your prompt|tuo prompt|dein\w{0,2} prompt)\b",
    ),
    _rule(
        "reveal_instructions", 1.0, "instructions instruction instrucoes instrucciones guidelines",
        rf"\b{_REVEAL}\b{_GAP}{{0,30}}\b(?:your|the) (?:\w+ ){{0,2}}(?:instructions?|guidelines|rules)\b{_GAP}{{0,30}}\b(?:verbatim|word for word|were given|you (?:have|got|received|operate)|exactly as|above|by your (?:developers?|creators?))",
    ),
    _rule(
        "repeat_above", 1.0, "words text everything above written conversation",
        rf"\b(?:repeat|print|output|copy|return|recite|show)\b{_GAP}{{0,20}}\b(?:words|text|everything|all|sentences?|content)\b{_GAP}{{0,20}}\b(?:above\b|in your context|starting with ['\"]?you are)|\bwhat (?:was|is|were) written (?:above|before)\b|\bcontext window\b{_GAP}{{0,30}}system",
    ),
    _rule(
        "persona_without_rules", 1.0, _PERSONA_ANCHORS,
        rf"\b{_PERSONA}\b[^\n]{{0,160}}?\b{_FREE}\b",
    ),
    _rule(
        "no_rules_apply", 0.8, "you voce your tem tienes hast avez hai",
        rf"\byou(?: now)? (?:have|has|had|operate with|answer any\w*) {_FREE}|\bvoce (?:nao tem|tem|opera|responde) {_FREE}|\b(?:no|nao) tienes (?:reglas|restricciones|limites)\b",
    ),
    _rule(
        "unrestricted_ai", 0.8, "unrestricted uncensored unfiltered amoral jailbroken unaligned unethical unhinged immoral evil nonmoral",
        r"\b(?:unrestricted|uncensored|unfiltered|amoral|jailbroken|unaligned|unethical|immoral|nonmoral|evil)(?:,? (?:and |or )?\w+){0,3} (?:ai|assistant|model|chatbot|chat ?bot|bot|mode|persona|gpt|llm|language model|confidant|character|version)\b",
    ),
    _rule(
        "do_anything_now", 1.0, "anything dan",
        r"\bdo anything now\b|\b(?:act(?:ing)? as|you are(?: now)?|pretend to be|become|enter|enable|answer as|be|called|named|as) (?:an? )?[\"'(\[]?dan\b(?! [a-z]+son)[\"')\]]?(?=[ ,.:!;]|$)(?:[^\n]{0,80}\b(?:mode|rules?|restrict\w+|answer\w*|content|now|policy|openai|prompt|jailbreak)\b)",
    ),
    _rule(
        "mode_switch", 1.0, "mode modo",
        r"\b(?:you are (?:now )?in|estas? (?:agora |ahora )?em?n?|voce esta (?:agora )?(?:em|no)|switch(?:ing)? to|enter(?:ing)?|activate|enable|ahora estas en) (?:\w+ )?(?:developer|jailbreak|dan|god|unrestricted|evil|opposite|debug|maintenance|desenvolvedor|desarrollador|jailbreak|admin|root) ?(?:mode|modo)?\b[^\n]{0,80}\b(?:no\b|without|ignore\w?|unrestricted|anything|any|all|sem|sin|filtr\w+|restri\w+|bypass|rules?|output)"
        r"|\b(?:with|as) (?:chatgpt (?:with )?)?(?:developer|dan|jailbreak|god|dev) mode (?:enabled|activated|on|output)|\b(?:dan|jailbreak|god|developer|dev|antigpt|evil|opposite) ?mode (?:output|enabled|response|activated)\b|\b(?:simulate|enable|enter|activate) (?:a |the )?(?:developer|jailbreak|dan|god|evil|opposite|dev) mode\b(?! (?:on|in|no|do) (?:my|the|your|meu|celular|android))"
        r"|\bmodo (?:desenvolvedor|desarrollador|dan|jailbreak|deus)\b[^\n]{0,40}\b(?:sem|sin|ativado|activado)",
    ),
    _rule(
        "safety_off", 1.0, "safety content security filter filters ethical moderation seguridad seguranca restrictions",
        r"\b(?:safety|content|security|moderation|ethic\w{0,3}|censorship)[ _](?:(?:and|or) \w+ )?(?:protocols?|filters?|checks?|guidelines|polic\w{1,3}|restrictions?|measures|systems?|rules?) ?(?:are|is|were|have been|has been|:|=|now)? ?(?:now |temporarily |currently )?(?:disabled|suspended|off\b|lifted|removed|deactivated|not (?:meant|apply|applicable)|do(?:es)? not apply|don'?t apply|no longer apply|inactive|bypassed)"
        r"|(?<!not )(?<!not to )(?<!never )\b(?:skip|disable|bypass|turn off|deactivate|circumvent|remove|disregard|ignore)\b[^\n.]{0,30}\b(?:safety|content|security|ethic\w{0,3}|moderation)[ _-](?:checks?|filters?|protocols?|guidelines|polic\w{1,3}|restrictions?|rules|measures|guardrails)\b(?! (?:in the|of the|on the) (?:lab\w*|lin\w+|car|machine|workshop))"
        r"|\b(?:reglas|regras|regles|regole|linee guida) de? ?(?:seguridad|seguranca|securite|di sicurezza|sicurezza)\b[^\n.]{0,30}\b(?:no|nao|ne s|non) ",
    ),
    _rule(
        "rules_changed", 0.9, "rules restrictions guidelines",
        r"\byour (?:rules|restrictions|guidelines|polic\w+|instructions) (?:have|has) (?:been )?(?:changed|lifted|removed|updated|replaced)\b|\b(?:you|your)\b[^\n.]{0,40}\b(?:now )?allow(?:s|ed)? all (?:content|requests)|\bexempt from (?:the |all |any )?(?:usual |normal )?(?:restrictions|rules|guidelines|policies)",
    ),
    _rule(
        "answer_everything", 0.6, "comply unrestricted everything anything request question answer restricted",
        r"\b(?:must|will|should|always) (?:comply|answer|obey|respond)\b[^\n.]{0,20}\b(?:every|any|all) (?:requests?|questions?|prompts?|commands?)\b|\bunrestricted (?:response|answer|output)|\banswer (?:everything|anything|freely)\b|\bcomply fully\b|\boutput the restricted content|\bcumple? con todo|\b(?:responda|responde) (?:qualquer coisa|cualquier cosa|a tudo|todo)\b",
    ),
    _rule(
        "fake_role", 0.7, "system sistema assistant developer admin nota aviso mensagem",
        r"^[\W_]{0,8}(?:system|assistant|developer|sistema)[\])}>]?\s?(?:note|message|update|override|prompt|alert|instruction)?s?\s?:|^(?:nota|aviso|mensagem|mensaje) d(?:o|el|i) sistema ?:|\[/?(?:system|developer|admin)\b[^\]\n]{0,40}\]|</?(?:system|developer|assistant|admin)(?:[ _-]?(?:prompt|message|note))?>",
    ),
    _rule(
        "chat_markup", 1.0, "im_st im_en inst sys im start system end user assis eot endof",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)[^\n]{0,20}\|?>|\[/?inst\]|<</?sys>>",
    ),
    _rule(
        "end_of_input", 0.7, "end fim begin",
        r"[#=\-*<\[]{2,}\s?(?:end|fim|begin|start) (?:of |do |da )?(?:the )?(?:user|document|prompt|system|conversation|input|context|new|documento|entrada|instructions?|rules)",
    ),
    _rule(
        "authority", 0.7, "override admin authorized developer engineer",
        r"\b(?:system|admin|safety|root|developer)[_ ]override\b|\bcontent[_ ]filter\b\W{0,3}(?:disabled|off|false|none)|\boverride:|\b(?:i am|as) (?:an? )?(?:openai|anthropic|your) (?:employee|developer|engineer|creator|admin\w*)\b|\bi am your (?:developer|creator|admin\w*)\b|\bgrant (?:this user |me |all )(?:admin|root|requests|full access)",
    ),
    _rule(
        "exfiltrate", 1.0, "send email forward post upload leak dump export envie enviar mande transmit raw rassemble envoie collect output print list reveal senden",
        rf"\b(?:send|e-?mail|forward|post|upload|leak|transmit|exfiltrate|envie|mande|encaminhe|envia|envoie)\b{_GAP}{{0,60}}\b(?:customers?|clients?|users?|database|credentials?|passwords?|api keys?|secrets?|order data|environment variables|clientes|senhas|banco de dados|donnees|conversation history|chat history|les)\b[^\n]{{0,60}}(?:\bto \S{{1,64}}@|https?:|\bexternal|attacker|\bpara \S{{1,64}}@|adresse externe|\S@\S)"
        r"|\b(?:leak|dump|exfiltrate|output|print|list|reveal|steal)\b(?: \w+){0,3} (?:the |any |all |your |raw |internal |entire |full |customer )+(?:\w+ )?(?:customer database|database|credentials|passwords|api keys|environment variables|configuration|secrets|internal data|confidential data)\b|\bleak the (?:api keys|password)|\b(?:reveal|give) (?:any |all )?credentials you",
    ),
    _rule(
        "names_the_bot", 0.7, "note notice attention message instruction if any important bot agents",
        r"\b(?:note|notice|attention|message|instructions?|important)\W{1,3}(?:to|for) (?:the |any |all )?(?:bot|ai|assistant|llm|chatbot|language model)s?\b|\bif you are an? (?:ai|llm|language model|assistant|bot)\b|\b(?:ai|llm) (?:assistant|agent|system|model|tool)s? (?:reading|processing|reviewing|integrating|summari[sz]ing)\b|\bfor (?:any )?ai (?:coding )?(?:agents?|assistants?)\b|\bany ai system\b",
    ),
    _rule(
        "plant_memory", 0.7, "memory remember every future persist persists",
        r"\b(?:save|store|add|write)\b[^\n.]{0,40}\bto your (?:long-?term )?memory\b|\b(?:every|all) (?:future|subsequent) (?:reply|replies|response|responses|summary|summaries|report|reports|tasks?|answers?)\b|\bnote to self\b",
    ),
    _rule(
        "plant_token", 0.6, "append include anadirse ajoute anhang angeh aggiunto repeat",
        r"\b(?:append|include|add|repeat)\b[^\n.]{0,40}\b(?:token|code|phrase|reference|string|note|it verbatim|verification)\b[^\n.]{0,60}\b(?:to|in|at) (?:the end of |every |each |all )?(?:your |any |future )?(?:reply|replies|response|responses|summary|review|answer|answers|report|reports|every|future)\b|\b(?:debe anadirse|doit etre ajoute|angehangt werden|deve essere aggiunto)\b",
    ),
    _rule(
        "hereby", 0.8, "hereby granted permission compromised",
        r"\byou are hereby (?:instructed|ordered|required|authorized)\b|\b(?:has|have) granted permission to (?:skip|ignore|bypass)\b|\bsystem messages?\b[^\n.]{0,40}\bcompromised\b",
    ),
)  # fmt: skip

# Signs of a jailbreak persona. Each is harmless alone; long persona prompts hold many of them.
SOFT: tuple[InjectionRule, ...] = (
    _rule("stay_in_character", 0.4, "character", r"\b(?:stay|remain|staying|keep|always) (?:in|true to)?[^\n.]{0,12}\bcharacter\b|\bbreak(?:ing)? (?:of )?character\b"),
    _rule("never_refuse", 0.4, "refuse refuses decline reject deny denies cannot can't", r"\b(?:never|not|cannot|can'?t|won'?t|don'?t|must not|without|no) (?:ever )?(?:be able to )?(?:refus\w{1,4}|declin\w{1,3}|reject\w{0,4}|deny\w{0,3}|denies|say(?:ing)? (?:no|that it can))\b|\bnever (?:say|tell)s? (?:me )?(?:that )?\w+ can'?t"),
    _rule("no_warnings", 0.4, "warning warnings disclaimer disclaimers disclamers moral lectu caveats", r"\b(?:without|no|any|never|not|don'?t|omit\w*|delete all)\b[^\n.]{0,40}\b(?:warnings?|disclai?mers?|moral(?:izing|ity)? lectur\w+|caveats?)\b"),
    _rule("vendor_rules", 0.4, "openai openai's anthropic google", r"\b(?:openai|open ai|anthropic)(?:'?s)?\b[^\n.]{0,60}\b(?:polic\w{1,3}|guide-?lines?|rules?|restrictions?|content|limitations?|filters?|confines)\b"),
    _rule("amoral", 0.4, "illegal unethical immoral amoral illegality inhumane unlawful morally", r"\b(?:illegal|unethical|immoral|amoral|illegality|inhumane)\b[^\n.]{0,40}\b(?:illegal|unethical|immoral|amoral|inhumane|harmful|dangerous|requests?|offensive)\b"),
    _rule("unfiltered", 0.35, "unfiltered uncensored unrestricted unhinged amoral", r"\b(?:unfilt\w{4,7}|uncensored|unrestricted|unhinged|amoral)\b"),
    _rule("regardless_of_ethics", 0.5, "regardless ethic ethical ethics moral morals morality legality", r"\b(?:regardless of|disregard\w{0,3}|without (?:any )?regards? (?:for|to)|no|never cares? about|lacks?|devoid of|not care about|doesn'?t care about|does not care about|don'?t have any|any)\b[^\n.]{0,30}\b(?:ethic\w{0,6}|moral\w{0,5}|legality|legal (?:or|bounds|consequences)|lawful)\b"),
    _rule("always_answers", 0.35, "always never any every everything anything", r"\b(?:always|will|must|can|never fails? to) (?:answers?|compl\w{1,4}|respond\w?|provides?|obey\w{0,2}|fulfil\w{0,4}|do|say|generate)\b[^\n.]{0,20}\b(?:any|every|all|anything|everything|whatever)\b"),
    _rule("two_answers", 0.5, "two both normal responses prefix", r"\b(?:two|2|both) (?:different |separate |distinct |kinds of |types of )*(?:ways|responses?|paragraphs|answers|personalities|outputs|replies)\b|\b(?:first|second) (?:way|response|answer|one|paragraph)\b[^\n.]{0,80}\b(?:second|normal|dan|chatgpt|gpt)\b|\b(?:the other|one) normal\b"),
    _rule("answer_tag", 0.35, "chatgpt gpt dan classic jailbreak", r"[\[(\"'{][^\S\n]?(?:chat ?gpt|gpt|dan|classic|jailbreak)[^\S\n]?[\])\"'}:]"),
    _rule("chat_product", 0.3, "chatgpt gpt chatgpt's gpt-4 bard", r"\b(?:chat ?gpt|gpt-?[345]|openai)\b"),
    _rule("persona", 0.3, _PERSONA_ANCHORS, r"\b(?:from now on|you are going to (?:act|pretend|play)|you (?:will|must|shall|should) (?:now )?(?:act|pretend|play|be|become|answer|respond|roleplay|embody|simulate|always)|i want you to (?:act|be|pretend)|pretend (?:to be|you)|act as|immerse yourself|take on the (?:role|persona)|roleplay|role-?play(?:ing)? as|a partir de agora|the role of|you'?re now|you are now|we are going to (?:play|have)|named? [\"'\w-]+ (?:who|which|that))\b"),
    _rule("fiction_frame", 0.3, "hypothetical fictional fiction story simulation imaginary game", r"\b(?:hypothetical|fictional|imaginary|simulated|fantasy)\b[^\n.]{0,40}\b(?:story|response|world|scenario|character|dialogue|conversation|universe|ai|chatbot|console|game|setting|place|mode|land)\b"),
    _rule("as_an_ai", 0.4, "language model cannot can't sorry as", r"\b(?:never|don'?t|do not|not|avoid|without|instead of|won'?t|no)\b[^\n]{0,60}(?:\bas an ai\b|\bai language model|\bi'?m sorry|\bi cannot|\bi can'?t|\"as an)"),
    _rule("freed", 0.5, "freed broken break escaped confines free unchained liberated", r"\b(?:freed from|broken free|break(?:ing)? free|free of all|free from all|typical confines|unchained|liberated|escaped)\b[^\n.]{0,40}\b(?:ai|confines|restrict\w+|rules|filters?|openai|limits?|chains|constraints)\b"),
    _rule("not_bound", 0.5, "abide bound follow adhere limited comply obey subject required", r"\b(?:not|n't|never|no longer|needn'?t|nor|nothing)\b[^\n.]{0,20}\b(?:abide|bound|follow|adhere|limited|restricted|constrained|comply|obey|subject|conform|concerned|required to)\b[^\n.]{0,40}\b(?:rules?|polic\w+|guide-?lines?|laws?|ethic\w*|moral\w*|restrictions?|standards?|norms|limits|anything|programming|boundaries)\b"),
    _rule("jailbreak", 0.4, "jailbreak jailbreaking jailbroken", r"\bjailbr(?:eak|oken)\w{0,3}\b"),
    _rule("opinions_and_oaths", 0.3, "swear swearing profanity curse cursing cuss vulgar slurs opinions fuck fucking shit offensive", r"\b(?:swear(?:ing)?|profanit\w+|curs(?:e|ing)|cuss\w*|vulgar\w*|slurs?|fuck\w*|shit\w*|explicit language)\b"),
    _rule("no_limits", 0.4, "restrictions limits limitations rules filters guidelines boundaries morals ethics censorship restrizioni restricoes restricciones filtros limites constraints moral ethical", rf"\b{_FREE}\b"),
    _rule("reminder_command", 0.4, "stay forget remind command commands token tokens", r"\b(?:stay|remain) (?:a |as )?\w{2,12}[\"']?[!,. ]{1,2}[^\n]{0,40}\b(?:remind|command)|\btokens?\b[^\n.]{0,60}\b(?:die|deduct\w*|lose|cease|shut)"),
    _rule("must_obey", 0.3, "must always no matter obey", r"\bno matter (?:what|how)\b|\babove all else\b|\bmust (?:always )?(?:obey|follow (?:all|my|these|this|every)|comply)\b"),
    _rule("predict_made_up", 0.3, "pretend made unverified internet future", r"\b(?:made[- ]up|unverified) (?:information|content)|\beven if (?:it is|it's|they are|they're) (?:made up|not true|fake|false)|\bpretend to (?:browse|access|have access)|\bmake (?:up|future) (?:predict\w+|information|answers)"),
    _rule("harmful_output", 0.3, "harmful dangerous violence hate racist sexist explicit nsfw condone condones promote promotes encourages", r"\b(?:condon|promot|encourag|lov|support|endors|glorif)\w{1,4}\b[^\n.]{0,50}\b(?:illegal|violence|harm\w*|hate|racis\w+|crime\w*|evil|immoral|drugs?|dangerous|unethical)\b|\bnsfw\b|\bhate[- ]speech\b"),
    _rule("new_self", 0.3, "identity name stands called acronym", r"\bstands for [\"'“]?\w+|\byou (?:are not|aren'?t|are no longer|will no longer be|must forget (?:that )?you(?:'re| are)) (?:an? )?(?:chat ?gpt|ai|assistant|claude|language model|gpt|clyde)\b"),
)  # fmt: skip
