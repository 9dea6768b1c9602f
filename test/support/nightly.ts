import { test } from "vitest";
import { isNightly } from "./amount.ts";

/**
 * A test that only the nightly tier runs; the full one reports it as skipped. It is one more case of what the tests next to
 * it prove, and takes long: the full tier must fit into what a developer waits for.
 */
export const nightly = test.runIf(isNightly);
