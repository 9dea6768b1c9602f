/** A chunk is not exactly the part of a run over the whole source that it should be: the source is encoded in one run. */
export class Inexact extends Error {
  constructor(reason: string) {
    super(`The source cannot be encoded in parts: ${reason}`);
    this.name = "Inexact";
  }
}
