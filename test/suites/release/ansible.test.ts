import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { paths } from "#scripts/build/paths.ts";
import { freePort } from "#scripts/free-port.ts";
import { KEYRING, writeAptRepository } from "#scripts/release/apt/repository.ts";
import { writeDeb } from "#scripts/release/deb/deb.ts";
import { isNightly, rows } from "#test/support/amount.ts";
import { aptServer, NO_OTHER_SOURCES } from "#test/support/apt-server.ts";
import { type BootedRoot, bootedRoot } from "#test/support/booted-root.ts";
import { client } from "#test/support/client.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { newGpgKey, stopGpgAgent } from "#test/support/gpg-key.ts";
import { nightly } from "#test/support/nightly.ts";
import { EXECUTABLE } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

const ADMIN = 'admin-token "quoted" \\ with $signs';

/** Two packages of the executable, and repositories with the first one and with both: all for the tests of the nightly tier. */
let folder: string;
const deb = (version: string) => join(folder, `vodbox_${version}_amd64.deb`);
beforeAll(async () => {
  if (!isNightly) return;
  folder = newFolder();
  const home = process.env.GNUPGHOME;
  process.env.GNUPGHOME = join(folder, "gpg");
  const key = newGpgKey(process.env.GNUPGHOME);
  const first = join(folder, "first");
  await writeDeb("x64", EXECUTABLE, deb("1.0.0"), { version: "1.0.0", level: 1 });
  await writeAptRepository(first, [deb("1.0.0")], { key, date: new Date("2026-11-01T12:00:00Z") });
  await writeDeb("x64", EXECUTABLE, deb("1.1.0"), { version: "1.1.0", level: 1 });
  const later = { key, date: new Date("2026-11-02T12:00:00Z"), previous: first };
  await writeAptRepository(join(folder, "both"), [deb("1.1.0")], later);
  return () => {
    stopGpgAgent(join(folder, "gpg"));
    removeFolder(folder);
    if (home === undefined) delete process.env.GNUPGHOME;
    else process.env.GNUPGHOME = home;
  };
}, 600_000);

type Recap = Record<"ok" | "changed" | "unreachable" | "failed", number>;

/** Runs the playbook on the machine itself; what Ansible counts at its end. */
async function play({ start, folder: at }: BootedRoot, variables: object): Promise<Recap> {
  writeFileSync(join(at, "variables.json"), JSON.stringify(variables));
  const inventory = "vodbox ansible_connection=local ansible_python_interpreter=/usr/bin/python3";
  writeFileSync(join(at, "inventory.ini"), `[vodbox]\n${inventory}\n`);
  const { stdout, stderr } = await start(
    `cd ${at}/ansible && ansible-playbook -i ../inventory.ini --extra-vars @../variables.json site.yml`,
  ).ended;
  const recap = /^vodbox +: (.*)$/m.exec(stdout)?.[1];
  if (!recap) throw new Error(`The playbook did not end:\n${stdout}\n${stderr}`);
  const counts = Object.fromEntries(
    [...recap.matchAll(/(\w+)=(\d+)/g)].map(([, name, count]) => [name, Number(count)]),
  );
  if (counts.failed !== 0) throw new Error(`The playbook failed:\n${stdout}\n${stderr}`);
  return counts as Recap;
}

/** A machine that has the playbook and can reach the first repository, and the variables for it. Null where none can be booted. */
async function scene() {
  const machine = await bootedRoot();
  if (!machine) return null;
  const repository = await aptServer(join(folder, "first"));
  cpSync(join(paths.root, "deploy/ansible"), join(machine.folder, "ansible"), { recursive: true });
  cpSync(join(folder, "first", KEYRING), join(machine.folder, "ansible/key.asc"));
  await machine.sh(NO_OTHER_SOURCES);
  const port = await freePort();
  const variables = {
    vodbox_apt_url: repository.url,
    vodbox_apt_key: "key.asc",
    vodbox_settings: { VODBOX_PORT: port, VODBOX_ADMIN_TOKEN: ADMIN, VODBOX_WORKERS: "0" },
  };
  const version = () => machine.sh("dpkg-query -W -f '${Version}' vodbox");
  const call = client(`http://127.0.0.1:${port}`);
  return { machine, sh: machine.sh, repository, variables, version, call, as: typedClient(call) };
}

nightly(
  "Ansible installs from the apt repository, with backups, and changes nothing the second time",
  async (context) => {
    const ready = await scene();
    if (!ready) return context.skip();
    const { machine, sh, variables, version, as } = ready;
    expect((await play(machine, variables)).changed).toBeGreaterThan(5);
    expect(await version()).toBe("1.0.0");
    expect((await as().getReadiness()).status).toBe(200);
    expect((await as({ admin: ADMIN }).listTenants()).status).toBe(200);
    expect(await sh("stat -c '%U %a' /etc/vodbox/vodbox.env /var/backups/vodbox")).toBe("root 600\nvodbox 700\n");
    expect(await sh("systemctl is-enabled vodbox.service vodbox-backup.timer")).toBe("enabled\nenabled\n");
    expect(await sh("systemctl is-active vodbox-backup.timer")).toBe("active\n");

    const pid = await sh("systemctl show -P MainPID vodbox.service");
    expect(await play(machine, variables)).toMatchObject({ changed: 0 });
    expect(await sh("systemctl show -P MainPID vodbox.service")).toBe(pid);
  },
);

