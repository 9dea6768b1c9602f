import { HttpError } from "../lib/errors.ts";

/** 422 `document_too_complex`; `limit` is a sentence that names the limit. */
export const tooComplex = (limit: string): HttpError =>
  new HttpError(422, "document_too_complex", `The document is too complex: ${limit} Send a smaller or simpler one.`);
