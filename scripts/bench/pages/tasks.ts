import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "#test/support/browser/browser.ts";
import { client } from "#test/support/client.ts";
import { uploaded } from "#test/support/flow.ts";
import { call, startVodbox, tenantWithKey, workFolder } from "../processes.ts";
import { compare, type Result } from "../result.ts";
import { makeFilm, untilReady } from "./content.ts";
import { Person } from "./person.ts";

const BOSS = { email: "boss@example.com", password: "correct horse battery" };
const FAKE_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
const SPEECH = { text: "Gud morning.", segments: [{ start: 0, end: 2, text: "Gud morning." }], language: "en" };

type Place = { base: string; folder: string; film: string; key: string };
/** Begins on the page Assets, after a sign-in, and ends when the person sees that it is done. */
type Task = {
  most: number;
  prepare?(place: Place): Promise<unknown>;
  run(person: Person, place: Place): Promise<void>;
};

const TASKS: Record<string, Task> = {
  "upload a video and share it with a password": {
    most: 12,
    async run(person, { film }) {
      const { page } = person;
      await person.click(person.button("Upload"));
      await person.chooseFile(page.locator("button", { hasText: "Choose files" }), film);
      await person.click(page.getByRole("link", { name: /film/ }).first());
      await person.click(person.button("Share"));
      await person.fill(person.dialog().getByLabel("Password"), "open sesame");
      await person.click(person.button("Create", person.dialog()));
      await person.click(page.getByRole("row").getByRole("button", { name: "Copy link", exact: true }));
      await page.getByText("Copied").waitFor();
    },
  },
  "go live from the camera": {
    most: 8,
    async run(person) {
      const { page } = person;
      await person.click(person.link("Live"));
      await person.click(person.button("New channel"));
      await person.fill(person.dialog().getByLabel("Channel", { exact: true }), "stage");
      await person.click(person.button("Create", person.dialog()));
      await person.click(person.link("stage"));
      await person.click(person.button("Go live"));
      await page.getByRole("heading", { name: "Go live: stage" }).waitFor();
      await person.click(person.button("Go live"));
      await page.getByText("You are live").waitFor();
      await page.close({ runBeforeUnload: false });
    },
  },
  "caption a video, correct a word, publish": {
    most: 10,
    async prepare({ base, film: _, key, folder }) {
      const { asset } = await uploaded({ call: client(base) }, key, {
        bytes: makeFilm(folder),
        playback_policy: "signed",
        title: "Interview",
      });
      await untilReady(base, asset.id);
    },
    async run(person) {
      const { page } = person;
      await person.click(person.link(/Interview/));
      await person.click(page.getByRole("tab", { name: "Subtitles", exact: true }));
      await person.click(person.button("Generate captions"));
      await person.click(person.button("Generate captions", person.dialog()));
      await person.click(person.button("Edit"));
      await person.fill(page.getByLabel("Text of cue 1"), "Good morning.");
      await person.click(person.button("Save"));
      await person.click(person.button("Publish"));
      await person.button("Publish").waitFor({ state: "detached" });
    },
  },
  "find a failed encode and retry it": {
    most: 5,
    async prepare({ base, key }) {
      const { asset } = await uploaded({ call: client(base) }, key, { bytes: "this is not a video", title: "Broken" });
      for (;;) {
        const { playback_status } = await call<Record<string, string>>(base, "GET", `/api/v1/assets/${asset.id}`);
        if (playback_status === "errored") return;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    },
    async run(person) {
      const { page } = person;
      await person.choose(page.getByLabel("Status"), "Failed");
      await person.click(person.link(/Broken/));
      await person.click(person.button("Retry encoding"));
      await page.getByText("Encoding is queued again.").waitFor();
    },
  },
  "invite an editor": {
    most: 7,
    async run(person) {
      const { page } = person;
      await person.click(person.link("Users"));
      await person.click(person.button("Invite"));
      await person.fill(person.dialog().getByLabel("Email"), "ed@example.com");
      await person.click(person.button("Invite", person.dialog()));
      await person.click(page.locator(".notice").getByRole("button", { name: /Copy/ }));
    },
  },
};

async function signedIn(browser: Browser, base: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`${base}/console`);
  await page.getByLabel("Email").fill(BOSS.email);
  await page.getByLabel("Password").fill(BOSS.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Assets", exact: true }).waitFor();
  return page;
}

/** Five things that people do in the console: how many clicks each needs, and how long the program takes. */
export async function benchTasks(): Promise<Result[]> {
  const work = workFolder();
  const speech = join(work.path, "speech.json");
  writeFileSync(speech, JSON.stringify(SPEECH));
  const env = {
    VODBOX_WHIP_PORT: "0",
    VODBOX_TRANSCRIBE: "command",
    VODBOX_TRANSCRIBE_COMMAND: `cat '${speech}' #`,
  };
  const server = await startVodbox(join(work.path, "data"), { workers: 1, env });
  const browser = await startBrowser(...FAKE_DEVICES);
  try {
    const { tenantId, key } = await tenantWithKey(server.base);
    await call(server.base, "POST", "/api/v1/users", { ...BOSS, tenant_id: tenantId, role: "admin" });
    makeFilm(work.path);
    const place = { base: server.base, folder: work.path, film: join(work.path, "film.mp4"), key };
    const results: Result[] = [];
    for (const [name, { most, prepare, run }] of Object.entries(TASKS)) {
      await prepare?.(place);
      const person = new Person(await signedIn(browser, server.base));
      await run(person, place);
      const { clicks, fields, seconds } = person.effort();
      if (!person.page.isClosed()) await person.page.close();
      results.push(
        compare(
          `task: ${name}`,
          { ours: [clicks], theirs: [most] },
          {
            reference: "the goal",
            unit: "clicks",
            bar: { atMost: 1 },
            note: `${fields} of them in fields; ${seconds.toFixed(1)} s`,
          },
        ),
      );
    }
    return results;
  } finally {
    await browser.close();
    await server.stop();
    work.remove();
  }
}
