import { UserError } from "#lib/base";
import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { isPrefix, pathBelow } from "#model/object-keys.ts";
import { s3Client } from "#storage/objects/s3/client.ts";
import { textOf } from "#storage/objects/s3/xml.ts";
import { providerClient } from "../client.ts";
import { amountOf, time } from "../json.ts";
import { ItemError, type Listed, type Provider } from "../source.ts";
import { isRelevant, type TreeFile, type TreeItem, videosIn } from "../tree/group.ts";
import { loadTreeItem } from "../tree/load.ts";

/** A page has at most 1000 keys of 1024 bytes, each escaped. */
const MAX_PAGE_BYTES = 16 * 2 ** 20;
/** A download may begin long after its URL was made; a new one is made when it has expired. */
const VALID_MS = 12 * 3_600_000;

/** Video objects of a bucket, with side-car objects. The id of a video is its key below the prefix. */
export const s3: Provider = {
  ...IMPORT_SOURCES.s3,
  async open({ from = "", env, apiUrl }) {
    const [, bucket = "", given = ""] = /^s3:\/\/([^/?#]{1,255})(?:\/(.*))?$/s.exec(from) ?? [];
    if (bucket === "") throw new UserError("Name the bucket to import: vodbox import s3 s3://BUCKET/PREFIX.", 2);
    const prefix = given === "" || isPrefix(given) ? given : `${given}/`;
    const region = env.AWS_REGION ?? env.AWS_DEFAULT_REGION ?? "us-east-1";
    const named = apiUrl ?? env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
    const endpoint = named ?? `https://s3.${region}.amazonaws.com`;
    if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
      throw new UserError("The endpoint of the bucket (AWS_ENDPOINT_URL) is not a URL.", 2);
    const bucketClient = s3Client({
      endpoint,
      bucket,
      region,
      prefix: "",
      // Names with dots do not match the certificate of a host name, and other servers have no host names for buckets.
      pathStyle: named !== undefined || bucket.includes("."),
      accessKeyId: env.AWS_ACCESS_KEY_ID as string,
      secretAccessKey: env.AWS_SECRET_ACCESS_KEY as string,
    });
    const client = providerClient({ title: "The bucket", base: endpoint, credentials: () => ({}) });
    const token: Record<string, string> = env.AWS_SESSION_TOKEN
      ? { "X-Amz-Security-Token": env.AWS_SESSION_TOKEN }
      : {};
    const urlOf = (key: string, query: Record<string, string> = {}) =>
      bucketClient.presigned({ method: "GET", key, query: { ...query, ...token } }, new Date(Date.now() + VALID_MS))
        .url;

    async function* files(): AsyncGenerator<TreeFile> {
      for (let next = ""; ; ) {
        const query = { "list-type": "2", prefix, ...(next && { "continuation-token": next }) };
        const xml = Buffer.from(await client.bytes(urlOf("", query), MAX_PAGE_BYTES)).toString("utf8");
        const { contents, rest } = pageOf(xml);
        for (const content of contents) {
          const key = textOf(content, "Key");
          const path = pathBelow(prefix, key);
          if (path === null || !isRelevant(path)) continue;
          yield {
            path,
            bytes: amountOf(textOf(content, "Size")) ?? 0,
            modifiedAt: time(textOf(content, "LastModified")),
            read: (maxBytes) => client.bytes(urlOf(key), maxBytes),
          };
        }
        const following = textOf(rest, "IsTruncated") === "true" ? textOf(rest, "NextContinuationToken") : "";
        if (following === "") return;
        if (following === next) throw new ItemError("the bucket lists the same page again");
        next = following;
      }
    }

    return {
      location: `${endpoint} ${from}`,
      client,
      listsExactBytes: true,
      list: () => videosIn(files()),
      async load({ data }: Listed) {
        const item = data as TreeItem;
        const { path, bytes } = item.video;
        return loadTreeItem(item, { kind: "remote", url: urlOf(prefix + path), bytes });
      },
    };
  },
};

/** Far more than an object of a list, or what is around them, has. */
const MAX_ELEMENT = 65_536;

/** The elements of the objects, and what is around them. In linear time, whatever a server sends. */
function pageOf(xml: string): { contents: string[]; rest: string } {
  const [head = "", ...parts] = xml.split("<Contents>");
  const pieces = parts.map((part) => part.split("</Contents>", 2));
  const rest = head + (pieces.at(-1)?.[1] ?? "");
  const contents = pieces.map(([content = ""]) => content);
  if (!head.includes("<ListBucketResult") || [...contents, rest].some(({ length }) => length > MAX_ELEMENT))
    throw new ItemError("the bucket did not answer with a list");
  return { contents, rest };
}
