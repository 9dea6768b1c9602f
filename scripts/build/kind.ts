/**
 * `release`: files are compressed as densely as possible, and the executable has code that V8 compiled in a warm run.
 * `development`: compressed in a tenth of the time and a fifth larger, without that code, so a start takes longer. `tests`:
 * a development build with that code, because tests start hundreds of processes.
 */
export type BuildKind = "release" | "development" | "tests";

/** How dense packages are: a release is as small as possible, all others are written in a third of the time. */
export const gzipLevel = (kind: BuildKind): number => (kind === "release" ? 9 : 1);
