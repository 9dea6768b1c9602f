import { isAbsolute } from "node:path";
import * as v from "valibot";
import type { CacheLocation } from "#storage/cache/open-cache.ts";

const FORMS = "must be memory, fs, fs:/PATH, or redis://HOST:PORT/DB (rediss:// with TLS)";

function locationOf(text: string): CacheLocation | null {
  if (text === "memory") return { kind: "memory" };
  if (text === "fs") return { kind: "fs", path: null };
  if (text.startsWith("fs:")) return isAbsolute(text.slice(3)) ? { kind: "fs", path: text.slice(3) } : null;
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, pathname } = new URL(text);
  const isRedis = ["redis:", "rediss:"].includes(protocol) && hostname !== "" && /^(\/\d{0,4})?$/.test(pathname);
  return isRedis ? { kind: "redis", url: text } : null;
}

/** `VODBOX_CACHE`, parsed. The message does not repeat the value, which may contain a password. */
export const CacheSetting = v.pipe(
  v.string(FORMS),
  v.trim(),
  v.check((text) => locationOf(text) !== null, FORMS),
  v.transform((text) => locationOf(text) as CacheLocation),
);
