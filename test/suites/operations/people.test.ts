import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { json, refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { png } from "#test/support/png.ts";

test("the operator changes the look of a tenant's player, helps users who cannot sign in, and filters the audit log", async () => {
  const dataDir = emptyFolder();
  const at = ["--data", dataDir];
  const admin = (...args: string[]) => json(["admin", ...args, ...at]);
  await admin("tenant", "create", "--name", "Acme", "--slug", "acme");
  const logo = join(dataDir, "logo.png");
  writeFileSync(logo, png(16, 16));
  const look = ["--accent-color", "#ff0066", "--show-title", "off", "--allow-download", "on"];
  expect((await admin("tenant", "update", "acme", ...look)).player).toEqual({
    accent_color: "#ff0066",
    logo_url: null,
    show_title: false,
    allow_download: true,
  });
  expect((await admin("tenant", "logo", "acme", logo)).player.logo_url).toMatch(/\/logos\/1\/[0-9a-f]{64}\.png$/);
  expect((await admin("tenant", "logo", "acme", "--remove")).player.logo_url).toBeNull();
  await refused(["admin", "tenant", "logo", "acme", ...at], 2);
  await refused(["admin", "tenant", "update", "acme", "--show-title", "maybe", ...at], 2);

  const email = "ann@example.com";
  const user = ["user", "create", "--tenant", "acme", "--email", email, "--password-stdin"];
  await json(["admin", ...user, ...at], { input: "correct horse\n" });
  expect((await admin("user", "reset-link", email)).url).toMatch(/\/console\/reset\/\w{32}$/);
  expect(await admin("user", "totp-off", email)).toEqual({ user: email, totp_enabled: false });
  await refused(["admin", "user", "totp-off", "unknown@example.com", ...at], 1);

  const entries = await admin("audit", "--tenant", "acme", "--actor", "operator", "--action", "create_reset_link");
  expect(entries).toMatchObject([{ actor_name: "operator", action: "create_reset_link", target_id: email }]);
});
