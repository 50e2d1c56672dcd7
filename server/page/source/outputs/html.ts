import DOMPurify from "dompurify";
import { type Host } from "./host";
import { newFrame } from "./frame";

// HTML of an output is shown in the page itself if it is plain, such as a table of pandas:
// what has a style, a script or a form of its own is shown in a frame.

const plainTags = new Set(
  ("a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i ins kbd li ol p pre q s samp " +
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var").split(" "),
);

/** Attributes that are kept, and such as may be dropped without a loss. */
const keptAttributes = ["colspan", "rowspan", "href", "scope", "start", "open", "title", "data-math", "data-display"];
const droppable = new Set(["class", "id", "border", "align", "valign", "halign", "dtype", "cellspacing", "cellpadding"]);

/** The looks of tables of pandas and others, for which the page has its own. */
const droppableLooks = /<style scoped>[^<]*<\/style>|(?<=<[a-z]+(?:\s[^<>]*)?)\sstyle="(?:\s*(?:text-align|vertical-align|(?:min-|max-)?width|white-space|padding[a-z-]*|margin[a-z-]*)\s*:[^;:()"]*;?)*\s*"/gi;

/** What has looks or scripts of its own. It is seen in the text: the browser complains where the page parses it. */
const ownLooks = /<(?:style|script)|<[^<>]*\s(?:style|on[a-z]+)\s*=/i;

/** Characters of HTML that go into the page itself at most. */
const plainChars = 1 << 20;

function isPlain(html: string): boolean {
  if (ownLooks.test(html)) return false;
  // Inert: nothing in that document is loaded or run.
  const { head, body } = new DOMParser().parseFromString(html, "text/html");
  if (head.childElementCount > 0) return false;
  for (const element of body.querySelectorAll("*")) {
    if (!plainTags.has(element.localName)) return false;
    for (const { name } of element.attributes) {
      if (!keptAttributes.includes(name) && !droppable.has(name)) return false;
    }
  }
  return true;
}

/** sanitize returns what may be in the page of HTML that nobody trusts. */
export function sanitize(html: string, extraTags: string[] = []): DocumentFragment {
  const out = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: [...plainTags, ...extraTags],
    ALLOWED_ATTR: [...keptAttributes, ...(extraTags.includes("img") ? ["src", "alt"] : [])],
    ADD_URI_SAFE_ATTR: keptAttributes.filter((name) => name !== "href"), // the others hold no address
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(https?:|mailto:|#|data:image\/(png|jpeg|gif|webp);)/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of out.querySelectorAll("a")) {
    if (!/^(https?|mailto):/i.test(link.getAttribute("href") ?? "")) {
      link.removeAttribute("href");
      continue;
    }
    link.rel = "noopener noreferrer nofollow";
    link.target = "_blank";
  }
  for (const picture of out.querySelectorAll("img")) {
    // A picture of elsewhere would tell who looks at the page, if its policy did not forbid it.
    if (!picture.getAttribute("src")?.startsWith("data:")) picture.replaceWith(picture.alt || "[picture]");
  }
  for (const head of out.querySelectorAll("th")) {
    if (head.textContent.trim() === "") head.replaceWith(document.createElement("td")); // a corner is no heading
  }
  for (const table of out.querySelectorAll("table")) {
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", "Table");
    table.replaceWith(scroll);
    scroll.append(table);
  }
  return out;
}

export function showHTML(html: string, host: Host): HTMLElement {
  if (html.length <= plainChars) {
    const plain = html.replace(droppableLooks, "");
    if (isPlain(plain)) {
      const element = document.createElement("div");
      element.className = "html";
      element.append(sanitize(plain));
      return element;
    }
  }
  return newFrame(host, "HTML output", async () => ({ html }));
}
