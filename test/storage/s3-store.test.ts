import { afterAll, beforeAll } from "vitest";
import { s3Store } from "../../storage/objects/s3.ts";
import { type S3Server, startS3Server } from "../support/s3-server.ts";
import { multipartContract } from "./multipart-contract.ts";
import { storeContract } from "./store-contract.ts";

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(() => server.close());

/** A store of its own for every test: a prefix of one bucket. */
let stores = 0;
const open = async (more: Record<string, unknown> = {}) => {
  await server.bucket("vodbox-tests");
  return s3Store({ ...server, bucket: "vodbox-tests", pathStyle: true, prefix: `store-${++stores}/`, ...more });
};

storeContract("S3 store", () => open());
multipartContract("S3 multipart", () => open());
