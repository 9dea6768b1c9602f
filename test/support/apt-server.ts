import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { atEnd } from "./folder.ts";

export type AptServer = { url: string; paths: string[]; show(folder: string): void };

/** A static server of an apt repository, as any web server is. `show` selects another one; `paths` are those that were requested. */
export async function aptServer(folder: string): Promise<AptServer> {
  let shown = folder;
  const paths: string[] = [];
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    paths.push(path);
    const file = join(shown, path);
    const info = statSync(file, { throwIfNoEntry: false });
    if (!info?.isFile()) return response.writeHead(404).end();
    response.setHeader("content-length", info.size);
    return createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  const show = (other: string) => {
    shown = other;
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths, show };
}

/** Makes a machine forget its sources, so that apt reads the tests' alone, and no proxy: commands of a shell. */
export const NO_OTHER_SOURCES = `rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*
  printf 'Acquire::http::Proxy::127.0.0.1 "DIRECT";\\nAcquire::Retries "0";\\n' >/etc/apt/apt.conf.d/90tests`;
