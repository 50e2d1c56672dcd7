// Shows a document with Redoc.
import { init } from "./redoc.standalone.js";

const main = document.getElementById("page");
init(new URL(main.dataset.document, document.baseURI).href, {
  disableTelemetry: true,
  sanitize: true,
}, main);
