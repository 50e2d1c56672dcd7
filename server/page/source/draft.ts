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

/** keepDraft keeps what draft returns, once nothing has changed for a moment. */
export function keepDraft(draft: () => Draft | undefined): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    const now = draft();
    if (!now) return;
    try {
      sessionStorage.setItem(name, JSON.stringify(now));
    } catch {
      sessionStorage.removeItem(name); // too large
    }
  }, pause);
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