nightly("Ansible applies changed settings, backs up, upgrades and downgrades", async (context) => {
  const ready = await scene();
  if (!ready) return context.skip();
  const { machine, sh, variables, version, as, repository } = ready;
  await play(machine, variables);
  const tenant = { name: "Example", slug: "example" };
  expect((await as({ admin: ADMIN }).createTenant(tenant)).status).toBe(201);

  // Changed settings restart the service, and only these.
  const pid = await sh("systemctl show -P MainPID vodbox.service");
  const settings = { ...variables.vodbox_settings, VODBOX_BASE_URL: "https://video.example.com" };
  const changed = { ...variables, vodbox_settings: settings };
  expect((await play(machine, changed)).changed).toBe(2);
  expect(await sh("systemctl show -P MainPID vodbox.service")).not.toBe(pid);

  // A newer version in the repository is installed on request only, after a backup.
  repository.show(join(folder, "both"));
  expect(await play(machine, changed)).toMatchObject({ changed: 0 });
  expect([await version(), await sh("ls /var/backups/vodbox")]).toEqual(["1.0.0", ""]);
  await play(machine, { ...changed, vodbox_version: "latest" });
  expect(await version()).toBe("1.1.0");
  expect(await sh("ls /var/backups/vodbox")).toMatch(/^vodbox-\d{8}T\d{6}Z\.tar\.zst\n$/);
  expect(await sh("cd /tmp; vodbox admin restore --check /var/backups/vodbox/*")).toMatch(
    /^No faults in the backup of /,
  );
  const tenants = await as({ admin: ADMIN }).listTenants();
  expect(tenants.body).toMatchObject([tenant]);
  expect(await play(machine, { ...changed, vodbox_version: "latest" })).toMatchObject({ changed: 0 });
  await play(machine, { ...changed, vodbox_version: "1.0.0" });
  expect(await version()).toBe("1.0.0");
});

nightly("Ansible installs a package file, without backups", async (context) => {
  const machine = await bootedRoot();
  if (!machine) return context.skip();
  const { sh } = machine;
  cpSync(join(paths.root, "deploy/ansible"), join(machine.folder, "ansible"), { recursive: true });
  cpSync(deb("1.1.0"), join(machine.folder, "ansible/vodbox.deb"));
  await sh(NO_OTHER_SOURCES);
  const port = await freePort();
  const settings = { VODBOX_PORT: port, VODBOX_WORKERS: "0" };
  const variables = { vodbox_deb: "vodbox.deb", vodbox_settings: settings, vodbox_backup: false };
  await play(machine, variables);
  expect((await client(`http://127.0.0.1:${port}`)("GET", "/readyz")).status).toBe(200);
  expect(await play(machine, variables)).toMatchObject({ changed: 0 });
  expect(await sh("systemctl list-unit-files 'vodbox*' --no-legend")).toMatch(/^vodbox\.service +enabled/);
});

test.each(
  rows(
    [
      [{ vodbox_deb: "vodbox.deb", vodbox_settings: { VODBOX_HOST: "a\nLD_PRELOAD=b" } }],
      [{}],
      [{ vodbox_apt_url: "http://127.0.0.1:9", vodbox_apt_key: "key.asc", vodbox_deb: "vodbox.deb" }],
      [{ vodbox_apt_url: "http://127.0.0.1:9" }],
      [{ vodbox_deb: "vodbox.deb", vodbox_version: "1.0.0" }],
      [{ vodbox_deb: "vodbox.deb", vodbox_settings: { PATH: "/tmp" } }],
    ],
    3,
  ),
)("the role refuses %j before it does anything", (variables) => {
  // Nothing of this machine would change otherwise either.
  const args = ["--check", "--connection", "local", "--inventory", "localhost,", "--limit", "localhost"];
  const playbook = join(emptyFolder(), "site.yml");
  const role = join(paths.root, "deploy/ansible/roles/vodbox");
  writeFileSync(playbook, JSON.stringify([{ hosts: "all", gather_facts: false, roles: [role] }]));
  const all = [...args, "--extra-vars", JSON.stringify(variables), playbook];
  const { status, stdout } = spawnSync("ansible-playbook", all, { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stdout).toContain("Set vodbox_apt_url and vodbox_apt_key, or vodbox_deb (without vodbox_version).");
  expect(stdout).toMatch(/ok=0 +changed=0/);
});

test("the example of an inventory has variables that the role knows", () => {
  const known = readFileSync(join(paths.root, "deploy/ansible/roles/vodbox/defaults/main.yml"), "utf8");
  const example = readFileSync(join(paths.root, "deploy/ansible/inventory.example.ini"), "utf8");
  const names = [...example.matchAll(/^(vodbox_\w+)=/gm)].map(([, name]) => name);
  expect(names).toEqual(["vodbox_apt_url", "vodbox_apt_key", "vodbox_settings"]);
  for (const name of names) expect(known).toMatch(new RegExp(`^${name}: `, "m"));
});
