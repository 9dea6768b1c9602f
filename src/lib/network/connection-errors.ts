/** OpenSSL errors by Node's names: no trusted authority has signed the certificate. */
const UNTRUSTED = new Set([
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

const ADVICE: Record<string, string> = {
  CERT_HAS_EXPIRED: "Its certificate has expired: renew it, and check the clock of this machine.",
  CERT_NOT_YET_VALID: "Its certificate is not valid yet: check the clocks of both machines.",
  ERR_TLS_CERT_ALTNAME_INVALID: "Its certificate is for another host name: use a name that the certificate covers.",
  ERR_SSL_WRONG_VERSION_NUMBER: "It does not use TLS: use http:// instead of https://.",
  ENOTFOUND: "The host name does not resolve: check the URL.",
};

/**
 * Explains why the server at `address` did not answer, and what to do; `error` is what `fetch` or a socket threw.
 * Node's own messages are not used where they recommend flags, which an executable does not accept.
 */
export function describeConnectionError(address: string, error: unknown): string {
  const { code, message } = innermost(error);
  if (UNTRUSTED.has(code))
    return `The certificate of ${address} is not trusted (${code}); set NODE_EXTRA_CA_CERTS to the PEM file of its issuer or of the certificate itself.`;
  const summary = `The server at ${address} is not responding (${code || message})`;
  return `${summary}. ${ADVICE[code] ?? "Check that it is running and that the URL is correct."}`;
}

/** Whether a retry cannot succeed until a person has corrected something on either side. */
export const isCertificateError = (error: unknown): boolean => UNTRUSTED.has(innermost(error).code);

/** `fetch` reports only that it failed; the cause is nested. */
function innermost(error: unknown): { code: string; message: string } {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  if (!(cause instanceof Error)) return { code: "", message: String(cause) };
  if (cause.name === "TimeoutError") return { code: "", message: "not in time" };
  const { code } = cause as NodeJS.ErrnoException;
  return { code: typeof code === "string" ? code : "", message: cause.message };
}
