import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { SETTINGS } from "#platform/config/settings.ts";
import { paths } from "#scripts/build/paths.ts";
import { emptyFolder } from "#test/support/folder.ts";

const FOLDER = join(paths.root, "deploy/terraform");
/** Terraform is no package of Debian or npm; this machine may have it. */
const hasTerraform = spawnSync("terraform", ["version"]).status === 0;
if (!hasTerraform) console.warn("skipped: there is no terraform, which neither Debian nor npm has as a package");

const KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ\n-----END PGP PUBLIC KEY BLOCK-----\n";
const REQUIRED = { apt_url: "https://apt.example.com", apt_key: KEY };

type UserData = {
  packages: string[];
  apt: { sources: { vodbox: { source: string } } };
  write_files: { path: string; permissions: string; content: string }[];
} & Record<string, unknown>;

/** The user data that the module renders, which needs no provider and no network. */
function render(variables: object): { text: string; data: UserData } {
  const folder = emptyFolder();
  cpSync(join(FOLDER, "cloud-init"), folder, { recursive: true });
  writeFileSync(join(folder, "variables.json"), JSON.stringify(variables));
  const env = { ...process.env, TF_CLI_CONFIG_FILE: "/dev/null", CHECKPOINT_DISABLE: "1" };
  const terraform = (...args: string[]) =>
    execFileSync("terraform", args, { cwd: folder, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  terraform("init", "-input=false", "-no-color");
  terraform("apply", "-auto-approve", "-input=false", "-no-color", "-var-file=variables.json");
  const text = terraform("output", "-raw", "user_data");
  writeFileSync(join(folder, "user-data"), text);
  const shown = execFileSync("cloud-init", ["schema", "--config-file", join(folder, "user-data")], {
    encoding: "utf8",
  });
  expect(shown).toContain("Valid cloud-config");
  return { text, data: parse(text) as UserData };
}

const contentOf = ({ write_files }: UserData, path: string) => write_files.find((file) => file.path === path);

describe.skipIf(!hasTerraform)("Terraform", () => {
  test("the files are formatted, and parse", () => {
    const { status, stdout, stderr } = spawnSync("terraform", ["fmt", "-check", "-recursive", "-diff", FOLDER], {
      encoding: "utf8",
      env: { ...process.env, TF_CLI_CONFIG_FILE: "/dev/null" },
    });
    expect([status, stdout, stderr]).toEqual([0, "", ""]);
  });

  test("the module renders user data that cloud-init accepts", () => {
    const { text, data } = render(REQUIRED);
    expect(text.startsWith("#cloud-config\n")).toBe(true);
    const keyring = "/etc/apt/keyrings/vodbox-archive-keyring.asc";
    expect(data.packages).toEqual(["vodbox"]);
    expect(data.apt.sources.vodbox.source).toBe(`deb [signed-by=${keyring}] https://apt.example.com stable main`);
    expect(contentOf(data, keyring)).toMatchObject({ content: KEY });
    expect(contentOf(data, "/etc/vodbox/vodbox.env")).toEqual({
      path: "/etc/vodbox/vodbox.env",
      permissions: "0600",
      content: "",
    });
    expect(data).not.toHaveProperty("mounts");
  });

  test("with a domain, a volume and settings", () => {
    const settings = { VODBOX_PORT: "9000", VODBOX_S3_SECRET_ACCESS_KEY: 'a "b" \\ & <c>' };
    const { data } = render({ ...REQUIRED, domain: "video.example.com", data_device: "/dev/sdb", settings });
    expect(data.packages).toEqual(["vodbox", "caddy"]);
    expect(contentOf(data, "/etc/vodbox/vodbox.env")?.content.split("\n")).toEqual([
      'VODBOX_BASE_URL="https://video.example.com"',
      'VODBOX_PORT="9000"',
      'VODBOX_S3_SECRET_ACCESS_KEY="a \\"b\\" \\\\ & <c>"',
      'VODBOX_TRUSTED_PROXIES="127.0.0.1/32"',
      "",
    ]);
    for (const name of ["base_url", "trusted_proxies", "port"]) expect(SETTINGS).toHaveProperty(name);
    const caddyfile = contentOf(data, "/etc/caddy/Caddyfile")?.content;
    expect(caddyfile).toMatch(/^video\.example\.com \{\n {2}reverse_proxy 127\.0\.0\.1:9000 \{\n/);
    expect(data).toMatchObject({
      fs_setup: [{ device: "/dev/sdb", overwrite: false }],
      mounts: [["/dev/sdb", "/var/lib/vodbox", "ext4", expect.any(String), "0", "2"]],
    });
  });

  test.each([
    ["a URL that would end the source", { apt_url: "https://example.com stable evil" }],
    ["a key that is none", { apt_key: "AAAA" }],
    ["a setting of another program", { settings: { PATH: "/tmp" } }],
    ["a setting with a line break", { settings: { VODBOX_HOST: "a\nLD_PRELOAD=b" } }],
    ["a domain with other directives", { domain: "example.com { respond" }],
    ["a device that is none", { data_device: "sdb; reboot" }],
  ])("the module refuses %s", (_, variables) => {
    expect(() => render({ ...REQUIRED, ...variables })).toThrow(/Invalid value for variable/);
  });
});
