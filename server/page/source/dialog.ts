// Dialogs are the browser's own: they keep the focus, and Escape closes them.

let opened = 0;

export interface OpenDialog {
  dialog: HTMLDialogElement;
  /** Where its content goes. */
  body: HTMLElement;
  close: HTMLButtonElement;
  /** Shows how things stand, and has it read: the page's own line cannot be while a dialog is open. */
  says: (text: string) => void;
}

/** openDialog shows a dialog with a title. */
export function openDialog(title: string, wide = false): OpenDialog {
  const dialog = document.createElement("dialog");
  if (wide) dialog.className = "wide";
  const head = document.createElement("div");
  head.className = "dialog-head";
  const heading = document.createElement("h2");
  heading.textContent = title;
  heading.id = `dialog-title-${++opened}`; // one may be over another
  dialog.setAttribute("aria-labelledby", heading.id);
  const close = makeButton("×", () => dialog.close(), "remove");
  close.setAttribute("aria-label", "Close");
  head.append(heading, close);
  const body = document.createElement("div");
  body.className = "dialog-body";
  const said = document.createElement("p");
  said.className = "about said";
  said.setAttribute("role", "status");
  dialog.append(head, body, said);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  document.body.append(dialog);
  dialog.showModal();
  return { dialog, body, close, says: (text) => (said.textContent = text) };
}

/** makeButton returns a button that does something. */
export function makeButton(text: string, act: () => void, className = ""): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = className;
  button.textContent = text;
  button.addEventListener("click", act);
  return button;
}

/** confirm asks whether to do something; to close the dialog is a no. */
export function confirm(title: string, text: string, yes: string, no: string): Promise<boolean> {
  return new Promise((resolve) => {
    const { dialog, body } = openDialog(title);
    let agreed = false;
    const row = document.createElement("div");
    row.className = "dialog-row";
    row.append(
      makeButton(yes, () => {
        agreed = true;
        dialog.close();
      }, "primary"),
      makeButton(no, () => dialog.close()),
    );
    body.append(makeText(text), row);
    dialog.addEventListener("close", () => resolve(agreed));
  });
}

/** makeText returns a paragraph of a dialog. */
export function makeText(content: string): HTMLElement {
  const element = document.createElement("p");
  element.className = "about";
  element.textContent = content;
  return element;
}

/** askKey asks for an API key; undefined if it is not given. */
export function askKey(wrong: boolean): Promise<string | undefined> {
  return new Promise((resolve) => {
    const { dialog, body } = openDialog("API key");
    const form = document.createElement("form");
    form.method = "dialog";
    const label = document.createElement("label");
    label.className = "field";
    const text = document.createElement("span");
    text.textContent = wrong ? "The service does not know this key. Another one:" : "This service wants a key. It stays in this tab.";
    const input = document.createElement("input");
    input.type = "password";
    input.id = "api-key";
    input.autocomplete = "off";
    input.required = true;
    label.append(text, input);
    const submit = document.createElement("button");
    submit.className = "primary";
    submit.textContent = "Use this key";
    form.append(label, submit);
    body.append(form);
    let given: string | undefined;
    form.addEventListener("submit", () => (given = input.value.trim()));
    dialog.addEventListener("close", () => resolve(given || undefined));
    input.focus();
  });
}
