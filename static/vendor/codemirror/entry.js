// Source of codemirror.js beside this file. How it is built: see README.md.
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, defaultHighlightStyle, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { jinja2 } from "@codemirror/legacy-modes/mode/jinja2";
import { tags } from "@lezer/highlight";

const darkHighlight = HighlightStyle.define(
  [
    { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "#c792ea" },
    { tag: [tags.string, tags.special(tags.string)], color: "#c3e88d" },
    { tag: [tags.variableName, tags.propertyName], color: "#82aaff" },
    { tag: [tags.number, tags.bool, tags.null], color: "#f78c6c" },
    { tag: [tags.comment, tags.blockComment], color: "#9aa5ce", fontStyle: "italic" },
    { tag: [tags.tagName, tags.brace, tags.punctuation], color: "#89ddff" },
  ],
  { themeType: "dark" },
);

const isDark = () => document.documentElement.classList.contains("dark");

/** Put an editor in front of `textarea`; the textarea keeps the value and is what the form sends. */
export function mount(textarea) {
  const theme = new Compartment();
  const themed = () => EditorView.theme({}, { dark: isDark() });
  const label = textarea.labels && textarea.labels[0];
  const described = textarea.getAttribute("aria-describedby");
  const attributes = { "aria-label": label ? label.textContent.trim() : textarea.name };
  if (described) attributes["aria-describedby"] = described;
  if (textarea.getAttribute("aria-invalid")) attributes["aria-invalid"] = "true";
  const view = new EditorView({
    doc: textarea.value,
    extensions: [
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
      syntaxHighlighting(darkHighlight),
      // Tab is left to the browser: whoever works with the keyboard must get out of the editor.
      keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of(attributes),
      EditorState.readOnly.of(textarea.readOnly || textarea.disabled),
      theme.of(themed()),
      StreamLanguage.define(jinja2),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        textarea.value = update.state.doc.toString();
        textarea.dispatchEvent(new Event("input", { bubbles: true }));
      }),
    ],
  });
  textarea.hidden = true;
  textarea.parentNode.insertBefore(view.dom, textarea);
  if (label) label.addEventListener("click", () => view.focus());
  new MutationObserver(() => view.dispatch({ effects: theme.reconfigure(themed()) })).observe(
    document.documentElement,
    { attributes: true, attributeFilter: ["class"] },
  );
  return view;
}

const mountAll = () => document.querySelectorAll("textarea[data-editor]").forEach(mount);
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
else mountAll();
