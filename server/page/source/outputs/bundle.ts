import type { BlobLink, Bundle, Image, Json } from "../reply";
import type { FrameContent } from "./frame";
import { newFrame } from "./frame";
import type { Host } from "./host";
import { showHTML } from "./html";
import { showMarkdown } from "./markdown";
import { showFormula, strip } from "./math";
import { StreamView } from "./text";

// One thing that was displayed has several representations. The first of these that there is
// is shown.

type Show = (value: Json | BlobLink, data: Bundle, host: Host, mediaType: string) => HTMLElement;

const representations: [string, Show][] = [
  ["application/vnd.plotly.v1+json", showPlot],
  ["application/vnd.jupyter.widget-view+json", showWidget],
  ["text/html", (value, _data, host) => showHTML(textOf(value), host)],
  ["image/svg+xml", showPicture],
  ["text/latex", showLatex],
  ["text/markdown", (value, _data, host) => showMarkdown(textOf(value), host)],
  ["image/png", showPicture],
  ["image/jpeg", showPicture],
  ["image/webp", showPicture],
  ["image/gif", showPicture],
  ["application/json", showJSON],
  ["application/geo+json", showJSON],
  ["text/plain", (value) => showText(textOf(value))],
];

export function showBundle(data: Bundle, host: Host): HTMLElement {
  for (const [mediaType, show] of representations) {
    const value = data[mediaType];
    if (value !== undefined) return show(value, data, host, mediaType);
  }
  for (const [mediaType, value] of Object.entries(data)) {
    if (isJSON(mediaType)) continue; // what looks like a link there is the code's own
    if (isLink(value)) return mediaType.startsWith("image/") ? showPicture(value, data, host, mediaType) : showLink(value, host);
  }
  return showText(`[${Object.keys(data).join(", ")}]`);
}

export function isLink(value: Json | BlobLink | undefined): value is BlobLink {
  return typeof value === "object" && value !== null && "url" in value && "name" in value;
}

/** dataOf is an image by its bytes, if they are there. */
export function dataOf(link: BlobLink, mediaType: string, images: Image[]): string | undefined {
  const data = images.find((image) => image.name === link.name)?.data;
  return data && `data:${mediaType};base64,${data}`;
}

function isJSON(mediaType: string): boolean {
  return mediaType === "application/json" || mediaType.endsWith("+json");
}

function textOf(value: Json | BlobLink): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function showText(text: string): HTMLElement {
  const view = new StreamView("stdout");
  view.set(text);
  return view.element;
}

function showJSON(value: Json | BlobLink): HTMLElement {
  return showText(textOf(value));
}

function showPicture(value: Json | BlobLink, data: Bundle, host: Host, mediaType: string): HTMLElement {
  if (!isLink(value)) return showText(textOf(value));
  const address = host.picture(value, mediaType);
  if (!address) {
    const place = showText(`[picture ${value.name}]`);
    place.dataset["waits"] = value.name; // it may come with the reply
    return place;
  }
  const picture = document.createElement("img");
  const about = data["text/plain"];
  picture.alt = typeof about === "string" && !about.startsWith("<") ? about.slice(0, 200) : `Picture ${value.name}`;
  picture.src = address;
  return picture;
}

function showLink(value: BlobLink, host: Host): HTMLElement {
  const address = host.download(value);
  if (!address) return showText(`[${value.name}]`);
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  link.textContent = value.name;
  return link;
}

function showLatex(value: Json | BlobLink, _data: Bundle, host: Host): HTMLElement {
  const element = document.createElement("div");
  element.className = "latex scroll";
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", "Formula");
  const { tex, display } = strip(textOf(value));
  void showFormula(element, tex, display, host);
  return element;
}

/** A figure of Plotly is drawn in a frame, where nothing that it holds can do harm. */
function showPlot(value: Json | BlobLink, _data: Bundle, host: Host): HTMLElement {
  return newFrame(host, "Interactive plot", async (): Promise<FrameContent> => ({ plot: value, scripts: [await host.script("plotly.js")] }));
}

function showWidget(value: Json | BlobLink, data: Bundle, host: Host): HTMLElement {
  const holder = document.createElement("div");
  const plain = data["text/plain"];
  holder.append(showText(typeof plain === "string" ? plain : "[widget]"));
  void host.widgets().then((state) => {
    if (!state) return;
    holder.replaceChildren(
      newFrame(host, "Widget, as the run left it", async (): Promise<FrameContent> => ({ widget: { state, view: value }, scripts: [await host.script("widgets.js")] })),
    );
  });
  return holder;
}
