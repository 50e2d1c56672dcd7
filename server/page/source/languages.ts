import { StreamLanguage } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { go } from "@codemirror/lang-go";
import { javascript } from "@codemirror/lang-javascript";
import { markdown } from "@codemirror/lang-markdown";
import { pythonLanguage } from "@codemirror/lang-python";
import { LanguageSupport } from "@codemirror/language";
import { r } from "@codemirror/legacy-modes/mode/r";
import { shell } from "@codemirror/legacy-modes/mode/shell";

/** highlighting is how the code of a language is read; a language that nobody knows is text. */
export function highlighting(language: string): Extension {
  switch (language) {
    case "python":
      return new LanguageSupport(pythonLanguage); // without its completion: ours knows what is installed
    case "javascript":
      return javascript();
    case "typescript":
      return javascript({ typescript: true });
    case "go":
      return go();
    case "r":
      return StreamLanguage.define(r);
    case "bash":
      return StreamLanguage.define(shell);
    case "markdown":
      return markdown();
    default:
      return [];
  }
}

/** indentOf is what one step of indentation is. */
export function indentOf(language: string): string {
  switch (language) {
    case "python":
      return "    ";
    case "go":
      return "\t";
    default:
      return "  ";
  }
}
