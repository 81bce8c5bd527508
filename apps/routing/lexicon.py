"""Small word lists of Portuguese, English and Spanish that routing reads a sentence with.

All words are folded (lower case, no accents). They describe the languages, not a tenant: what a
tenant's customers call things is configuration.
"""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that carry no subject: a sentence is never understood by these alone.
FUNCTION_WORDS = _set(
    "a o as os um uma uns umas de do da dos das em no na nos nas num numa por pelo pela pelos pelas"
    " para pra pro pras pros com sem sob sobre ao aos e ou mas porem que se como quando onde qual"
    " quais quem quanto quanta quantos quantas cade porque eu tu voce voces ele ela eles elas me te"
    " lhe lhes vos mim comigo meu minha meus minhas seu sua seus suas teu tua nosso nossa nossos"
    " nossas este esta estes estas esse essa esses essas isto isso aquele aquela aquilo ser sou sao"
    " era foi foram sera estar estou estao estava ta to tem tenho tinha ter ha vou vai vao ir pode"
    " posso poderia podem consigo quero queria querem quer preciso precisa gostaria saber ver fazer"
    " favor ja ainda tambem so muito muita mais menos bem aqui ai la hoje agora nao sim ok oi ola"
    " bom boa dia tarde noite obrigado obrigada algum alguma todo toda todos todas cada entre ate"
    " desde tudo nada entao"
    " an the of in on at by for from with without about into and or but so if then that this"
    " these those it its is are was were be been being am does did doing have has had having i"
    " you he she we they him her us them my your his our their mine what which who whom whose when"
    " where why how can could would should will shall may might must want need like know get please"
    " there here just now not yes hi hello hey thanks thank some any all each more most much many"
    " very too also than s t m re ve ll d don"
    " el los las un una unos unas del al con sin pero cual quien cuando donde mi su yo es son"
    " esta hola gracias"
)

# A lone "t" is what is left of "don't", "isn't".
NEGATORS = _set("nao nem nunca jamais not never dont nor t")
# Negate a bare noun ("nem boleto", "not invoices"); "nao" needs an article ("nao a fatura"), else
# it negates the verb that follows ("nao recebi a fatura" is about the invoice).
NOUN_NEGATORS = _set("nem not nor")
# What may stand between a negator and the verb of wanting: "nao e que eu quero", "i do not want".
NEGATION_FILLERS = _set("eu me nos gente i we estou estava to tava am m was really")
# "I do not want …", "I am not talking about …": what follows is not the subject. ("I did not ask
# for this service" is a complaint about the service, so asking and ordering are not here.)
WANTING = _set(
    "quero queria quis preciso precisava desejo gostaria perguntei falei falo falando dizendo"
    " interessa want wanted need needed asking talking mean meant saying quiero necesito pregunte"
)
# "nao quero mais o plano" ends something: its subject stays the plan …
NO_LONGER = _set("mais more anymore")
# … but "nao quero mais falar da fatura" leaves the subject; with any other verb ("nao quero pagar
# a fatura") only the verb is denied.
SPEAKING = _set(
    "falar saber ver ouvir tratar conversar consultar talk hear know speak discuss see check view"
    " hablar saber"
)
INFINITIVE_ENDINGS = ("ar", "er", "ir", "or")
COPULAS = _set("e eh era foi is was es")
DETERMINERS = _set(
    "a o as os um uma uns umas meu minha meus minhas seu sua seus suas de do da dos das em no na"
    " nos nas sobre com esse essa este esta the my an about of for with this that your el la los"
    " las mi"
)
# A new thought begins: what was negated before it is over.
TURNING_WORDS = _set("mas porem sim somente apenas so but only just instead rather pero sino")

# Pronouns before a verb: "me conta", "nos conta" tell something, they are no bill.
CLITICS = _set("me te nos lhe lhes vos")
# Nouns whose verb form means something else -> what follows that verb when no pronoun stands before.
HOMOGRAPHS: dict[str, frozenset[str]] = {
    "conta": _set("um uma outra outro mais como que ai tudo logo comigo historia piada"),
}
TOLD_TO = _set("pra para")
LISTENERS = _set("mim gente nos ela ele eles elas todos")

# A yes whatever follows it …
YES = _set("sim s confirmo confirmado exato positivo yes yeah yep si")
# … and a yes only when it is (almost) all that is said: "ok, e o boleto?" goes on.
SHORT_YES = _set("claro isso pode ok okay certo correto sure beleza aham")
NO = _set("nao n negativo no nope nah")

# Said to leave what was being done (faults 13 and 3.6 ABANDON); whole phrases only.
ABANDONING = tuple(
    tuple(phrase.split())
    for phrase in (
        "esquece", "esqueca", "esquece isso", "esqueca isso", "deixa pra la", "deixa para la",
        "deixe pra la", "deixe para la", "deixa quieto", "cancela isso", "cancele isso",
        "cancelar isso", "desisto", "desisti", "mudei de ideia", "nao quero mais",
        "nao quero mais isso", "nao precisa mais", "deixa isso", "forget it", "forget that",
        "forget about it", "never mind", "nevermind", "cancel that", "cancel this", "cancel it",
        "drop it", "leave it", "i changed my mind", "changed my mind", "olvidalo", "olvida eso",
        "dejalo", "ya no quiero",
    )
)  # fmt: skip
# A message of nothing but such a word (and what may stand around it) stops what was being done.
STOPPING = _set("cancelar cancela cancele sair parar encerrar cancel quit stop exit salir")
STOPPING_FILLERS = _set("quero queria desejo gostaria de i want to quiero")
# Whom somebody asks for who does not want to go on with the assistant.
PERSONS = _set("atendente atendentes humano humana human operador operator")
# What may stand before such a phrase: "ah, entao esquece".
INTERJECTIONS = _set(
    "ah ai oh ok okay entao nao sim bom olha so well so please por favor na verdade actually alias"
    " melhor cara moca moco e no but mas pode just ja"
)

# The shape of a request, as against the answer to a question.
REQUESTING = _set(
    "quero queria preciso gostaria desejo qual quais quanto quantos quando onde cade como porque"
    " quem mostra mostre manda mande envia envie veja ver consultar consulta saber want need show"
    " send what which where when how why who check see quiero necesito donde cuanto"
)
# How the answer to a question begins: "o da ultima compra", "e o celular".
ANSWERING = _set(
    "a o as os e eh foi era da do das dos de na no em the it its is was of from el la es"
)
