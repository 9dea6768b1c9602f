import { join } from "node:path";
import type { S3StoreOptions } from "#storage/objects/s3.ts";
import type { Config } from "../load.ts";
import { requiredSettings } from "../required-settings.ts";
import type { StoreDriver } from "./driver.ts";

const FOLDER = "growing";

/** A bucket of an S3 server. The client is loaded only where it is used. */
export const s3: StoreDriver = {
  check: (config) => void optionsOf(config),
  /** S3 cannot append: data that does not fill a part waits on the local disk. */
  async open(config, { clusterWorker }) {
    const options = optionsOf(config);
    const { s3Store } = await import("#storage/objects/s3.ts");
    const { partAppends } = await import("#storage/objects/part-appends.ts");
    const store = s3Store(options);
    const minFreeBytes = config.min_free_bytes;
    const appends = partAppends(store, join(config.data_dir, FOLDER), { minFreeBytes, take: clusterWorker?.take });
    return {
      ...store,
      appends,
      async delete(key) {
        await appends.discard(key);
        await store.delete(key);
      },
    };
  },
  locationOf: ({ s3_endpoint, s3_bucket, s3_prefix }) => `s3 ${s3_endpoint} ${s3_bucket} ${s3_prefix ?? ""}`,
  deliveryOf: (config) => config.s3_delivery,
  container: "bucket",
  folder: FOLDER,
  isInDataDir: false,
};

function optionsOf(config: Config): S3StoreOptions {
  // A migration also uses it while the settings name another storage.
  const user = config.storage === "s3" ? "VODBOX_STORAGE=s3 also" : "S3 storage";
  const names = ["s3_endpoint", "s3_bucket", "s3_access_key_id", "s3_secret_access_key"] as const;
  const [endpoint, bucket, accessKeyId, secretAccessKey] = requiredSettings(config, user, names);
  return {
    endpoint,
    bucket,
    accessKeyId,
    secretAccessKey,
    region: config.s3_region,
    pathStyle: config.s3_path_style,
    prefix: config.s3_prefix === undefined ? "" : `${config.s3_prefix}/`,
    publicUrl: config.s3_public_url,
  };
}
