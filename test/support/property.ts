import fc from "fast-check";
import { testSeed } from "./seed.ts";

/** Properties over generated values, from the seed of all tests. A failure prints it. */
fc.configureGlobal({ seed: testSeed() });

export { fc };
