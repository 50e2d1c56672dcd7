import type { EnvironmentList, Language, Limits } from "./reply";

/** byId returns an element that html/index.html has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Controls are what a run is asked with: language, mode, timeout, packages, network. */
export class Controls {
  languages: Language[] = [];
  private limits: Limits | undefined;
  private readonly select = byId<HTMLSelectElement>("language");
  private readonly timeout = byId<HTMLInputElement>("timeout");
  private readonly packages = byId<HTMLInputElement>("packages");
  private readonly network = byId<HTMLInputElement>("network");
  private readonly sessionMode = byId<HTMLInputElement>("session-mode");

  constructor(private readonly changed: () => void) {
    this.select.addEventListener("change", () => this.choose(this.select.value));
    const options = byId<HTMLButtonElement>("options-button");
    options.addEventListener("click", () => {
      const panel = byId("options");
      panel.hidden = !panel.hidden;
      options.setAttribute("aria-expanded", String(!panel.hidden));
    });
    for (const radio of document.querySelectorAll("input[name=mode]")) radio.addEventListener("change", () => this.changed());
  }

  /** fill shows what the service offers: languages whose image is there. */
  fill(list: EnvironmentList): void {
    this.languages = (list.environments ?? []).filter((language) => language.available);
    this.limits = list.limits;
    this.select.replaceChildren(...this.languages.map(({ display_name, language }) => new Option(display_name, language)));
    this.select.disabled = this.languages.length === 0;
    this.timeout.placeholder = String(list.limits.timeout_seconds);
    this.timeout.max = String(list.limits.max_timeout_seconds);
    byId("network-field").hidden = !list.limits.network;
    this.sessionMode.disabled = !list.limits.sessions;
    const standard = this.languages.find((language) => language.default) ?? this.languages[0];
    if (standard) this.choose(standard.language);
  }

  get language(): Language | undefined {
    return this.languages.find((language) => language.language === this.select.value);
  }

  get session(): boolean {
    return this.sessionMode.checked && !this.sessionMode.disabled;
  }

  /** find returns a language by its name or an alias. */
  find(name: string): Language | undefined {
    name = name.toLowerCase();
    return this.languages.find((language) => language.language === name || language.aliases.includes(name) || language.kernel === name || language.name === name);
  }

  choose(language: string): void {
    this.select.value = language;
    const { dependencies } = this.language ?? {};
    byId("packages-field").hidden = !dependencies;
    byId("packages-label").textContent = dependencies ? `Packages (${dependencies.notation})` : "Packages";
    const hints: Record<string, string> = { pip: "polars, humanize==4.*", npm: "lodash@^4", apt: "jq, sl" };
    this.packages.placeholder = dependencies?.allowed?.slice(0, 5).join(", ") ?? hints[dependencies?.notation ?? ""] ?? "";
    this.changed();
  }

  get wishes(): { timeout?: number; dependencies: string[]; network: boolean } {
    const timeout = this.timeout.valueAsNumber;
    return {
      ...(timeout > 0 && { timeout: Math.min(timeout, this.limits?.max_timeout_seconds ?? timeout) }),
      dependencies: this.language?.dependencies ? this.packages.value.split(/[,\s]+/).filter(Boolean) : [],
      network: this.network.checked && !byId("network-field").hidden,
    };
  }

  /** reset takes back all wishes but the language: a fresh sandbox, no packages, no network. */
  reset(): void {
    byId<HTMLInputElement>("fresh-mode").checked = true;
    this.timeout.value = this.packages.value = "";
    this.network.checked = false;
    this.changed();
  }

  get maxUpload(): number {
    return this.limits?.max_upload_bytes ?? Infinity;
  }
}
