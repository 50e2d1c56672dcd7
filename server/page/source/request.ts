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

/**
 * formFields are those of the form, as text. The code is in JSON: FormData ends its lines with
 * "\r\n", which a shell does not take.
 */
export function formFields(wish: Wish): Record<string, string> {
  const { code, ...others } = fields(wish);
  const all = code === undefined ? others : { cells: [code], ...others };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]));
}

/** body is a form where there are files, which need not be read into memory then. */
export function body(wish: Wish, files: File[]): string | FormData {
  if (files.length === 0) return JSON.stringify(fields(wish));
  const form = new FormData();
  for (const [name, value] of Object.entries(formFields(wish))) form.set(name, value);
  for (const file of files) form.append("files", file, file.name);
  return form;
}
