import type { Controls } from "./controls";
import { readNotebook } from "./ipynb";
import type { CellText } from "./notebook";

/** Code that is opened: from a file, of a shared run. */
export interface Opened {
  cells: CellText[];
  language: string; // as it was named; "": none was
}

/** readFile reads a notebook, or a script, whose language its name tells. */
export async function readFile(file: File, controls: Controls): Promise<Opened> {
  const text = await file.text();
  if (file.name.endsWith(".ipynb")) return readNotebook(text);
  const language = controls.languages.find((l) => file.name.toLowerCase().endsWith(l.file_extension.toLowerCase()));
  return { cells: [{ kind: "code", text }], language: language?.language ?? "" };
}

/** choose has the page use the language of what is opened. It returns what is to be said if the service does not have it. */
export function choose(language: string, controls: Controls): string | undefined {
  const known = controls.find(language);
  if (known) controls.choose(known.language);
  return known || language === "" ? undefined : `is in ${language}, which this service does not have.`;
}
