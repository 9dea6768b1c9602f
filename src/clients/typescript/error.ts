export type ErrorFields = {
  /** HTTP status; 0 when there was no response. */
  status: number;
  /** Such as `validation_failed`; `connection_failed` and `timeout` when there was no response. */
  code: string;
  message: string;
  /** For the operator's log. */
  requestId?: string | undefined;
  /** What is wrong with each field or parameter. */
  details?: Record<string, string[]> | undefined;
  /** The scopes that the API key lacks; any one of them suffices. */
  requiredScopes?: string[] | undefined;
  /** The server's `Retry-After`. */
  retryAfterSeconds?: number | undefined;
  cause?: unknown;
};

/** A request that was refused, or that got no response. */
export class VodboxError extends Error {
  override readonly name = "VodboxError";
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly details: Record<string, string[]> | undefined;
  readonly requiredScopes: string[] | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor({ message, cause, ...fields }: ErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = fields.status;
    this.code = fields.code;
    this.requestId = fields.requestId;
    this.details = fields.details;
    this.requiredScopes = fields.requiredScopes;
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }
}

/** The error of a response: of the API, or of a proxy, whose body is not ours. */
export function errorOf(status: number, header: (name: string) => string | null, text: string): VodboxError {
  const body = parsed(text);
  const after = Number(header("retry-after") ?? Number.NaN);
  return new VodboxError({
    status,
    code: typeof body.code === "string" ? body.code : `http_${status}`,
    message: typeof body.error === "string" ? body.error : `The server responded with status ${status}.`,
    requestId: header("x-request-id") ?? (body.request_id as string | undefined),
    details: body.details as Record<string, string[]> | undefined,
    requiredScopes: body.required_scopes as string[] | undefined,
    retryAfterSeconds: Number.isFinite(after) ? after : undefined,
  });
}

function parsed(text: string): Record<string, unknown> {
  try {
    const body = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}
