import { copyText } from "./clipboard";
import { makeButton, makeText, openDialog } from "./dialog";
import { noteShared } from "./history";
import type { CellText } from "./notebook";
import { ownQuery } from "./query";
import type { SharedLink } from "./reply";
import { Problem, type Service } from "./service";

// Sharing makes a page of one run, as the service has stored it. Nothing that was only typed
// is sent anywhere.

/** showShare makes a link to a run, or ends those that there are, whenever they were made. */
export function showShare(service: Service, run: string): void {
  const { body, close, says } = openDialog("Share this run", true);
  const about = makeText("Whoever has the link sees the code of this run and its output: text, pictures and files. The page has no variables, no keys, and no files that you gave to the run. Nobody can run or change anything there.");
  const make = makeButton("Make a link", () => void attempt(async () => made(await service.share(run))), "primary");
  const end = makeButton("Revoke", () => void attempt(revoke));
  end.id = "share-revoke";
  end.title = "Ends all links to this run";
  const row = document.createElement("div");
  row.className = "dialog-row";
  row.append(make, end);
  body.append(about, row);

  const attempt = async (act: () => void | Promise<void>) => {
    make.disabled = end.disabled = true;
    try {
      await act();
    } catch (error) {
      says(error instanceof Problem ? error.message : String(error));
    }
    make.disabled = end.disabled = false;
  };
  const made = (link: SharedLink) => {
    noteShared(run, Date.parse(link.expires_at));
    const address = document.createElement("input");
    address.type = "text";
    address.id = "share-link";
    address.readOnly = true;
    address.value = link.url;
    address.setAttribute("aria-label", "Link");
    const copy = makeButton("Copy", () => {
      address.select();
      void copyText(link.url).then((done) => {
        copy.textContent = done ? "Copied" : "Selected: press Ctrl-C";
        says(done ? "The link is copied." : "The link is selected.");
      });
    }, "primary");
    const at = document.createElement("div");
    at.className = "share-row";
    at.append(address, copy);
    body.replaceChildren(about, at, makeText(`It works until ${new Date(link.expires_at).toLocaleString()}, or until you revoke it.`), end);
    says("");
    address.select();
  };
  const revoke = async () => {
    const text = await service.unshare(run).then(
      () => "The link does not work any more.",
      (error: unknown) => {
        if (error instanceof Problem && error.status === 404) return "There is no link to this run.";
        throw error;
      },
    );
    noteShared(run, undefined);
    body.replaceChildren();
    close.focus(); // the button that had the focus is gone
    says(text);
  };
}

/** sharedRun is the address of a shared run that the page is to open; undefined: none. What chats add to a link is left out. */
export function sharedRun(): string | undefined {
  const [, id, query] = /^#r\/(run_[0-9A-Z]{26})\?(.*)$/.exec(location.hash) ?? [];
  return id && `r/${id}?${ownQuery(query ?? "")}`;
}

/** readShared returns the code of a shared run. */
export async function readShared(service: Service, address: string): Promise<{ cells: CellText[]; language: string }> {
  const run = await service.shared(address);
  return { language: run.language, cells: run.cells.map(({ kind, text }) => ({ kind, text })) };
}
