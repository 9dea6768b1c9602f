import { writeFileSync } from "node:fs";
import { currentDocument, SECTIONS } from "./sections.ts";

/** `npm run docs` writes the generated tables into the documents. */
for (const { path } of SECTIONS) writeFileSync(path, currentDocument(path));
