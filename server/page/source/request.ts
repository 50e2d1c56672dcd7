// What the page asks the service for: the body of POST /v1/execute.

export interface Wish {
  cells: string[];
  language: string;
  timeout?: number;
  dependencies: string[];
  network: boolean;
  session?: string;
}

/** fields are those of the JSON form. What a session has already is left out. */
export function fields(wish: Wish): Record<string, unknown> {
  const out: Record<string, unknown> = wish.cells.length === 1 ? { code: wish.cells[0] } : { cells: wish.cells };
  if (wish.session) out["session"] = wish.session;
  else {
    out["language"] = wish.language;
    if (wish.dependencies.length > 0) out["dependencies"] = wish.dependencies;
    if (wish.network) out["network"] = true;
  }
  if (wish.timeout !== undefined) out["timeout"] = wish.timeout;
  return out;
}

/** body is a form where there are files, which need not be read into memory then. */
export function body(wish: Wish, files: File[]): string | FormData {
  const all = fields(wish);
  if (files.length === 0) return JSON.stringify(all);
  const form = new FormData();
  for (const [name, value] of Object.entries(all)) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  for (const file of files) form.append("files", file, file.name);
  return form;
}
