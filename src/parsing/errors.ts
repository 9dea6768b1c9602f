import { HttpError } from "../lib/errors.ts";

/** 422 `document_too_complex`; `limit` is a sentence that names the limit. */
export const tooComplex = (limit: string): HttpError =>
  new HttpError(422, "document_too_complex", `The document is too complex: ${limit} Send a smaller or simpler one.`);

/** For a request whose client left; it reads no answer. nginx logs such a request with the same status. */
export const clientClosed = (): HttpError =>
  new HttpError(499, "client_closed_request", "The client closed the connection.");
