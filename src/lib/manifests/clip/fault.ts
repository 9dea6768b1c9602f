/** Media that cannot be clipped. The message is a clause: "a playlist has byte ranges". */
export class ClipFault extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "ClipFault";
  }
}

/** The result of a parser, which runs on another thread: a value instead of an error of this kind. */
export type Clipped<T> = T | { impossible: string };

export function clipped<T>(work: () => T): Clipped<T> {
  try {
    return work();
  } catch (error) {
    if (error instanceof ClipFault) return { impossible: error.message };
    throw error;
  }
}
