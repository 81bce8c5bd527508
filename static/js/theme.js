// Light, dark, or what the system says; loaded before the first paint so that nothing flashes.
"use strict";
(() => {
  const root = document.documentElement;
  const saved = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }
  };
  root.dataset.theme = ["light", "dark"].includes(saved()) ? saved() : "auto";
  const isDark = () => root.dataset.theme === "dark"
    || (root.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        try { localStorage.setItem("theme", root.dataset.theme); } catch { /* private window */ }
      });
    }
  });

  // An open menu closes on Escape and on a click elsewhere.
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
})();
