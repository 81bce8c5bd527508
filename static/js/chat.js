// One conversation over the websocket.
//
// Two things are kept: `cursor`, the number of the last event applied, so that every event counts
// once however often the line breaks; and `streams`, what is known of each open turn. A delta adds,
// the final frame replaces, and at the end of a turn the server's own rendering takes its place.
"use strict";
(() => {
  const chat = document.getElementById("chat");
  const log = document.getElementById("log");
  const composer = document.getElementById("composer");
  const input = document.getElementById("message");
  const connection = document.getElementById("connection");
  const announcer = document.getElementById("announcer");
  const labels = JSON.parse(document.getElementById("labels").textContent);
  const transcript = () => document.getElementById("transcript");
  const wide = matchMedia("(min-width: 64rem)");

  let cursor = Number(transcript().dataset.cursor);
  let socket = null;
  let attempt = 0;
  let timer = 0;
  let held = null; // frames that came while the transcript is fetched anew
  const streams = new Map(); // turn id -> {text, state}
  const outbox = new Map(); // message id -> {body, article}, until the server has it
  let unanswered = []; // message ids sent over this socket, in order

  // -- what is shown ---------------------------------------------------------------------------

  const articleOf = (turnId) => document.getElementById(`turn-${turnId}`);
  const nearEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 120;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };

  function setState(article, state) {
    article.dataset.state = state;
    article.querySelector("[data-badge]").textContent = labels.states[state] ?? state;
    article.querySelector(".answer").setAttribute("aria-busy", String(state === "answering"));
    article.querySelector("[data-retry]").hidden = state !== "refused";
  }

  function paint(turnId) {
    const article = articleOf(turnId);
    const stream = streams.get(turnId);
    if (!article || !stream || "settled" in article.dataset) return;
    const follow = nearEnd();
    article.querySelector(".answer .text").textContent = stream.text;
    if (article.dataset.state !== stream.state) setState(article, stream.state);
    if (follow) toEnd();
  }

  function addArticle(text) {
    const article = document.getElementById("turn").content.firstElementChild.cloneNode(true);
    article.querySelector(".question .text").textContent = text;
    transcript().append(article);
    transcript().querySelector("[data-empty]").hidden = true;
    toEnd();
    return article;
  }

  const address = (name, turnId) =>
    chat.dataset[name].replace("00000000-0000-0000-0000-000000000000", turnId);

  // A fragment that does not come leaves what is shown already; the next event or reload mends it.
  const fetched = (url, target, swap) => htmx.ajax("GET", url, { target, swap }).catch(() => {});

  async function fetchTurn(turnId) {
    const article = articleOf(turnId);
    if (!article) return;
    const follow = nearEnd();
    await fetched(address("turnUrl", turnId), article, "outerHTML");
    paint(turnId);
    if (follow) toEnd();
  }

  function showConnection(state) {
    connection.dataset.connection = state;
    connection.textContent = labels.connection[state];
  }

  // -- sending ---------------------------------------------------------------------------------

  // Made here, once for each message: sent again under the same id it is the same message.
  const newId = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  function submit() {
    const text = input.value.trim();
    if (!text) return;
    const identity = {};
    for (const field of composer.querySelectorAll(".identity input")) {
      if (field.value.trim()) identity[field.name] = field.value.trim();
    }
    const body = { ...identity, message: text, message_id: newId() };
    const article = addArticle(text);
    article.dataset.message = body.message_id;
    setState(article, "sending");
    outbox.set(body.message_id, { body, article });
    input.value = "";
    resize();
    deliver(body.message_id);
  }

  function deliver(messageId) {
    const entry = outbox.get(messageId);
    if (!entry || unanswered.includes(messageId) || connection.dataset.connection !== "live") return;
    unanswered.push(messageId);
    entry.article.querySelector(".problem").hidden = true;
    setState(entry.article, "sending");
    socket.send(JSON.stringify(entry.body));
  }

  function arrived(messageId, turnId) {
    const entry = outbox.get(messageId);
    if (!entry) return;
    outbox.delete(messageId);
    if (articleOf(turnId)) { // already there, rendered by the server
      if (articleOf(turnId) !== entry.article) entry.article.remove();
      return;
    }
    entry.article.id = `turn-${turnId}`;
    entry.article.dataset.turn = turnId;
    if (!streams.has(turnId)) streams.set(turnId, { text: "", state: "queued" });
    paint(turnId);
  }

  function refused(problem) {
    const entry = outbox.get(unanswered.shift());
    if (!entry) return;
    setState(entry.article, "refused");
    const said = entry.article.querySelector(".problem");
    said.textContent = problem.detail;
    said.hidden = false;
    announcer.textContent = `${labels.states.refused}: ${problem.detail}`;
  }

  // -- receiving -------------------------------------------------------------------------------

  function apply({ event, id, data }) {
    if (id <= cursor) return;
    cursor = id;
    const payload = data.payload;
    const turnId = payload.turn_id;
    if (!turnId) return;
    if (event === "flow.start") {
      arrived(payload.message_id, turnId);
      if (!articleOf(turnId)) { // somebody else's message: the server knows its text
        const article = addArticle("");
        article.id = `turn-${turnId}`;
        setState(article, "queued");
        fetchTurn(turnId);
      }
    }
    const stream = streams.get(turnId) ?? { text: "", state: "queued" };
    streams.set(turnId, stream);
    if (event === "workflow.started") Object.assign(stream, { text: "", state: "running" });
    else if (event === "message.delta") Object.assign(stream, { text: stream.text + payload.text, state: "answering" });
    else if (event === "message.responded") {
      Object.assign(stream, { text: payload.text, state: payload.outcome });
      announcer.textContent = payload.text;
    } else if (event === "flow.end") return ended(turnId);
    paint(turnId);
  }

  async function ended(turnId) {
    await fetchTurn(turnId);
    streams.delete(turnId);
    if (wide.matches) fetched(address("detailsUrl", turnId), "#details", "innerHTML");
  }

  async function resync() {
    held = [];
    await fetched(chat.dataset.transcriptUrl, "#transcript", "outerHTML");
    cursor = Number(transcript().dataset.cursor);
    streams.clear();
    for (const [messageId, { article }] of outbox) {
      if (transcript().querySelector(`[data-message="${messageId}"]`)) outbox.delete(messageId);
      else transcript().append(article);
    }
    const waiting = held;
    held = null;
    waiting.forEach(apply);
    toEnd();
  }

  function receive(frame) {
    if (frame.event === "connected") {
      attempt = 0;
      showConnection("live");
      [...outbox.keys()].filter((id) => outbox.get(id).article.dataset.state !== "refused").forEach(deliver);
    } else if (frame.event === "accepted") arrived(unanswered.shift(), frame.data.turn_id);
    else if (frame.event === "problem") refused(frame.data);
    else if (frame.event === "resync") resync();
    else if (frame.id === null) return;
    else if (held) held.push(frame);
    else apply(frame);
  }

  // -- the line --------------------------------------------------------------------------------

  function connect() {
    clearTimeout(timer);
    unanswered = [];
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const line = new WebSocket(`${scheme}//${location.host}${chat.dataset.socket}?after=${cursor}`);
    socket = line;
    line.onmessage = (event) => { if (line === socket) receive(JSON.parse(event.data)); };
    line.onclose = (event) => {
      if (line !== socket) return;
      if (event.code === 4401) return showConnection("signed_out");
      if (event.code === 4403 || event.code === 4404) return showConnection("closed");
      showConnection("reconnecting");
      const wait = Math.min(10_000, 400 * 2 ** attempt++) * (0.75 + Math.random() / 2);
      timer = setTimeout(connect, wait);
    };
  }
  const reconnectNow = () => {
    if (connection.dataset.connection !== "reconnecting" || socket.readyState === WebSocket.CONNECTING) return;
    attempt = 0;
    connect();
  };
  addEventListener("online", reconnectNow);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) reconnectNow(); });

  // -- the composer ----------------------------------------------------------------------------

  const resize = () => {
    input.rows = Math.min(8, input.value.split("\n").length);
  };
  composer?.addEventListener("submit", (event) => { event.preventDefault(); submit(); input.focus(); });
  input?.addEventListener("input", resize);
  input?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  log.addEventListener("click", (event) => {
    if (event.target.closest("[data-retry]")) deliver(event.target.closest(".turn").dataset.message);
  });

  toEnd();
  connect();
})();
