// Shows a document with Swagger UI, which the page has run before.

const main = document.getElementById("page");

// Calls go to where this page is from, not to the address in the document: a service has
// several, and the page may reach its own origin only.
const here = new URL(".", document.baseURI).href.replace(/\/$/, "");
const callHere = {
  statePlugins: {
    spec: {
      wrapActions: {
        updateSpec: (update) => (text) =>
          update(JSON.stringify({ ...JSON.parse(text), servers: [{ url: here }] })),
      },
    },
  },
};

globalThis.SwaggerUIBundle({
  domNode: main,
  url: new URL(main.dataset.document, document.baseURI).href,
  plugins: [callHere],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  persistAuthorization: false, // an API key is forgotten with the page
  validatorUrl: null, // no service elsewhere is asked about the document
  onComplete: () => { main.dataset.ready = "true"; },
});
