/** The response to a call: the JSON (or text), and other parts that tests check. */
export type Answer = { status: number; body: any; headers: Headers; text: string };
export type Send = (request: Request) => Promise<Response>;

export type Credentials = { key?: string; admin?: string; worker?: string; lease?: string; bearer?: string };
export type CallOptions = Credentials & {
  body?: unknown;
  raw?: RequestInit["body"];
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

/** An HTTP client for a server at `base`, over a socket or in this process. */
export function client(base: string, send: Send = (request) => fetch(request)) {
  return async (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
    const headers: Record<string, string> = { ...options.headers };
    if (options.key !== undefined) headers["x-api-key"] = options.key;
    if (options.admin !== undefined) headers["x-svc-admin-token"] = options.admin;
    if (options.worker !== undefined) headers["x-svc-worker-token"] = options.worker;
    if (options.lease !== undefined) headers["x-svc-job-lease-token"] = options.lease;
    if (options.bearer !== undefined) headers.authorization = `Bearer ${options.bearer}`;
    if (options.body !== undefined) headers["content-type"] ??= "application/json";
    const body = options.body !== undefined ? JSON.stringify(options.body) : options.raw;
    const address = path.startsWith("http") ? path : `${base}${path}`;
    const response = await send(
      new Request(address, {
        method,
        headers,
        ...(options.signal && { signal: options.signal }),
        ...(body != null && { body, duplex: "half" }),
      } as RequestInit),
    );
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return {
      status: response.status,
      body: isJson && text ? JSON.parse(text) : undefined,
      headers: response.headers,
      text,
    };
  };
}
export type Call = ReturnType<typeof client>;
