import type { Host } from "./host";

/** Characters of one formula: KaTeX takes time for more. */
const formulaChars = 20_000;

/** showFormula fills an element with a formula, when KaTeX is loaded. */
export async function showFormula(element: HTMLElement, tex: string, display: boolean, host: Host): Promise<void> {
  element.textContent = tex; // until then, and if it is none
  if (tex.length > formulaChars) return;
  const { default: katex } = await import("katex");
  if (!host.mathml) await fonts();
  katex.render(tex, element, {
    displayMode: display,
    output: host.mathml ? "mathml" : "htmlAndMathml",
    throwOnError: false,
    trust: false,
    strict: false,
    maxSize: 50,
    maxExpand: 1000,
  });
}

let loaded: Promise<void> | undefined;

/** fonts loads KaTeX's style sheet, which names its fonts. */
function fonts(): Promise<void> {
  loaded ??= new Promise((resolve) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "page/katex.css";
    link.addEventListener("load", () => resolve());
    link.addEventListener("error", () => resolve());
    document.head.append(link);
  });
  return loaded;
}

/** strip removes what marks LaTeX as a formula: $…$, $$…$$, \[…\], \(…\). */
export function strip(latex: string): { tex: string; display: boolean } {
  const text = latex.trim();
  for (const [open, close, display] of [
    ["$$", "$$", true],
    ["\\[", "\\]", true],
    ["$", "$", false],
    ["\\(", "\\)", false],
  ] as const) {
    if (text.length > open.length + close.length && text.startsWith(open) && text.endsWith(close)) {
      return { tex: text.slice(open.length, -close.length).replace(/^\\displaystyle\s*/, "\\displaystyle "), display };
    }
  }
  return { tex: text, display: true };
}
