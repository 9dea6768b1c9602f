import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { writeLayer } from "#scripts/release/image/layer.ts";
import { emptyFolder, removeFolder } from "#test/support/folder.ts";
import { runContainer, unpackedImage } from "#test/support/image.ts";
import { lineOf } from "#test/support/process.ts";
import { artifact, RELEASE_MS } from "#test/support/release.ts";

const MAX_BYTES = 160e6;

let archive: string;
let image: ReturnType<typeof unpackedImage>;
beforeAll(async () => {
  archive = await artifact("linux-x64.oci.tar");
  image = unpackedImage(archive);
}, RELEASE_MS);
afterAll(() => removeFolder(image.folder));

describe("the image", () => {
  test("is at most 160 MB, and other tools read it in both formats", () => {
    expect(statSync(archive).size).toBeLessThan(MAX_BYTES);
    for (const format of ["oci-archive", "docker-archive"]) {
      const inspect = (...args: string[]) =>
        JSON.parse(execFileSync("skopeo", ["inspect", ...args, `${format}:${archive}`]).toString());
      expect(inspect()).toMatchObject({ Architecture: "amd64", Os: "linux" });
      expect(inspect("--config").config).toMatchObject({ User: "65532:65532", Entrypoint: ["/usr/bin/vodbox"] });
    }
    // Copies every blob and compares the digests.
    const copy = join(emptyFolder(), "copy");
    execFileSync("skopeo", ["--insecure-policy", "copy", "--quiet", `oci-archive:${archive}`, `oci:${copy}`]);
  });

  test("contains nothing but the executable and what it needs, and a record of Debian's packages", () => {
    expect(readdirSync(join(image.root, "usr/bin"))).toEqual(["vodbox"]);
    expect(readdirSync(image.root)).not.toEqual(expect.arrayContaining(["bin", "sbin"]));
    const records = join(image.root, "var/lib/dpkg/status.d");
    expect(readdirSync(records)).toEqual(["base-files", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6"]);
    expect(readFileSync(join(records, "libc6"), "utf8")).toMatch(/^Version: 2\./m);
    expect(readFileSync(join(image.root, "etc/ssl/certs/ca-certificates.crt"), "utf8")).toContain("BEGIN CERTIFICATE");
    expect(statSync(join(image.root, "tmp")).mode & 0o7777).toBe(0o1777);
  });

  test("serves as its own user with a read-only root, and reports its health", async () => {
    const port = await freePort();
    const container = runContainer(image, { VODBOX_HOST: "127.0.0.1", VODBOX_PORT: String(port) }, image.config.Cmd);
    const [, base] = await lineOf(container, /^vodbox ready on (\S+)$/m);
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    const [kind, ...healthCommand] = image.config.Healthcheck.Test;
    expect(kind).toBe("CMD");
    expect(await container.inside(...healthCommand).ended).toMatchObject({ code: 0, stdout: "ready\n", stderr: "" });
    const elsewhere = await container.inside(...healthCommand, "--data", "/var/lib/nothing").ended;
    expect(elsewhere).toMatchObject({ code: 1, stderr: "vodbox: No server runs on /var/lib/nothing.\n" });
    const pid = container.first() as number;
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    expect(status).toMatch(/^Uid:\s+65532\s+65532\s/m);
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    process.kill(pid, "SIGTERM");
    expect(await container.ended).toMatchObject({ code: 0 });
  });

  test("transcodes", async () => {
    const settings = { VODBOX_HOST: "127.0.0.1" };
    const demo = await runContainer(image, settings, ["demo", "--once", "--port", "0", "--seconds", "2"]).ended;
    expect(demo).toMatchObject({ code: 0, stdout: expect.stringMatching(/\/watch\/vid_\w+/) });
  });
});

test("a layer with the same content has the same bytes, whenever and in whatever order it is written", async () => {
  const first = emptyFolder();
  const second = emptyFolder();
  const entries = [
    { kind: "text", path: "etc/b", text: "b" },
    { kind: "link", path: "a", target: "etc/b" },
    { kind: "file", path: "c", from: import.meta.filename, mode: 0o755 },
  ] as const;
  const time = new Date(1e12);
  const layer = await writeLayer([...entries], time, first);
  expect(await writeLayer([...entries].reverse(), time, second)).toEqual(layer);
  expect(readdirSync(first)).toEqual([layer.digest.replace("sha256:", "")]);
  const listed = execFileSync("tar", ["-tzf", join(first, readdirSync(first)[0] as string)]).toString();
  expect(listed).toBe("a\nc\netc\netc/b\n");
});
