import type { CellText } from "./notebook";

// The draft is what is in the cells. It is kept in this tab, for when it is loaded again.

const name = "notebox.draft";

/** Milliseconds after the last change until the draft is kept. */
const pause = 400;

export interface Draft {
  language: string;
  cells: CellText[];
}

let timer = 0;
let pending: (() => Draft) | undefined;

/** keepDraft keeps what draft returns, once nothing has changed for a moment, or when the page goes. */
export function keepDraft(draft: () => Draft): void {
  pending = draft;
  clearTimeout(timer);
  timer = window.setTimeout(flush, pause);
}

addEventListener("pagehide", flush);

function flush(): void {
  if (!pending) return;
  const draft = pending();
  pending = undefined;
  try {
    sessionStorage.setItem(name, JSON.stringify(draft));
  } catch {
    sessionStorage.removeItem(name); // too large
  }
}

export function readDraft(): Draft | undefined {
  try {
    const draft = JSON.parse(sessionStorage.getItem(name) ?? "null") as Draft | null;
    return draft && !isBlank(draft.cells) ? draft : undefined;
  } catch {
    return undefined;
  }
}

/** isBlank says that there is nothing in the cells. */
export function isBlank(cells: CellText[]): boolean {
  return cells.every((cell) => cell.text.trim() === "");
}
