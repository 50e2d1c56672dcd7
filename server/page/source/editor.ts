import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap, completionStatus, moveCompletionSelection, selectedCompletionIndex } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, insertTab, indentMore } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, GutterMarker, drawSelection, gutterLineClass, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { RangeSet } from "@codemirror/state";
import { completion } from "./completion";
import { highlighting, indentOf } from "./languages";
import type { Language } from "./reply";

/** What an editor tells its cell. */
export interface EditorListener {
  changed(): void;
  focused(): void;
  left(): void; // Escape: back to the keys of cells
  run(then: "stay" | "next" | "insert"): void;
  beyond(direction: -1 | 1): void; // an arrow key at the first or last line
  program(): string; // the code of all cells, whose imports count
}

/** complete takes the completion that is chosen, or the first: Enter takes none that nobody chose. */
function complete(view: EditorView): boolean {
  if (completionStatus(view.state) !== "active") return false;
  if (selectedCompletionIndex(view.state) === null) moveCompletionSelection(true)(view);
  return acceptCompletion(view);
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.standard(tags.name)], color: "var(--code-function)" },
  { tag: [tags.typeName, tags.className, tags.namespace], color: "var(--code-type)" },
  { tag: [tags.definition(tags.variableName), tags.propertyName], color: "var(--code-name)" },
  { tag: [tags.heading], fontWeight: "600" },
  { tag: [tags.strong], fontWeight: "600" },
  { tag: [tags.emphasis], fontStyle: "italic" },
  { tag: [tags.link, tags.url], color: "var(--code-string)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "transparent", fontSize: "var(--code-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", maxHeight: "70vh" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 12px 0 8px" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--faint)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "34px", padding: "0 6px 0 4px" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "var(--active-line)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection) !important", outline: "none" },
  ".cm-placeholder": { color: "var(--faint)" },
  ".cm-failing": { backgroundColor: "var(--error-line) !important", boxShadow: "inset 3px 0 0 var(--error)" },
  ".cm-failing-number": { color: "var(--error)", fontWeight: "700" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", border: "1px solid var(--line)", borderRadius: "8px", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip-below": { marginTop: "4px" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px !important", color: "var(--text)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent) !important", color: "var(--on-accent) !important" },
  ".cm-completionDetail": { opacity: "0.75", fontStyle: "normal", marginLeft: "1em" },
});

const markLine = StateEffect.define<number>(); // 0: none
const failing = Decoration.line({ class: "cm-failing", attributes: { "aria-label": "The error is on this line" } });

class FailingNumber extends GutterMarker {
  override elementClass = "cm-failing-number";
}
const failingNumber = new FailingNumber();

const failingLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    marks = marks.map(change.changes);
    for (const effect of change.effects) {
      if (!effect.is(markLine)) continue;
      const { doc } = change.state;
      marks = effect.value > 0 && effect.value <= doc.lines ? Decoration.set([failing.range(doc.line(effect.value).from)]) : Decoration.none;
    }
    return marks;
  },
  provide: (field) => [
    EditorView.decorations.from(field),
    gutterLineClass.compute([field], (state) => {
      const at: number[] = [];
      state.field(field).between(0, state.doc.length, (from) => void at.push(from));
      return RangeSet.of(at.map((from) => failingNumber.range(from)));
    }),
  ],
});

/**
 * Editor is where one cell is written. It is in a shadow root, where its styles are adopted
 * sheets, so that the page's policy needs no inline styles.
 */
export class Editor {
  readonly element = document.createElement("div");
  private readonly view: EditorView;
  private readonly language = new Compartment();
  private readonly label = new Compartment();

  constructor(
    text: string,
    private readonly listener: EditorListener,
  ) {
    this.element.className = "editor";
    const root = this.element.attachShadow({ mode: "open" });
    const at = (direction: -1 | 1) => (view: EditorView) => {
      const { main } = view.state.selection;
      const line = view.state.doc.lineAt(main.head).number;
      if (!main.empty || completionStatus(view.state) || line !== (direction < 0 ? 1 : view.state.doc.lines)) return false;
      listener.beyond(direction);
      return true;
    };
    const run = (then: "stay" | "next" | "insert") => () => {
      listener.run(then);
      return true;
    };
    this.view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          Prec.highest(
            keymap.of([
              { key: "Shift-Enter", run: run("next") },
              { key: "Ctrl-Enter", run: run("stay") },
              { key: "Mod-Enter", run: run("stay") },
              { key: "Alt-Enter", run: run("insert") },
              { key: "Escape", run: (view) => (closeCompletion(view), listener.left(), true) },
              { key: "Tab", run: (view) => complete(view) || indentMore(view) || insertTab(view), shift: indentLess },
            ]),
          ),
          keymap.of([
            ...completionKeymap,
            { key: "ArrowUp", run: at(-1) },
            { key: "ArrowDown", run: at(1) },
            ...closeBracketsKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          EditorState.allowMultipleSelections.of(true),
          syntaxHighlighting(colours),
          look,
          failingLine,
          this.language.of([]),
          this.label.of([]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) listener.changed();
            if (update.focusChanged && update.view.hasFocus) listener.focused();
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  setLanguage(language: Language | undefined, kind: "code" | "markdown"): void {
    const name = kind === "markdown" ? "markdown" : (language?.language ?? "");
    const sources = kind === "code" && language ? [autocompletion({ override: [completion(language, () => this.listener.program())], icons: false, selectOnOpen: false })] : [];
    this.view.dispatch({ effects: this.language.reconfigure([highlighting(name), indentUnit.of(indentOf(name)), ...sources]) });
  }

  /** The editor is no stop of Tab, which indents in it: Enter goes in, Escape out. */
  setLabel(label: string, hint: string): void {
    this.view.dispatch({ effects: this.label.reconfigure([EditorView.contentAttributes.of({ "aria-label": `${label}. Escape leaves the editor.`, tabindex: "-1" }), placeholder(hint)]) });
  }

  focus(): void {
    this.view.focus();
  }

  /** focusAt puts the cursor at the first or last line. */
  focusAt(where: "start" | "end"): void {
    this.view.dispatch({ selection: { anchor: where === "start" ? 0 : this.view.state.doc.length } });
    this.focus();
  }

  /** markError marks a line, from 1; 0: none. */
  markError(line: number): void {
    this.view.dispatch({ effects: markLine.of(line) });
  }

  /** goTo puts the cursor on a line and shows it. */
  goTo(line: number): void {
    const { doc } = this.view.state;
    const { from } = doc.line(Math.max(1, Math.min(line, doc.lines)));
    this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.focus();
    this.element.scrollIntoView({ block: "nearest" });
  }

  close(): void {
    this.view.destroy();
  }
}
