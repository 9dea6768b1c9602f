/** A video, or a part of it, cannot be imported. The message completes the report, and contains no URL. */
export class ItemError extends Error {}
