import { type Completion, type CompletionContext, type CompletionResult, completeAnyWord } from "@codemirror/autocomplete";
import { membersOf } from "./members";
import type { Language } from "./reply";

// Completion knows the names of installed packages, what they have, the keywords of a language,
// and the words of the cell.

/** Names by which packages are imported, where these are others than their own. */
const importNames: Record<string, string> = {
  "beautifulsoup4": "bs4",
  "opencv-python-headless": "cv2",
  "pillow": "PIL",
  "python-docx": "docx",
  "python-pptx": "pptx",
  "pyyaml": "yaml",
  "scikit-image": "skimage",
  "scikit-learn": "sklearn",
};

const keywords: Record<string, string> = {
  python:
    "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield " +
    "abs all any bool dict enumerate filter float format input int isinstance len list map max min open print range repr reversed round set sorted str sum tuple type zip",
  javascript: "async await break case catch class const continue default delete do else export extends finally for function if import in instanceof let new of return static super switch this throw try typeof var void while yield console",
  go: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var append cap close copy delete len make new panic print println recover",
  r: "break else FALSE for function if in library NA next NULL repeat require return TRUE while c data.frame head length list mean names paste plot print sapply seq str sum summary",
  bash: "case do done elif else esac export fi for function if in local read return select set shift then trap until while echo printf cat cd cp cut find grep head ls mkdir mv rm sed sort tail tr uniq wc xargs",
};
keywords["typescript"] = keywords["javascript"] + " abstract any as boolean declare enum implements interface keyof namespace never number private protected public readonly string type unknown";

const importing: Record<string, RegExp> = {
  python: /^\s*(import|from)\s+[\w.,\s]*$/,
  r: /\b(library|require|requireNamespace)\(["']?\w*$/,
  javascript: /\b(from|import|require\()\s*["'][^"']*$/,
  typescript: /\b(from|import|require\()\s*["'][^"']*$/,
};

/** ownName is the name by which a package is imported. */
const ownName = (name: string) => importNames[name] ?? name.replaceAll("-", "_");

/** completion returns a source for cells of a language; program is the code of all of them. */
export function completion(language: Language, program: () => string): (context: CompletionContext) => Promise<CompletionResult | null> {
  const modules: Completion[] = language.packages.map(({ name, version }) => ({
    label: language.language === "python" ? ownName(name) : name,
    detail: `${name} ${version}`,
    type: "namespace",
  }));
  const words: Completion[] = (keywords[language.language] ?? "").split(" ").filter(Boolean).map((label) => ({ label, type: "keyword" }));
  return async (context) => {
    const word = context.matchBefore(/[\w.]+/);
    const members = await memberSource(context, language, program);
    if (members !== undefined) return members;
    const line = context.state.doc.lineAt(context.pos).text.slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
    if (importing[language.language]?.test(line)) {
      return { from: context.matchBefore(/[\w@/-]+/)?.from ?? context.pos, options: modules, validFor: /^[\w@/-]*$/ };
    }
    if (!context.explicit && (!word || word.to - word.from < 2)) return null;
    if (word?.text.includes(".")) return null;
    const others = await completeAnyWord(context);
    const from = word?.from ?? context.pos;
    const known = new Set([...words, ...modules].map((c) => c.label));
    const near = (others?.options ?? []).filter((o) => !known.has(o.label) && o.label !== word?.text);
    return { from, options: [...words, ...modules, ...near], validFor: /^\w*$/ };
  };
}

/** memberSource completes what follows a "." or "from … import"; undefined: the place is another. */
async function memberSource(context: CompletionContext, language: Language, program: () => string): Promise<CompletionResult | null | undefined> {
  if (language.language !== "python") return undefined;
  const before = context.matchBefore(/(?:from\s+[\w.]+\s+import\s+(?:[\w\s,]*,\s*)?|[A-Za-z_][\w.]*\.)\w*/);
  if (!before) return undefined;
  const word = /\w*$/.exec(before.text)?.[0] ?? "";
  const from = /^from\s+([\w.]+)/.exec(before.text)?.[1];
  const path = from ?? before.text.slice(0, -word.length - 1);
  const options = await membersOf(path, from ? "" : program(), language.packages, ownName);
  return options.length > 0 ? { from: context.pos - word.length, options, validFor: /^\w*$/ } : null;
}
