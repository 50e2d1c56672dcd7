import type { BlobLink } from "../reply";

/** Host is what outputs are shown in: the page, or a record of one run. */
export interface Host {
  /** The address of a picture that may be shown here, or nothing if it is not here (yet). */
  picture(link: BlobLink, mediaType: string): string | undefined;
  /** The address of a file to download, or nothing. */
  download(link: BlobLink): string | undefined;
  /** Starts a frame for what may hold scripts: its document is html/frame.html. */
  startFrame(frame: HTMLIFrameElement): void;
  /** The text of a script that runs in frames: "plotly.js". */
  script(name: string): Promise<string>;
  /** The state of widgets of the run, once it has ended; nothing if there is none. */
  widgets(): Promise<unknown>;
  /** Whether formulas are MathML alone, which needs no fonts. */
  mathml: boolean;
}
