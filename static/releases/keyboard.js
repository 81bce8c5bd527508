"use strict";
// The admin theme has links and spans that only a mouse can press (no href, no button). They get
// what a keyboard and a screen reader need.
(() => {
  const NATIVE = "a[href], button, input, select, textarea, summary, label";
  const LABELS = { dock_to_right: "Menu", close: "Close", more_horiz: "More" };
  const say = (word) => (window.gettext ? window.gettext(word) : word);

  const equip = (element) => {
    if (element.dataset.keyed || element.matches(NATIVE) || !element.hasAttribute("x-on:click")) return;
    element.dataset.keyed = "1";
    element.tabIndex = 0;
    element.setAttribute("role", "button");
    const icon = element.textContent.trim();
    // What has neither text nor icon is the shade behind an open sheet.
    const label = icon ? LABELS[icon] : "Close";
    if (label) element.setAttribute("aria-label", say(label));
    element.addEventListener("keydown", (event) => {
      if (event.target !== element || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      element.click();
    });
  };
  const equipAll = (root) => {
    if (root.nodeType !== Node.ELEMENT_NODE) return;
    equip(root);
    root.querySelectorAll("[x-on\\:click]").forEach(equip);
  };

  document.addEventListener("DOMContentLoaded", () => {
    equipAll(document.body);
    new MutationObserver((records) => records.forEach((record) => record.addedNodes.forEach(equipAll)))
      .observe(document.body, { childList: true, subtree: true });
  });
})();
