import { join } from "node:path";
import { expect, test } from "vitest";
import { paths } from "#scripts/build/paths.ts";
import { freePort } from "#scripts/free-port.ts";
import { boot } from "#test/support/booted-root.ts";
import { client } from "#test/support/client.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { EXECUTABLE } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

const ADMIN = "boot-test-token-of-32-characters";

test("under systemd, with all restrictions of the unit, the server is ready and ffmpeg is fully confined", async (context) => {
  const port = await freePort();
  const booted = boot(emptyFolder(), [EXECUTABLE, join(paths.root, "scripts/vodbox.service"), String(port)]);
  if (!booted) return context.skip();
  const call = client(`http://127.0.0.1:${port}`);
  await until(
    "the unit is ready",
    async () => {
      if (booted.child.exitCode !== null) throw new Error(`systemd ended: ${booted.output()}`);
      return typedClient(call)()
        .getReadiness()
        .then(
          ({ status }) => status === 200,
          () => false,
        );
    },
    60_000,
  );
  await typedClient(call)({ admin: ADMIN }).startCheckup({});
  const checkup = await until("the check-up is done", async () => {
    const { body } = await typedClient(call)({ admin: ADMIN }).getCheckup();
    return body.status === "done" ? body : null;
  });
  const ffmpeg = checkup.findings.find((one: { check: string }) => one.check === "ffmpeg");
  expect(ffmpeg).toMatchObject({
    ok: true,
    detail: expect.stringMatching(
      /encodes and decodes(, but cannot encode av1, .*)? \(no control group\): \S+ \(bundled\)$/,
    ),
  });
});
