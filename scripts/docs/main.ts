import { writeFileSync } from "node:fs";
import { currentDocument, IMAGES, SECTIONS } from "./sections.ts";

/** `npm run docs` writes the generated tables into the documents, and the images. */
for (const { path } of SECTIONS) writeFileSync(path, currentDocument(path));
for (const { path, content } of IMAGES) writeFileSync(path, content());
