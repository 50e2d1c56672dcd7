import type { Cell } from "./cell";
import { isLink } from "./outputs/bundle";
import type { CellText } from "./notebook";
import type { BlobLink, Image, Json, Language, Output } from "./reply";

// Notebooks, nbformat 4: https://nbformat.readthedocs.io/en/latest/format_description.html

/** readNotebook returns the cells of an .ipynb and its language. */
export function readNotebook(text: string): { cells: CellText[]; language: string } {
  const book = JSON.parse(text) as {
    nbformat?: number;
    cells?: { cell_type?: string; source?: string | string[]; input?: string | string[] }[];
    worksheets?: { cells?: { cell_type?: string; source?: string | string[]; input?: string | string[] }[] }[];
    metadata?: { kernelspec?: { language?: string; name?: string }; language_info?: { name?: string } };
  };
  const cells = book.cells ?? book.worksheets?.flatMap((sheet) => sheet.cells ?? []);
  if (!Array.isArray(cells)) throw new Error("it has no cells");
  const { kernelspec, language_info } = book.metadata ?? {};
  return {
    language: language_info?.name ?? kernelspec?.language ?? kernelspec?.name ?? "python",
    cells: cells.map((cell) => {
      const source = cell.source ?? cell.input ?? "";
      return { kind: cell.cell_type === "code" ? "code" : "markdown", text: Array.isArray(source) ? source.join("") : String(source) };
    }),
  };
}

/** writeNotebook returns an .ipynb with what the cells put out. */
export function writeNotebook(cells: Cell[], language: Language): string {
  return JSON.stringify(
    {
      nbformat: 4,
      nbformat_minor: 5,
      metadata: {
        kernelspec: { name: language.kernel, display_name: language.display_name, language: language.language },
        language_info: { name: language.language, file_extension: language.file_extension },
      },
      cells: cells.map((cell, i) => {
        const common = { id: `cell-${i + 1}`, metadata: {}, source: cell.text };
        if (cell.kind === "markdown") return { cell_type: "markdown", ...common };
        return { cell_type: "code", ...common, execution_count: null, outputs: cell.result.map((output) => outputOf(output, cell.images)) };
      }),
    },
    null,
    1,
  );
}

function outputOf(output: Output, images: Image[]): object {
  switch (output.type) {
    case "stream":
      return { output_type: "stream", name: output.name, text: output.text };
    case "error":
      return { output_type: "error", ename: output.name, evalue: output.message, traceback: output.traceback.split("\n") };
    default: {
      const data: Record<string, Json> = {};
      for (const [mediaType, value] of Object.entries(output.data)) {
        if (!isLink(value)) data[mediaType] = value;
        else {
          const content = contentOf(value, images);
          if (content) data[mediaType] = mediaType === "image/svg+xml" ? decode(content) : content;
        }
      }
      if (output.type === "display") return { output_type: "display_data", metadata: {}, data };
      return { output_type: "execute_result", metadata: {}, data, execution_count: null };
    }
  }
}

function contentOf(link: BlobLink, images: Image[]): string | undefined {
  return images.find((image) => image.name === link.name)?.data;
}

function decode(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
}
