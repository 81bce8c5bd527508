"use strict";
// Rows that can be added, removed and moved. Without this file every form still works: blank rows
// are there to be filled, and boxes and numbers remove and move.
(() => {
  document.documentElement.classList.add("ao-scripted");

  const button = (icon, label, action) => {
    const element = document.createElement("button");
    element.type = "button";
    element.className = "ao-icon-button";
    element.title = label;
    element.setAttribute("aria-label", label);
    element.innerHTML = `<span class="material-symbols-outlined" aria-hidden="true">${icon}</span>`;
    element.addEventListener("click", action);
    return element;
  };

  const firstInput = (row) => row.querySelector("input:not([type=hidden]), textarea, select");
  const changed = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));

  const move = (row, step, selector) => {
    const rows = [...row.parentNode.children].filter((item) => item.matches(selector));
    const other = rows[rows.indexOf(row) + step];
    if (!other) return;
    if (step < 0) other.before(row);
    else other.after(row);
  };

  // -- rows of texts, choices and pairs ---------------------------------------------------------
  function enhanceRows(box) {
    if (box.dataset.ready) return;
    box.dataset.ready = "1";
    box.querySelectorAll("[data-row][data-blank]").forEach((row, index) => {
      if (index > 0 || "locked" in box.dataset) row.remove();
    });
    if ("locked" in box.dataset) return;
    const pattern = box.querySelector("[data-row][data-blank]");
    if (!pattern) return;
    const blank = pattern.cloneNode(true);
    if (box.querySelectorAll("[data-row]").length > 1) pattern.remove();

    const prepare = (row) => {
      const tools = document.createElement("span");
      tools.className = "ao-row-tools";
      const focusTool = (name) => tools.querySelector(`[data-tool=${name}]`).focus();
      const tool = (name, icon, label, action) => {
        const element = button(icon, label, action);
        element.dataset.tool = name;
        tools.append(element);
      };
      if (box.dataset.up) {
        tool("up", "arrow_upward", box.dataset.up, () => { move(row, -1, "[data-row]"); focusTool("up"); changed(row); });
        tool("down", "arrow_downward", box.dataset.down, () => { move(row, 1, "[data-row]"); focusTool("down"); changed(row); });
      }
      tool("remove", "close", box.dataset.remove, () => {
        const next = row.nextElementSibling;
        const target = next && next.matches("[data-row]") ? firstInput(next) : add;
        row.remove();
        changed(box);
        target.focus();
      });
      row.append(tools);
      const type = row.querySelector(".ao-pair-type");
      if (type) {
        const text = row.querySelector("textarea:not(.ao-pair-name)");
        const show = () => { text.hidden = ["true", "false", "null"].includes(type.value); };
        type.addEventListener("change", show);
        show();
      }
    };

    const addRow = (after, value) => {
      const row = blank.cloneNode(true);
      row.querySelectorAll("[id]").forEach((element) => element.removeAttribute("id"));
      prepare(row);
      if (after) after.after(row);
      else add.before(row);
      if (value !== undefined) firstInput(row).value = value;
      return row;
    };

    const add = document.createElement("button");
    add.type = "button";
    add.className = "ao-button ao-add";
    add.innerHTML = '<span class="material-symbols-outlined" aria-hidden="true">add</span> ';
    add.append(box.dataset.add);
    add.addEventListener("click", () => firstInput(addRow()).focus());
    box.append(add);
    box.querySelectorAll("[data-row]").forEach(prepare);

    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.target.tagName !== "INPUT" || event.isComposing) return;
      event.preventDefault();
      firstInput(addRow(event.target.closest("[data-row]"))).focus();
    });
    box.addEventListener("paste", (event) => {
      if (event.target.tagName !== "INPUT" || box.classList.contains("ao-pairs")) return;
      const lines = event.clipboardData.getData("text").split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
      if (lines.length < 2) return;
      event.preventDefault();
      let row = event.target.closest("[data-row]");
      if (event.target.value === "") event.target.value = lines.shift();
      lines.forEach((line) => { row = addRow(row, line); });
      firstInput(row).focus();
      changed(box);
    });
  }

  // -- rows of objects --------------------------------------------------------------------------
  function enhanceForms(set) {
    if (set.dataset.ready || "locked" in set.dataset) return;
    set.dataset.ready = "1";
    const prefix = set.dataset.formset;
    const list = set.querySelector("[data-form-rows]");
    const total = set.querySelector(`[name="${prefix}-TOTAL_FORMS"]`);
    const template = set.querySelector("template[data-empty-form]");
    const ordered = () => template.content.querySelector(".ao-order") !== null;

    const renumber = () => {
      [...list.querySelectorAll(":scope > [data-form-row]")].forEach((row, index) => {
        const place = row.querySelector(".ao-order");
        if (place) place.value = index + 1;
      });
    };
    const prepare = (row) => {
      const tools = document.createElement("div");
      tools.className = "ao-row-tools";
      if (ordered()) {
        const up = button("arrow_upward", set.dataset.up, () => { move(row, -1, "[data-form-row]"); renumber(); up.focus(); });
        const down = button("arrow_downward", set.dataset.down, () => { move(row, 1, "[data-form-row]"); renumber(); down.focus(); });
        tools.append(up, down);
      }
      tools.append(button("close", set.dataset.remove, () => {
        row.querySelector(".ao-delete").checked = true;
        row.dataset.removed = "";
        renumber();
        changed(set);
        set.querySelector("[data-add-form]").focus();
      }));
      row.append(tools);
      if (row.querySelector(".ao-delete").checked) row.dataset.removed = "";
      const named = firstInput(row);
      const title = row.querySelector("[data-row-title]");
      named.addEventListener("input", () => { title.textContent = named.value || set.dataset.new; });
    };

    // The blank row is for whoever has no script; it is the last one, so the count simply falls.
    [...list.querySelectorAll(":scope > [data-form-row][data-blank]")].reverse().forEach((row) => {
      row.remove();
      total.value = Number(total.value) - 1;
    });
    list.querySelectorAll(":scope > [data-form-row]").forEach(prepare);
    set.querySelector(":scope > [data-add-form]").addEventListener("click", () => {
      const holder = document.createElement("div");
      holder.innerHTML = template.innerHTML.replaceAll("__prefix__", total.value);
      const row = holder.querySelector("[data-form-row]");
      row.removeAttribute("data-blank");
      total.value = Number(total.value) + 1;
      list.append(row);
      prepare(row);
      enhance(row);
      renumber();
      firstInput(row).focus();
    });
  }

  function enhance(root) {
    root.querySelectorAll("[data-rows]").forEach(enhanceRows);
    root.querySelectorAll("[data-formset]").forEach(enhanceForms);
    if (window.django && window.django.jQuery && window.django.jQuery.fn.djangoCustomSelect2) {
      window.django.jQuery(root).find(".unfold-admin-autocomplete").djangoCustomSelect2();
    }
  }

  // -- leaving with unsaved changes, errors first -----------------------------------------------
  function guard(form) {
    let dirty = false;
    const touched = () => { dirty = true; };
    form.addEventListener("input", touched);
    form.addEventListener("change", touched);
    form.addEventListener("submit", () => { dirty = false; });
    window.addEventListener("beforeunload", (event) => { if (dirty) event.preventDefault(); });
  }

  document.addEventListener("DOMContentLoaded", () => {
    enhance(document);
    document.querySelectorAll("form[data-guard]").forEach(guard);
    const errors = document.querySelector("[data-focus]");
    if (errors) errors.focus();
    document.querySelectorAll("[data-focus] a[href^='#']").forEach((link) => {
      link.addEventListener("click", () => {
        const target = document.getElementById(link.hash.slice(1));
        if (!target) return;
        for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
        const editor = target.parentNode.querySelector(".cm-content");
        setTimeout(() => (editor || target).focus(), 0);
      });
    });
  });
})();
