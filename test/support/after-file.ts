/** Called after each test file by each-file.ts, in the processes that loaded the module which added it. */
export const afterEachFile = new Set<() => Promise<unknown>>();
