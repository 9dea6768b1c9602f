import { expect, test } from "vitest";
import { faultsOf, METHODS, type Method, methodOf } from "#test/support/mux/shapes.ts";

/** Every test of this folder checks each response by these, in `muxClient`. */

const named = (name: string) => METHODS.find((one) => one.name === name) as Method;

test("the methods of the covered resources are found, with their paths and types", () => {
  expect(METHODS.length).toBeGreaterThan(40);
  expect(METHODS.every(({ type }) => type !== "")).toBe(true);
  expect(methodOf("POST", "/video/v1/assets")?.name).toBe("video/assets.create");
  expect(methodOf("GET", "/video/v1/assets/1/input-info")).toMatchObject({ type: "AssetRetrieveInputInfoResponse" });
  expect(methodOf("GET", "/video/v1/uploads")).toMatchObject({ type: "Array<Upload>", isWhole: false });
  expect(methodOf("GET", "/data/v1/metrics/views/overall")).toMatchObject({ isWhole: true });
});

const KEY = { id: "sk_1", created_at: "1" };
const ASSET = { id: "1", created_at: "1", status: "ready", encoding_tier: "smart", master_access: "none" };
const asset = (fields: object) => ({
  data: { ...ASSET, max_resolution_tier: "1080p", progress: { progress: 1, state: "completed" }, ...fields },
});
test.each<[string, string, unknown, string[]]>([
  ["what the type says", "system/signing-keys.retrieve", { data: KEY }, []],
  ["a missing field", "system/signing-keys.retrieve", { data: { id: "x" } }, ["data.created_at: is missing"]],
  ["another type", "system/signing-keys.retrieve", { data: { ...KEY, id: 1 } }, ["data.id: 1 is not string"]],
  [
    "an unknown field",
    "system/signing-keys.retrieve",
    { data: { ...KEY, x: 1 } },
    ["data.x: is not a field of SigningKey"],
  ],
  ["an item of a list", "system/signing-keys.list", { data: [KEY, 1] }, ["data[1]: 1 is not SigningKey"]],
  ["no envelope", "system/signing-keys.retrieve", KEY, ["data: nothing is not SigningKey"]],
  ["optional fields", "video/assets.retrieve", asset({}), []],
  [
    "a value of a list of values",
    "video/assets.retrieve",
    asset({ status: "done" }),
    [expect.stringContaining("data.status")],
  ],
  [
    "a type of another file",
    "video/assets.retrieve",
    asset({ playback_ids: [{ id: "a", policy: "open" }] }),
    [expect.stringContaining("data.playback_ids[0].policy")],
  ],
  [
    "a type of a namespace",
    "video/assets.retrieve",
    asset({ static_renditions: { files: [{ ext: "mp3" }] } }),
    [expect.stringContaining("data.static_renditions.files[0].ext")],
  ],
])("%s is found", (_, name, body, faults) => {
  expect(faultsOf(named(name), body)).toEqual(faults);
});
