/** Of OpenSSL, as Node.js names them: nobody whom we trust has signed the certificate. */
const UNTRUSTED = new Set([
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

const ADVICE: Record<string, string> = {
  CERT_HAS_EXPIRED: "Its certificate has expired: renew it there, and look at the clock here.",
  CERT_NOT_YET_VALID: "Its certificate is not valid yet: look at the clocks there and here.",
  ERR_TLS_CERT_ALTNAME_INVALID: "Its certificate is for another name: use an address that stands in it.",
  ERR_SSL_WRONG_VERSION_NUMBER: "It speaks no TLS there: say http:// instead of https://.",
  ENOTFOUND: "Nobody knows that name: look at the address.",
};

/**
 * Why nothing came back from the server at `address`, and what to do: `error` is what `fetch` or a socket threw. Node's own
 * words are not passed on where they advise flags, which an executable does not take.
 */
export function describeConnectionError(address: string, error: unknown): string {
  const { code, message } = innermost(error);
  if (UNTRUSTED.has(code))
    return `The certificate of ${address} is not trusted (${code}); name the PEM file of who signed it, or of itself, in NODE_EXTRA_CA_CERTS.`;
  const told = `The server at ${address} does not answer (${code || message})`;
  return `${told}. ${ADVICE[code] ?? "Is it running, and is the address right?"}`;
}

/** Whether trying again is of no use until somebody has mended it here or there. */
export const isCertificateError = (error: unknown): boolean => UNTRUSTED.has(innermost(error).code);

/** `fetch` says nothing but that it failed; what did stands behind it. */
function innermost(error: unknown): { code: string; message: string } {
  let found = error;
  while (found instanceof Error && found.cause instanceof Error) found = found.cause;
  if (!(found instanceof Error)) return { code: "", message: String(found) };
  if (found.name === "TimeoutError") return { code: "", message: "not in time" };
  const { code } = found as NodeJS.ErrnoException;
  return { code: typeof code === "string" ? code : "", message: found.message };
}
