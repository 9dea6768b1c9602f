import { generateClient } from "./clients/generate.ts";

/** `npm run client`: what typechecking and bundling the TypeScript client need. */
await generateClient();
