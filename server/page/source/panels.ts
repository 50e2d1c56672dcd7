import { copyText } from "./clipboard";
import { makeButton, makeText, openDialog } from "./dialog";
import { examples, type Example } from "./examples";
import { seconds } from "./figures";
import { forgetRuns, isShared, pastRuns, type Past } from "./history";
import type { Language } from "./reply";
import type { Snippet } from "./snippets";

// The dialogs that the buttons at the top open.

function list(items: HTMLElement[]): HTMLElement {
  const element = document.createElement("ul");
  element.className = "choices";
  for (const item of items) {
    const row = document.createElement("li");
    row.append(item);
    element.append(row);
  }
  return element;
}

export function showExamples(languages: Language[], choose: (language: string, example: Example) => void): void {
  const { dialog, body } = openDialog("Examples");
  for (const language of languages) {
    const all = examples[language.language];
    if (!all) continue;
    const heading = document.createElement("h3");
    heading.textContent = language.display_name;
    body.append(
      heading,
      list(
        all.map((example) =>
          makeButton(example.title, () => {
            dialog.close();
            choose(language.language, example);
          }),
        ),
      ),
    );
  }
}

/** showHistory offers the code of the last runs, and to share such a run or to end its link. */
export function showHistory(choose: (past: Past) => void, share: (run: string) => void): void {
  const { dialog, body } = openDialog("History");
  const runs = pastRuns();
  body.append(makeText(runs.length > 0 ? "The code of the last runs. It is kept in this browser alone." : "Nothing was run here yet."));
  if (runs.length === 0) return;
  body.append(
    list(runs.map((past) => pastRun(past, dialog, choose, share))),
    makeButton("Forget all", () => {
      forgetRuns();
      dialog.close();
    }),
  );
}

function pastRun(past: Past, dialog: HTMLDialogElement, choose: (past: Past) => void, share: (run: string) => void): HTMLElement {
  const button = makeButton("", () => {
    dialog.close();
    choose(past);
  });
  const code = document.createElement("code");
  code.textContent = (past.cells.find((cell) => cell.kind === "code")?.text ?? "").split("\n").find((line) => line.trim() !== "")?.slice(0, 120) ?? "";
  const meta = document.createElement("span");
  meta.className = "meta";
  meta.textContent = [past.language, past.status, past.ms > 0 && seconds(past.ms), new Date(past.when).toLocaleString(), isShared(past) && "shared"].filter(Boolean).join(" · ");
  button.append(code, meta);
  const row = document.createElement("div");
  row.className = "past";
  row.append(button);
  if (past.id) {
    const { id } = past;
    const sharing = makeButton("Share", () => {
      dialog.close();
      share(id);
    });
    sharing.setAttribute("aria-label", `Share, or revoke the link: ${code.textContent}`);
    row.append(sharing);
  }
  return row;
}

export function showSnippets(all: Snippet[]): void {
  const { body, says } = openDialog("This request, elsewhere", true);
  const tabs = document.createElement("div");
  tabs.className = "tabs";
  tabs.setAttribute("role", "group");
  tabs.setAttribute("aria-label", "Language of the request");
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", "Request");
  let current = "";
  const buttons = all.map((snippet) => makeButton(snippet.name, () => show(snippet)));
  const show = (snippet: Snippet) => {
    current = snippet.text;
    pre.textContent = snippet.text;
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === snippet.name)));
  };
  tabs.append(...buttons);
  const copy = makeButton(
    "Copy",
    () => {
      void copyText(current, pre).then((done) => {
        copy.textContent = done ? "Copied" : "Selected: press Ctrl-C";
        says(done ? "The request is copied." : "The request is selected.");
        setTimeout(() => (copy.textContent = "Copy"), 2000);
      });
    },
    "primary",
  );
  body.append(tabs, pre, copy);
  if (all[0]) show(all[0]);
}

export function showDownloads(choices: { name: string; about: string; save: () => void }[]): void {
  const { dialog, body } = openDialog("Download");
  body.append(
    list(
      choices.map(({ name, about, save }) => {
        const button = makeButton("", () => {
          dialog.close();
          save();
        });
        const strong = document.createElement("strong");
        strong.textContent = name;
        const meta = document.createElement("span");
        meta.className = "meta";
        meta.textContent = about;
        button.append(strong, meta);
        return button;
      }),
    ),
  );
}

const keys: [string, string][] = [
  ["Shift Enter", "Run, and go to the next cell"],
  ["Ctrl Enter", "Run"],
  ["Alt Enter", "Run, and insert a cell below"],
  ["Esc", "Leave the editor. The keys below work outside it"],
  ["Enter", "Edit the cell"],
  ["j, k or ↓, ↑", "The next cell, the one before"],
  ["a, b", "Insert a cell above, below"],
  ["d d", "Delete the cell"],
  ["z", "Undo the deletion"],
  ["m, y", "Make the cell a text, make it code"],
  ["Tab", "In the editor: complete, or indent. Elsewhere: the next thing on the page"],
];

export function showKeys(): void {
  const { body } = openDialog("Keys");
  const table = document.createElement("table");
  table.className = "keys";
  for (const [key, does] of keys) {
    const row = table.insertRow();
    const head = document.createElement("th");
    head.setAttribute("scope", "row");
    for (const [i, part] of key.split(/(?<=\S) (?=\S)/).entries()) {
      if (i > 0) head.append(" ");
      const kbd = document.createElement("kbd");
      kbd.textContent = part;
      head.append(/^(or)$/.test(part) ? part : kbd);
    }
    row.append(head);
    row.insertCell().textContent = does;
  }
  body.append(table);
}
