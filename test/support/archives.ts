import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { buffer } from "node:stream/consumers";
import { extract, type Header, pack } from "tar-stream";

export type Member = { header: Partial<Header> & { name: string }; bytes: Buffer };
export const member = (name: string, bytes: string | Buffer): Member => ({
  header: { name },
  bytes: Buffer.from(bytes as string),
});

export async function membersOf(file: string): Promise<Member[]> {
  const all: Member[] = [];
  const reading = createReadStream(file).pipe(extract());
  for await (const entry of reading) all.push({ header: { name: entry.header.name }, bytes: await buffer(entry) });
  return all;
}

export function archiveOf(members: Member[]): Promise<Buffer> {
  const tar = pack();
  // A member without content (a link, a device) consists of its header.
  for (const { header, bytes } of members) {
    if (!header.type || header.type === "file") tar.entry(header, bytes);
    else tar.entry(header);
  }
  tar.finalize();
  return buffer(tar);
}

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** With valid checksums for its content, as a forger would create it. `manifest` is applied last. */
export function summed(members: Member[], manifest: (fields: any) => void = () => {}): Member[] {
  const inner = members.filter(({ header }) => !header.name.startsWith("manifest.json"));
  const fields = JSON.parse(String(members.find(({ header }) => header.name === "manifest.json")?.bytes));
  fields.sha256 = Object.fromEntries(
    inner
      .filter(({ header }) => !header.name.startsWith("objects/"))
      .map(({ header, bytes }) => [header.name, sha256(bytes)]),
  );
  manifest(fields);
  const written = Buffer.from(JSON.stringify(fields));
  return [
    ...inner,
    member("manifest.json", written),
    member("manifest.json.sha256", `${sha256(written)}  manifest.json\n`),
  ];
}
