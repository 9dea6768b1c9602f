/** What the server passes on of HTTP requests of WHIP (RFC 9725), and the responses. They pass the IPC channel as JSON. */
export type WhipRequest =
  | { action: "publish"; channel: string; key: string; address: string; encoder: string; offer: string }
  | { action: "end"; channel: string; session: string }
  | { action: "trickle"; channel: string; session: string; fragment: string };

export type WhipAnswer =
  | { status: 201; session: string; answer: string }
  | { status: 200 | 204 }
  | { status: WhipErrorStatus; message: string };

export type WhipErrorStatus = 400 | 401 | 403 | 404 | 406 | 409 | 422 | 429 | 503;
