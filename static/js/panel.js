// The panel of one turn's details: beside the conversation, over it on a narrow screen.
"use strict";
(() => {
  const split = document.querySelector("[data-split]");
  const panel = document.getElementById("details");
  let opener = null;

  function close() {
    delete split.dataset.panel;
    if (opener?.isConnected) opener.focus();
    opener = null;
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== panel) return;
    const shown = panel.querySelector("[data-details]")?.dataset.details;
    for (const article of document.querySelectorAll(".turn")) {
      article.classList.toggle("selected", article.dataset.turn === shown);
    }
    panel.scrollTop = 0;
    const asker = event.detail.requestConfig.elt;
    if (!asker.matches("a")) return; // loaded by the chat itself: nobody asked to go there
    opener = asker;
    split.dataset.panel = "open";
    panel.querySelector("h2")?.focus({ preventScroll: true });
  });
  panel.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-details]")) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && split.dataset.panel) close();
  });
})();
