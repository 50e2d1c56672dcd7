import { makeButton, openDialog } from "./dialog";
import { copyText } from "./panels";
import type { CellText } from "./notebook";
import type { Recorded } from "./outputs/recorded";
import { Problem, type Service } from "./service";

// Sharing makes a page of one run, as the service has stored it. Nothing that was only typed
// is sent anywhere.

/** showShare asks, makes the link, and offers to end it. */
export function showShare(service: Service, run: string, says: (text: string) => void): void {
  const { body } = openDialog("Share this run", true);
  const about = text("Whoever has the link sees the code of this run and all that came out of it: text, pictures and files. Variables, files that you gave it and keys are not in it. It can only be looked at.");
  const make = makeButton("Make a link", () => void made(), "primary");
  body.append(about, make);

  const failed = (error: unknown) => {
    about.textContent = error instanceof Problem ? error.message : String(error);
    says(about.textContent);
  };
  const made = async () => {
    make.disabled = true;
    try {
      const link = await service.share(run);
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
      const end = makeButton("Revoke", () => void revoke());
      end.id = "share-revoke";
      const row = document.createElement("div");
      row.className = "share-row";
      row.append(address, copy);
      const until = text(`It works until ${new Date(link.expires_at).toLocaleString()}, or until you revoke it.`);
      body.replaceChildren(about, row, until, end);
      address.select();
      const revoke = async () => {
        end.disabled = true;
        try {
          await service.unshare(run);
          body.replaceChildren(text("The link does not work any more."));
          says("The link is revoked.");
        } catch (error) {
          failed(error);
        }
      };
    } catch (error) {
      make.disabled = false;
      failed(error);
    }
  };
}

function text(content: string): HTMLElement {
  const element = document.createElement("p");
  element.className = "about";
  element.textContent = content;
  return element;
}

/** sharedRun is the address of a shared run that the page is to run again; undefined: none. */
export function sharedRun(): string | undefined {
  return /^#(r\/run_[0-9A-Z]{26}\?[\w=&.~%+-]*)$/.exec(location.hash)?.[1];
}

/** readShared returns the code of a shared run. */
export async function readShared(service: Service, address: string): Promise<{ cells: CellText[]; language: string }> {
  const run = await service.shared(address);
  return { language: run.language, cells: run.cells.map(({ kind, text }: Recorded["cells"][number]) => ({ kind, text })) };
}
