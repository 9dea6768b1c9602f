/**
 * V8 13.6 replaces the generic wrapper of a WebAssembly import by a compiled one, and seldom aborts the process as it frees
 * the old code (`Check failed: jit_page.has_value()`, below Runtime_TierUpWasmToJSWrapper). `fetch` parses HTTP in
 * WebAssembly, so every process that fetches takes that path. With this the wrappers are compiled at once.
 */
const NO_WRAPPER_TIER_UP = "--no-wasm-generic-wrapper";

/**
 * V8 13.6 unrolls a loop and with that removes the check of the loop around it, which then cannot be ended: neither by
 * `terminate()` of its thread nor by the limit of its heap. A document that makes a parser use too much memory then ends the
 * process when V8 refuses to raise the limit any further.
 */
const NO_LOOP_UNROLLING = "--no-turboshaft-loop-unrolling";

/** Around faults of V8: of the executable, and of the processes of tests. */
export const V8_SAFETY = [NO_WRAPPER_TIER_UP, NO_LOOP_UNROLLING] as const;
