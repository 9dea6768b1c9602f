import { errorOf, VodboxError } from "../error.ts";
import { type ClientOptions, credentialsOf } from "../options.ts";
import { baseUrlOf, type PlainResponse, send } from "../request.ts";
import type { Target } from "./send-all.ts";
import { sendBytes } from "./send-bytes.ts";

const PATH = "/api/v1/uploads/tus";
const VERSION = { "Tus-Resumable": "1.0.0" };

/** An upload at the server: its ids, and how many bytes it has. */
export type TusUpload = { uploadId: number; assetId: number; offset: number; length: number };

/** Creates an upload of `size` bytes (tus 1.0.0, creation). */
export async function createUpload(
  client: ClientOptions,
  size: number,
  metadata: Record<string, string>,
  signal?: AbortSignal,
): Promise<TusUpload> {
  const headers = { ...VERSION, "Upload-Length": String(size), "Upload-Metadata": encoded(metadata) };
  // A creation whose response is lost leaves an upload without bytes, which expires.
  const request = { method: "POST", path: PATH, headers, isRepeatable: true };
  const response = await send(client, request, { ...(signal && { signal }) });
  const { header, status } = headersOf(response);
  const id = /\/(\d+)$/.exec(header("location") ?? "")?.[1] ?? null;
  const uploadId = numberIn(status, () => id, "location");
  return { uploadId, assetId: numberIn(status, header, ASSET_ID), offset: 0, length: size };
}

/** What the server has of an upload. Throws VodboxError 404 or 410 when it has ended. */
export async function findUpload(client: ClientOptions, uploadId: number, signal?: AbortSignal): Promise<TusUpload> {
  const request = { method: "HEAD", path: `${PATH}/${uploadId}`, headers: VERSION, isRepeatable: true };
  const response = await send(client, request, { ...(signal && { signal }) });
  const { header, status } = headersOf(response);
  const number = (name: string) => numberIn(status, header, name);
  return { uploadId, assetId: number(ASSET_ID), offset: number("upload-offset"), length: number("upload-length") };
}

/** Where the bytes of an upload are appended (PATCH of tus). */
export const tusTarget = (client: ClientOptions, uploadId: number): Target => ({
  async append(offset, body, options) {
    const headers = {
      ...(await credentialsOf(client)),
      ...VERSION,
      "Upload-Offset": String(offset),
      "Content-Type": "application/offset+octet-stream",
    };
    const url = `${baseUrlOf(client)}${PATH}/${uploadId}`;
    const request = { method: "PATCH", url, headers, body, fetch: client.fetch, redirect: "error" } as const;
    const { status, header, text } = await sendBytes({ ...request, ...options });
    if (status !== 204) throw errorOf(status, header, text);
    return numberIn(status, header, "upload-offset");
  },
  offset: async (signal) => (await findUpload(client, uploadId, signal)).offset,
});

const ASSET_ID = "x-svc-asset-id";
const headersOf = ({ status, headers }: PlainResponse) => ({ status, header: (name: string) => headers.get(name) });

/** Throws for a header that a proxy has removed. */
function numberIn(status: number, header: (name: string) => string | null, name: string): number {
  const text = header(name);
  if (text !== null && /^\d{1,15}$/.test(text)) return Number(text);
  const message = `The response has no ${name}: is a proxy between that removes it?`;
  throw new VodboxError({ status, code: "response_invalid", message });
}

/** Upload-Metadata: pairs of a name and a value in Base64. */
const encoded = (metadata: Record<string, string>) =>
  Object.entries(metadata)
    .map(([name, value]) => `${name} ${base64(new TextEncoder().encode(value))}`)
    .join(",");

/** Without `btoa(String.fromCharCode(...bytes))`, whose arguments have a limit. */
const base64 = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
