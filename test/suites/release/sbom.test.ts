import { readFileSync } from "node:fs";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { beforeAll, describe, expect, test } from "vitest";
import { nodeVersion, own } from "#scripts/build/paths.ts";
import type { Stage } from "#scripts/ffmpeg/components.ts";
import { sha256 } from "#scripts/release/checksums.ts";
import { artifact, RELEASE_MS, RELEASED, release, releasedStage } from "#test/support/release.ts";

beforeAll(release, RELEASE_MS);

/** What decodes and encodes AV1 in each stage. */
const AV1: Record<Stage, string[]> = {
  linked: ["aom"],
  "linked-av1": ["dav1d", "svt-av1"],
  complete: ["dav1d", "svt-av1"],
};

type Component = { name: string; version: string; purl: string; components?: Component[] };

describe.each(RELEASED)("the SBOM of %s", (arch) => {
  const read = async () => readFileSync(await artifact(`linux-${arch}.cdx.json`), "utf8");

  test("is valid CycloneDX", async () => {
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    expect(await validator.validate(await read())).toBeNull();
  });

  test("names the executable by its checksum, and everything in it", async () => {
    const { metadata, components } = JSON.parse(await read()) as {
      metadata: { component: Component & { hashes: { content: string }[] } };
      components: Component[];
    };
    expect(metadata.component).toMatchObject({ name: "vodbox", version: own.version });
    expect(metadata.component.hashes[0]?.content).toBe(await sha256(await artifact(`linux-${arch}`)));
    const find = (name: string) => components.find((each) => each.name === name);
    expect(find("node")?.version).toBe(nodeVersion);
    expect(find("node")?.components?.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["v8", "openssl", "zlib"]),
    );
    const linked = find("ffmpeg")?.components?.map(({ name }) => name);
    const encoders = ["libvpx", "libwebp", "opus", "x264", "x265"];
    expect(linked?.sort()).toEqual(
      [...AV1[await releasedStage()], "gcc-12", "glibc", ...encoders, "zimg", "zlib"].sort(),
    );
    expect(components.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["libsql-native", `@fugood/node-whisper-linux-${arch}`, "h3", "hls.js"]),
    );
    const refs = components.flatMap((each) => [each, ...(each.components ?? [])]).map(({ purl }) => purl);
    expect(new Set(refs).size).toBe(refs.length);
  });
});
