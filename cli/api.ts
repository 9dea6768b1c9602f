import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { Asset } from "#features/assets/schema.ts";
import { UserError } from "#lib/base";
import { describeConnectionError } from "#lib/network";
import type { Complete, InitiatedUpload, Upload } from "#protocol/upload.ts";

export type Api = <T>(method: string, path: string, body?: unknown) => Promise<T>;

/** The API for a tenant's client. Throws a UserError with the server's message. */
export function tenantApi(server: string, key: string): Api {
  return async <T>(method: string, path: string, body?: unknown) => {
    const response = await fetch(`${server}${path}`, {
      method,
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch((error: Error) => {
      throw new UserError(describeConnectionError(server, error));
    });
    const text = await response.text();
    if (response.ok) return (text ? JSON.parse(text) : undefined) as T;
    throw new UserError(`${method} ${path}: ${readError(text) ?? response.statusText}`);
  };
}

function readError(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: string }).error;
  } catch {
    return undefined;
  }
}

export type Uploaded = Upload & { asset: Asset };

/** Uploads a file: initiate, PUT, complete. `onSent` receives the share of bytes sent, 0 to 1. */
export async function uploadFile(
  api: Api,
  path: string,
  fields: Record<string, unknown>,
  onSent: (fraction: number) => void,
): Promise<Uploaded> {
  const { size } = await stat(path);
  const session = await api<InitiatedUpload>("POST", "/api/v1/uploads/initiate", {
    filename: basename(path),
    bytes_expected: size,
    ...fields,
  });
  // Counted as they are read: a `data` listener would start the flow before the connection accepts it.
  async function* body() {
    let sent = 0;
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      yield chunk;
      sent += chunk.length;
      onSent(sent / size);
    }
  }
  const response = await fetch(session.upload_url, {
    method: "PUT",
    headers: { ...session.upload_headers, "content-length": String(size) },
    body: body(),
    duplex: "half",
  } as unknown as RequestInit).catch((error: Error) => {
    throw new UserError(`The upload failed. ${describeConnectionError(new URL(session.upload_url).origin, error)}`);
  });
  if (!response.ok)
    throw new UserError(`The upload was refused: ${readError(await response.text()) ?? response.statusText}`);
  const received: Complete = { bytes_received: size };
  return api<Uploaded>("POST", `/api/v1/uploads/${session.id}/complete`, received);
}
