import type { Host } from "./outputs/host";
import type { Runs } from "./runs";
import type { Service } from "./service";

/** pageHost has outputs shown in the page. runs is asked for when an output needs it. */
export function pageHost(service: Service, runs: () => Runs): Host {
  return {
    picture: (link) => service.local(link.url),
    download: (link) => service.local(link.url) ?? (/^https?:/.test(link.url) ? link.url : undefined),
    startFrame: (frame) => {
      frame.loading = "lazy"; // what nobody scrolls to takes no memory
      frame.src = "page/frame";
    },
    script: asset,
    widgets: () => runs().widgets(),
    mathml: false,
  };
}

const texts = new Map<string, Promise<string>>();

/** asset returns the text of a part of the page, which is loaded once. */
export function asset(name: string): Promise<string> {
  let text = texts.get(name);
  if (!text) {
    text = fetch(`page/${name}`).then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(`${name} is not there`))));
    texts.set(name, text);
    text.catch(() => texts.delete(name));
  }
  return text;
}
