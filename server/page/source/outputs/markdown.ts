import type { Host } from "./host";
import { sanitize } from "./html";
import { showFormula } from "./math";

/** Characters of Markdown that are read as such: marked takes time for more. */
const markdownChars = 256 << 10;

/** showMarkdown returns an element that has the text, and soon what it says. */
export function showMarkdown(text: string, host: Host): HTMLElement {
  const element = document.createElement("div");
  element.className = "markdown";
  element.textContent = text;
  if (text.length <= markdownChars) {
    void render(text).then((fragment) => {
      element.replaceChildren(fragment);
      for (const place of element.querySelectorAll<HTMLElement>("[data-math]")) {
        void showFormula(place, place.dataset["math"] ?? "", place.dataset["display"] === "true", host);
      }
    });
  }
  return element;
}

async function render(text: string): Promise<DocumentFragment> {
  const { Marked } = await import("marked");
  const escape = (s: string) => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const formula = (name: string, level: "block" | "inline", start: RegExp, whole: RegExp, display: boolean) => ({
    name,
    level,
    start: (src: string) => src.search(start),
    tokenizer(src: string) {
      const match = whole.exec(src);
      return match ? { type: name, raw: match[0], text: match[1] ?? "" } : undefined;
    },
    renderer: (token: { text?: string }) => `<span data-math="${escape((token.text ?? "").trim())}" data-display="${display}"></span>`,
  });
  const marked = new Marked({
    extensions: [
      formula("displayFormula", "inline", /\$\$/, /^\$\$([^$]+)\$\$/, true),
      formula("formula", "inline", /\$/, /^\$(?![\s$])([^$\n]*[^\s$\\])\$(?!\d)/, false),
    ],
  });
  return sanitize(await marked.parse(text), ["img"]);
}
