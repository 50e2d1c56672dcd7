import { makeButton } from "./dialog";
import { bytes, printable } from "./figures";

/** Inputs are the files that go with each run. */
export class Inputs {
  files: File[] = [];
  constructor(
    private readonly element: HTMLElement,
    private readonly changed: () => void,
  ) {}

  /** add puts files in, of which each replaces one of its name. */
  add(files: Iterable<File>): void {
    for (const file of files) this.files = [...this.files.filter((f) => f.name !== file.name), file];
    this.show();
  }

  clear(): void {
    this.files = [];
    this.show();
  }

  private show(): void {
    this.element.hidden = this.files.length === 0;
    const label = document.createElement("span");
    label.textContent = "Files in /mnt/data:";
    this.element.replaceChildren(
      label,
      ...this.files.map((file) => {
        const chip = document.createElement("span");
        chip.className = "chip";
        const remove = makeButton("×", () => {
          this.files = this.files.filter((f) => f !== file);
          this.show();
        });
        remove.setAttribute("aria-label", `Leave out ${printable(file.name)}`);
        chip.append(`${printable(file.name)} · ${bytes(file.size)}`, remove);
        return chip;
      }),
    );
    this.changed();
  }
}

/** onDrop calls add with what is dropped anywhere on the page. */
export function onDrop(sign: HTMLElement, add: (files: File[]) => void): void {
  let depth = 0;
  const show = (by: number) => {
    depth = Math.max(0, depth + by);
    sign.hidden = depth === 0;
  };
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragenter", (event) => hasFiles(event) && show(1));
  addEventListener("dragleave", (event) => hasFiles(event) && show(-1));
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  // Before an editor sees it, which would put a file's text where it is dropped.
  const drop = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.stopPropagation();
    show(-depth);
    add([...(event.dataTransfer?.files ?? [])]);
  };
  addEventListener("drop", drop, { capture: true });
}
