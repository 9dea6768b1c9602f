/** A chunk was to be completed early, but has no complete segment yet. */
export class Yielded extends Error {
  constructor() {
    super("The chunk was left for the segment that a viewer waits for.");
    this.name = "Yielded";
  }
}
