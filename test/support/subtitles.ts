import type { TestApp } from "./app.ts";
import { typedClient } from "./typed-client.ts";

export const VTT = "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nHello\n";

/** The form for uploading a subtitle; a null field is omitted. */
export function subtitleForm(
  fields: Record<string, string | null> = {},
  file: string | Uint8Array | null = VTT,
  name = "a.vtt",
) {
  const form = new FormData();
  if (file !== null) form.append("file", new Blob([file as string]), name);
  for (const [field, value] of Object.entries({ language: "en", label: "English", ...fields }))
    if (value !== null) form.append(field, value);
  return form;
}

/** Uploads a track and returns its record. */
export async function subtitled(
  app: Pick<TestApp, "call">,
  key: string,
  assetId: number,
  fields?: Record<string, string | null>,
  file?: string,
) {
  const made = await typedClient(app.call)(key).createSubtitle(assetId, subtitleForm(fields, file));
  if (made.status !== 201) throw new Error(made.text);
  return made.body;
}
