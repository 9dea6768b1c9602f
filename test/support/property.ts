import fc from "fast-check";

/**
 * Properties over generated values. The seed is fixed: a run fails by what was changed, never by chance, and a failure
 * is found again. `VODBOX_TEST_SEED=$RANDOM` searches further.
 */
fc.configureGlobal({ seed: Number(process.env.VODBOX_TEST_SEED ?? 2026) });

export { fc };
