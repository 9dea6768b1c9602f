export { DOCUMENT_LIMITS, requireAtMost } from "./document-limits.ts";
export { runToEnd, type Sliced } from "./sliced.ts";
