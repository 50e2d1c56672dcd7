import { readEvents, type ServerEvent } from "./events";
import type { Recorded } from "./outputs/recorded";
import type { EnvironmentList, ServiceStatus, Session, SharedLink } from "./reply";

/** Problem is an answer that is none: an error of the service, or none at all. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status = 0,
    /** Seconds until the service wants to be asked again; 0: it did not say. */
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

const keyName = "notebox.key";

/** Service calls the service that the page is of. The key is kept in this tab alone. */
export class Service {
  /** Where the API is: beside the page, also below a path of a proxy. */
  readonly base = new URL(".", document.baseURI);

  /** askKey is called where the service wants a key; undefined: the person gives none. */
  constructor(private readonly askKey: (wrong: boolean) => Promise<string | undefined>) {}

  get hasKey(): boolean {
    return sessionStorage.getItem(keyName) !== null;
  }

  forgetKey(): void {
    sessionStorage.removeItem(keyName);
  }

  async environments(): Promise<EnvironmentList> {
    return (await this.call("v1/environments")).json() as Promise<EnvironmentList>;
  }

  async status(): Promise<ServiceStatus> {
    return (await this.call("v1/status")).json() as Promise<ServiceStatus>;
  }

  async openSession(wish: object, signal: AbortSignal): Promise<Session> {
    return (await this.call("v1/sessions", { method: "POST", body: JSON.stringify(wish), headers: { "Content-Type": "application/json" }, signal })).json() as Promise<Session>;
  }

  async closeSession(id: string): Promise<void> {
    await this.call(`v1/sessions/${encodeURIComponent(id)}`, { method: "DELETE" });
  }

  async restartSession(id: string): Promise<void> {
    await this.call(`v1/sessions/${encodeURIComponent(id)}/restart`, { method: "POST" });
  }

  async cancel(id: string): Promise<void> {
    await this.call(`v1/executions/${encodeURIComponent(id)}`, { method: "DELETE" });
  }

  /** share makes a page of a run for others. */
  async share(run: string): Promise<SharedLink> {
    return (await this.call(`v1/executions/${encodeURIComponent(run)}/share`, { method: "POST" })).json() as Promise<SharedLink>;
  }

  async unshare(run: string): Promise<void> {
    await this.call(`v1/executions/${encodeURIComponent(run)}/share`, { method: "DELETE" });
  }

  /** shared reads a run that somebody shares. Its link is all that this needs: no key is sent. */
  async shared(address: string): Promise<Recorded> {
    const answer = await this.reach(address, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw await problemOf(answer);
    return answer.json() as Promise<Recorded>;
  }

  /** execute runs a request and gives its events. */
  async *execute(body: string | FormData, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (typeof body === "string") headers["Content-Type"] = "application/json";
    const answer = await this.call("v1/execute", { method: "POST", body, headers, signal });
    if (!answer.body) throw new Problem("The answer has no body.");
    yield* readEvents(answer.body);
  }

  /** local returns the address of a stored file as it is reached from the page; undefined: it is elsewhere. */
  local(url: string): string | undefined {
    if (!url) return undefined;
    const parsed = new URL(url, this.base);
    const at = parsed.pathname.indexOf("/v1/files/");
    if (at >= 0) return new URL(parsed.pathname.slice(at + 1) + parsed.search, this.base).href;
    return parsed.origin === this.base.origin ? parsed.href : undefined;
  }

  private async call(path: string, init: RequestInit = {}): Promise<Response> {
    let key = sessionStorage.getItem(keyName);
    for (let wrong = key !== null; ; wrong = true) {
      const headers = new Headers(init.headers);
      const sendable = !key || /^[\x21-\x7e]+$/.test(key);
      if (key && sendable) headers.set("Authorization", `Bearer ${key}`);
      const answer = sendable ? await this.reach(path, { ...init, headers }) : undefined;
      if (!answer || answer.status === 401) {
        sessionStorage.removeItem(keyName);
        key = (await this.askKey(wrong))?.trim() ?? "";
        if (!key) throw new Problem("An API key is needed.", 401);
        continue;
      }
      if (key) sessionStorage.setItem(keyName, key); // it is good
      if (!answer.ok) throw await problemOf(answer);
      return answer;
    }
  }

  private async reach(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(new URL(path, this.base), { ...init, cache: "no-store", credentials: "same-origin" });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem("The service does not answer.");
    }
  }
}

async function problemOf(answer: Response): Promise<Problem> {
  const text = await answer.text();
  let detail = "";
  try {
    const body = JSON.parse(text) as { detail?: unknown };
    if (typeof body.detail === "string") detail = body.detail;
  } catch {
    // it is no problem+json, of a proxy maybe
  }
  const wait = answer.headers.get("Retry-After") ?? "";
  const seconds = /^\d+$/.test(wait) ? Number(wait) : 0;
  const later = seconds > 0 ? ` Try again in ${seconds} s.` : "";
  return new Problem((detail || `The service answered ${answer.status} ${answer.statusText}.`) + later, answer.status, seconds);
}
