const name = "notebox.theme";

/** startTheme has the page follow the system, or what was chosen with the button. */
export function startTheme(button: HTMLButtonElement): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = localStorage.getItem(name);
    const dark = chosen ? chosen === "dark" : system.matches;
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
    button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    button.title = button.getAttribute("aria-label") ?? "";
  };
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    const next = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
    if ((next === "dark") === system.matches) localStorage.removeItem(name);
    else localStorage.setItem(name, next);
    document.documentElement.dataset["theme"] = next;
    apply();
  });
  apply();
}
