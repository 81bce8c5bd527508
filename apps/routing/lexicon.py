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
    " el los las un una unos unas del al con sin pero cual cuales quien cuando donde cuanto cuanta"
    " mi mis su sus yo ella ellos nosotros ustedes usted es son fue era estoy estan tengo tiene hay"
    " voy puedo puede quiero quisiera necesito tambien solo mucho muy bien aqui alli hoy ahora y o"
    " ni le les lo la eso ese esa aquel hola gracias buenos buenas dias tardes noches"
)

# A lone "t" is what is left of "don't", "isn't".
NEGATORS = _set("nao nem nunca jamais not never dont nor t")
# Spanish "no" is Portuguese for "in the": it negates only before these.
NEGATED_BY_NO = _set(
    "quiero quisiera necesito deseo busco hablo pregunto pregunte estoy es era fue me se tengo puedo"
    " recibi reconozco funciona entiendo want need"
)
# Negate a bare noun ("nem boleto", "not invoices"); "nao" needs an article ("nao a fatura"), else
# it negates the verb that follows ("nao recebi a fatura" is about the invoice).
NOUN_NEGATORS = _set("nem not nor")
# What may stand between a negator and the verb of wanting: "nao e que eu quero", "i do not want".
NEGATION_FILLERS = _set("eu me nos gente i we estou estava to tava am m was really")
# "I do not want …", "I am not talking about …": what follows is not the subject. ("I did not ask
# for this service" is a complaint about the service, so asking and ordering are not here.)
WANTING = _set(
    "quero queria quis preciso precisava desejo gostaria perguntei falei falo falando dizendo"
    " interessa want wanted need needed asking talking mean meant saying quiero quisiera necesito"
    " pregunte pregunto hablo hablando busco"
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
    " las mi mis un una unos unas del al con su sus ese esa"
)
# A new thought begins: what was negated before it is over.
TURNING_WORDS = _set("mas porem sim somente apenas so but only just instead rather pero sino")

# Pronouns before a verb: "me conta", "nos conta" tell something, they are no bill.
CLITICS = _set("me te nos lhe lhes vos le les os")
# Nouns whose verb form means something else -> what follows that verb when no pronoun stands before.
HOMOGRAPHS: dict[str, frozenset[str]] = {
    "conta": _set("um uma outra outro mais como que ai tudo logo comigo historia piada"),
    "cuenta": _set("un una otro otra mas como que algo todo chiste historia cuento conmigo"),
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
        "dejalo", "ya no quiero", "cancela eso", "cancelalo", "cambie de idea", "dejemoslo",
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
    " send what which where when how why who check see quiero quisiera necesito donde cuanto cuanta"
    " cual cuales cuando quien muestrame enviame mandame dime"
)
# How the answer to a question begins: "o da ultima compra", "e o celular".
ANSWERING = _set(
    "a o as os e eh foi era da do das dos de na no em the it its is was of from el la es"
)

# -- a person, or the end ----------------------------------------------------------------------

# Somebody who is no assistant, when somebody is asked for with "falar com …", "talk to …".
SOMEBODY = _set(
    "atendente atendentes humano humana humanos human humans operador operadora operator pessoa"
    " pessoas person people alguem someone somebody alguien persona agente agentes agent agents"
    " representante representative supervisor supervisora gerente manager consultor consultora"
    " especialista asesor"
)
# These alone ("atendente!") or wanted ("quero um humano") are a person without more words.
ONLY_PERSONS = _set(
    "atendente atendentes humano humana humanos human humans operador operadora operator"
    " representante representative asesor gerente supervisor supervisora"
)
ALONE_PERSONS = ONLY_PERSONS | _set("agente agent")
# What may stand around such a word when it is all that is said.
PERSON_COMPANY = _set(
    "um uma o a por favor please real live atendimento com de verdade un una an the"
    " gostaria quero ja agora now ahora"
)
# "falar com", "speak to": the link has to be said.
TALKING = _set(
    "falar fala conversar converso hablar charlar talk talking speak speaking chat contato contact"
    " contactar"
)
# "me passa para", "transfer me to".
PASSING = _set(
    "transferir transfere transfira transferencia transfer transfiere transfiera passar passa passe"
    " encaminhar encaminha encaminhe connect put comunicar comunique pasar pasame paseme"
    " comuniqueme transfierame redirecionar redireciona"
)
# "chama um", "I need a".
CALLING = _set(
    "chamar chama chame quero queria preciso desejo get give call want need quiero quisiera"
    " necesito llamar llama cade"
)
LINKS = _set("com para pra pro to with through con ao al a por")
BETWEEN = _set(
    "me nos comigo um uma uns o a os as an the un una el la algum alguma alguem outro outra real"
    " live atendimento de do da seu sua minha meu sr actual some any otro otra falar conversar"
)
# Before such a request these deny it ("sem falar com", "não precisa me passar para") …
DENYING = NEGATORS | _set("sem without sin apos after depois consegui consegue conseguiu")
# … also over these words.
DENIED_OVER = (
    WANTING
    | NEGATION_FILLERS
    | _set(
        "precisa precisam precisamos e que necessario adianta vou vai pretendo to have has de going"
        " tengo hace falta me would like gosto antes"
    )
)

# A farewell. A message is one only when it is (almost) nothing else.
ENDING = frozenset(
    tuple(phrase.split())
    for phrase in (
        "tchau", "tchauzinho", "xau", "adeus", "ate mais", "ate logo", "ate breve", "ate a proxima",
        "ate mais tarde", "encerrar", "encerra", "encerre", "finalizar", "finaliza", "sair",
        "encerrar atendimento", "encerrar conversa", "encerrar o atendimento",
        "encerrar a conversa", "encerra o atendimento", "encerra a conversa",
        "finalizar atendimento", "finalizar o atendimento", "era so isso", "e so isso", "so isso",
        "so isso mesmo", "isso e tudo", "nada mais", "bye", "goodbye", "good bye", "see you",
        "see you later", "that s all", "that is all", "thats all", "nothing else", "end session",
        "end chat", "end conversation", "end the chat", "end the conversation", "end the session",
        "close the chat", "quit", "exit", "adios", "chao", "chau", "hasta luego", "hasta pronto",
        "hasta manana", "eso es todo", "es todo", "terminar", "salir",
    )
)  # fmt: skip
FAREWELL_COMPANY = INTERJECTIONS | _set(
    "obrigado obrigada brigado brigada valeu agradeco muito muita thanks thank you thx gracias"
    " muchas por favor pela pelo ajuda atencao help for the your bom boa dia tarde noite have nice"
    " good great day todos tudo que quero queria i want to a um uma gente ola hoje mesmo all very"
    " much isso certo perfeito otimo"
)
