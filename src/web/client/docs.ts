/**
 * Starts Scalar on the page /docs, which loads this script first and Scalar second, both deferred.
 */
type Scalar = { createApiReference(selector: string, configuration: object): unknown };

// Scalar remembers the color scheme in localStorage. On a shared computer nothing of a visit may remain.
Object.defineProperty(window, "localStorage", { value: window.sessionStorage });

// Scalar creates style elements while it runs. The page's policy allows only those with its nonce.
const nonce = document.currentScript?.nonce ?? "";
const create = document.createElement.bind(document);
document.createElement = (name: string, options?: ElementCreationOptions) => {
  const element = create(name, options);
  if (element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
};

/** The page is `<base URL>/docs`, also behind a proxy with a path. */
const base = new URL(".", window.location.href).href;

/** The colors of Scalar's default theme that have too little contrast (WCAG 2.2, 1.4.3: 4.5 to 1). */
const READABLE = `
.light-mode { --scalar-color-2: #5c5c5c; --scalar-color-3: #656565; --scalar-color-green: #04704b;
  --scalar-color-red: #c8000a; --scalar-color-yellow: #7a5c00; --scalar-color-blue: #005f9e; --scalar-color-orange: #a83c00; }
.dark-mode { --scalar-color-2: #b4b4b4; --scalar-color-3: #a0a0a0; --scalar-color-red: #ff7b7a; }
`;

/** Repairs roles and attributes in Scalar's markup that axe reports, whenever Scalar changes the page. */
function repairRoles(): void {
  const all = (selector: string) => document.querySelectorAll(selector);
  // The search field has no state before the list of results exists.
  for (const box of all("input[role=combobox]:not([aria-expanded])")) box.setAttribute("aria-expanded", "true");
  // Each operation has landmarks of the same names. A group has a name too, and need not be unique.
  for (const card of all(".scalar-card[role=region]")) card.setAttribute("role", "group");
  // The rest is in the request editor. Its fields are comboboxes only while they show a list.
  for (const field of all("[contenteditable][role=combobox]:not([aria-controls])")) {
    field.setAttribute("role", "textbox");
    field.removeAttribute("aria-expanded");
  }
  for (const button of all("button[role=none]")) button.removeAttribute("role");
  for (const editor of all(".cm-content:not([aria-label])")) editor.setAttribute("aria-label", "Body");
  for (const scroller of all(".cm-scroller[tabindex='-1']")) scroller.setAttribute("tabindex", "0");
  for (const messages of all("section[aria-label^=Notifications]:not([role])")) messages.setAttribute("role", "status");
  const isEditing = document.querySelector("[role=dialog] main") !== null;
  document.querySelector("main.references-rendered")?.toggleAttribute("inert", isEditing);
}

document.addEventListener("DOMContentLoaded", () => {
  new MutationObserver(repairRoles).observe(document.body, { childList: true, subtree: true });
  (window as unknown as { Scalar: Scalar }).Scalar.createApiReference("#docs", {
    url: `${base}api/v1/openapi.json`,
    // The address at which the reader has opened the page, which can differ from the configured base URL.
    servers: [{ url: base.replace(/\/$/, "") }],
    customCss: READABLE,
    persistAuth: false,
    // Everything that would send requests to another server.
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: "never",
    documentDownloadType: "json",
  });
});
