import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedBrowser, type Visit, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { axeFaults } from "./axe.ts";
import { ask, customersPage, until } from "./element.ts";

/** What the player does for a viewer beyond playing: keys of the page, chapters, and what it remembers in the browser. */

const CHAPTERS = ["Opening", "<b>Middle</b> & more", "End"];
const CHAPTER_SECONDS = 3;
/** The clip has 8 seconds. */
const SECONDS = 8;

/** What is said; the second line is in two rows, with markup. */
const LINES = `WEBVTT

00:01.000 --> 00:02.500
Good morning

00:03.000 --> 00:05.000
<v Ann>Fish &amp; <b>chips</b>
for two

00:06.000 --> 00:07.000
Goodbye
`;
const SPOKEN = ["Good morning", "Fish & chips for two", "Goodbye"];

let platform: Platform;
let browser: Browser;
let film: any;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  const { key, as, clip: bytes } = platform;
  film = (await uploaded(platform, key, { bytes, playback_policy: "public", title: "A walk" })).asset;
  await untilReady(platform, film.id);
  const cue = "WEBVTT\n\n00:00.000 --> 00:08.000\nHello\n";
  await subtitled(platform, key, film.id, { language: "en", label: "English" }, cue);
  await subtitled(platform, key, film.id, { language: "de", label: "Deutsch" }, LINES);
  const cues = CHAPTERS.map((title, index) => ({ start_ms: index * CHAPTER_SECONDS * 1000, payload: { title } }));
  const body = { kind: "chapter", name: "c", cues };
  expect((await as(key).setTrack(film.id, body)).status).toBe(201);
});
afterAll(async () => {
  await platform?.close();
});

const watchUrl = (query = "") => `${platform.base}/watch/${film.external_id}${query}`;
const element = (attributes = "") =>
  `<script src="${platform.base}/svc-player.js"></script><svc-player playback-id="${film.external_id}" ${attributes}></svc-player>`;
/** Once its metadata are there: seeking needs the duration. */
async function opened(address: string): Promise<Visit> {
  const seen = await visit(browser, address);
  await until(seen, "return player.readyState >= 2");
  return seen;
}
async function reload(seen: Visit): Promise<void> {
  await seen.page.reload();
  await until(seen, "return player.readyState >= 2");
}
const stored = ({ page }: Visit) => page.evaluate(`JSON.parse(localStorage.getItem("svc-player"))`) as Promise<any>;

describe("keys of the page", () => {
  const seeks: [key: string, from: number, to: number][] = [
    ["5", 0, SECONDS / 2],
    ["9", 0, SECONDS * 0.9],
    ["0", 5, 0],
    ["j", 7.5, 0],
    ["ArrowLeft", 7.5, 0],
    ["l", 0, SECONDS],
    ["ArrowRight", 0, SECONDS],
  ];
  test("work on the watch page without a click", async () => {
    const seen = await opened(watchUrl());
    const { keyboard } = seen.page;
    await keyboard.press("k");
    await until(seen, "return !player.paused");
    await keyboard.press("Space");
    await until(seen, "return player.paused");
    for (const [key, from, to] of seeks) {
      await ask(seen, `player.currentTime = ${from}`);
      await until(seen, `return !player.video.seeking && Math.abs(player.currentTime - ${from}) < 0.2`);
      await keyboard.press(key);
      await until(seen, `return Math.abs(player.currentTime - ${to}) < 0.3`);
    }
    await keyboard.press("m");
    await until(seen, "return player.muted");
    await keyboard.press("c");
    await until(seen, `return [...player.textTracks].some(({ mode }) => mode === "showing")`);
    await keyboard.press("f");
    // The button follows the document a frame later, and decides what the key does next.
    const button = `player.shadowRoot.querySelector("media-fullscreen-button")`;
    await until(seen, `return document.fullscreenElement === player && ${button}.hasAttribute("mediaisfullscreen")`);
    await keyboard.press("f");
    await until(seen, "return !document.fullscreenElement");
    expect(seen.faults).toEqual([]);
  });

  test("change the volume when nothing can be scrolled, and scroll otherwise", async () => {
    const seen = await opened(await customersPage(element("page-keys style='width:20rem'")));
    await seen.page.keyboard.press("ArrowDown");
    await until(seen, "return player.volume < 1");
    const volume = await ask<number>(seen, `document.body.style.height = "300vh"; return player.volume`);
    await seen.page.keyboard.press("ArrowDown");
    await until(seen, "return scrollY > 0");
    expect(await ask(seen, "return player.volume")).toBe(volume);
  });

  test("belong to a field that has the focus, to the browser with a modifier, and to pages that do not ask for them", async () => {
    const field = `<label>Search <input></label><button id="other" onclick="this.title = 'pressed'">Other</button>`;
    const asking = await opened(await customersPage(`${field}${element("page-keys")}`));
    await asking.page.getByLabel("Search").focus();
    await asking.page.keyboard.type("m5 k");
    expect(await asking.page.getByLabel("Search").inputValue()).toBe("m5 k");
    await asking.page.locator("#other").focus();
    await asking.page.keyboard.press("Space");
    await until(asking, `return document.querySelector("#other").title === "pressed"`);
    await asking.page.locator("h1").click();
    await asking.page.keyboard.press("Alt+m");
    expect(await ask(asking, "return [player.paused, player.muted, player.currentTime]")).toEqual([true, false, 0]);
    const other = await opened(await customersPage(element()));
    await other.page.keyboard.press("m");
    await other.page.keyboard.press("5");
    expect(await ask(other, "return [player.muted, player.currentTime]")).toEqual([false, 0]);
  });
});

describe("chapters", () => {
  test("are a menu with times, which seeks and shows the current one, and marks on the timeline", async () => {
    const seen = await opened(await customersPage(element()));
    const { page } = seen;
    await page.getByRole("button", { name: "Chapters" }).click();
    const items = page.getByRole("menuitemradio");
    expect(await items.allTextContents()).toEqual(["0:00Opening", "0:03<b>Middle</b> & more", "0:06End"]);
    expect(await axeFaults(page)).toEqual([]);
    await items.nth(1).click();
    await until(seen, "return Math.abs(player.currentTime - 3) < 0.2");
    await page.getByRole("button", { name: "Chapters" }).click();
    await expect.poll(() => items.nth(1).getAttribute("aria-checked")).toBe("true");
    expect(await items.nth(0).getAttribute("aria-checked")).toBe("false");
    const marks = `player.shadowRoot.querySelector("media-time-range").mediaChaptersCues.map(({ startTime }) => startTime)`;
    expect(await ask(seen, `return ${marks}`)).toEqual([0, 3, 6]);
    expect(seen.faults).toEqual([]);
  });

  nightly("are chosen with the keyboard", async () => {
    const seen = await opened(watchUrl());
    await seen.page.locator("svc-player svc-chapter-menu-button").focus();
    await seen.page.keyboard.press("Enter");
    await until(seen, `return player.shadowRoot.activeElement?.matches("svc-chapter-menu > *")`);
    await seen.page.keyboard.press("End");
    await seen.page.keyboard.press("Enter");
    await until(seen, "return Math.abs(player.currentTime - 6) < 0.2");
  });
});

describe("the transcript", () => {
  const lines = ({ page }: Visit) => page.getByRole("region", { name: "Transcript" }).locator("li button");
  const current = async (seen: Visit) =>
    (
      await lines(seen).evaluateAll((all) =>
        all.map((one) => [one.getAttribute("aria-current"), one.querySelector("bdi")?.textContent]),
      )
    ).filter(([mark]) => mark !== null);

  test("on the watch page follows playback, seeks, and changes its language", async () => {
    const seen = await opened(watchUrl());
    const { page } = seen;
    await expect.poll(() => lines(seen).locator("bdi").allTextContents()).toEqual(SPOKEN);
    expect(await lines(seen).locator("time").allTextContents()).toEqual(["0:01", "0:03", "0:06"]);
    expect(await current(seen)).toEqual([]);
    for (const [seconds, index] of [
      [1.2, 0],
      [3.5, 1],
      [5.5, 1],
      [6.5, 2],
      [0.5, -1],
    ] as const) {
      await ask(seen, `player.currentTime = ${seconds}`);
      await expect.poll(() => current(seen)).toEqual(index < 0 ? [] : [["true", SPOKEN[index]]]);
    }
    await lines(seen).nth(2).click();
    await until(seen, "return Math.abs(player.currentTime - 6) < 0.1");
    await expect.poll(() => current(seen)).toEqual([["true", "Goodbye"]]);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await until(seen, "return Math.abs(player.currentTime - 3) < 0.1");
    await page.getByLabel("Language").selectOption("English");
    await expect.poll(() => lines(seen).locator("bdi").allTextContents()).toEqual(["Hello"]);
    expect(seen.faults).toEqual([]);
    // Last, because axe adds styles, which the page's policy refuses.
    expect(await axeFaults(page)).toEqual([]);
  });

  test("is copied with its times, and downloaded as text, WebVTT and SubRip", async () => {
    const seen = await opened(watchUrl());
    const { page } = seen;
    await lines(seen).first().waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy with times" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      "0:01 Good morning\n0:03 Fish & chips for two\n0:06 Goodbye\n",
    );
    const files = {
      TXT: "Good morning Fish & chips for two Goodbye\n",
      VTT: "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nGood morning\n\n00:00:03.000 --> 00:00:05.000\nFish &amp; chips for two\n\n00:00:06.000 --> 00:00:07.000\nGoodbye\n",
      SRT: "1\n00:00:01,000 --> 00:00:02,500\nGood morning\n\n2\n00:00:03,000 --> 00:00:05,000\nFish & chips for two\n\n3\n00:00:06,000 --> 00:00:07,000\nGoodbye\n",
    };
    for (const [format, text] of Object.entries(files)) {
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: `Download as ${format}` }).click();
      const download = await saved;
      expect(download.suggestedFilename()).toBe(`A walk.de.${format.toLowerCase()}`);
      expect(readFileSync(await download.path(), "utf8")).toBe(text);
    }
  });

  nightly(
    "is below the video of another page that asks for it, in its language, and follows the attribute",
    async () => {
      const seen = await opened(await customersPage(element(`transcript lang="de"`)));
      await expect.poll(() => lines(seen).count()).toBe(0);
      const panel = seen.page.getByRole("region", { name: "Transkript" });
      await panel.getByText("Fish & chips for two").waitFor();
      const shape = "const { width, height } = player.video.getBoundingClientRect(); return width / height";
      expect(await ask<number>(seen, shape)).toBeCloseTo(16 / 9, 1);
      expect(await axeFaults(seen.page)).toEqual([]);
      await ask(seen, `player.removeAttribute("transcript")`);
      await panel.waitFor({ state: "detached" });
      await ask(seen, `player.setAttribute("transcript", "")`);
      await panel.getByText("Goodbye").waitFor();
      await ask(seen, `player.removeAttribute("playback-id"); player.setAttribute("playback-id", "vid_0")`);
      await expect.poll(() => panel.count()).toBe(0);
      const plain = await opened(await customersPage(element()));
      expect(await plain.page.locator("svc-transcript").count()).toBe(0);
      expect(seen.faults.filter((fault) => !fault.includes("404"))).toEqual([]);
    },
  );

  test("is in the page itself for those who read a public video's without scripts", async () => {
    const text = async () => {
      await platform.as(platform.key).searchAssets({ q: "fish" });
      return await (await fetch(watchUrl())).text();
    };
    await expect.poll(text).toContain('<p lang="de" dir="auto">Good morning Fish &amp; chips for two Goodbye</p>');
    expect(await (await fetch(`${platform.base}/embed/${film.external_id}`)).text()).not.toContain("Good morning");
    const { as, key } = platform;
    const shared = await as(key).createShare(film.id, {});
    const page = await (await fetch(shared.body.url)).text();
    expect(page).toContain('transcript="transcript"');
    expect(page).not.toContain("Good morning");
  });
});

describe("where a viewer left", () => {
  const playTo = async (seen: Visit, seconds: number) => {
    await ask(seen, `player.muted = true; player.currentTime = ${seconds}; return player.play()`);
    await until(seen, `return player.currentTime > ${seconds + 0.1}`);
    await ask(seen, "player.pause()");
  };

  test("is where the video begins in the same browser", async () => {
    const seen = await opened(watchUrl());
    await playTo(seen, 4);
    await reload(seen);
    await until(seen, "return player.currentTime > 4 && player.currentTime < 5 && player.paused");
    const start = await opened(watchUrl());
    expect(await ask(start, "return player.currentTime")).toBe(0);
  });

  test("is saved when the page is closed while the video plays", async () => {
    const seen = await opened(watchUrl());
    await ask(seen, "player.muted = true; player.currentTime = 4; return player.play()");
    await until(seen, "return player.currentTime > 4.1");
    await reload(seen);
    await until(seen, "return player.currentTime > 4");
  });

  nightly("is not used where the page says another start, or that it must not be", async () => {
    const seen = await opened(watchUrl());
    await playTo(seen, 4);
    await seen.page.goto(watchUrl("?start_time=1"));
    await until(seen, "return player.readyState >= 2 && Math.abs(player.currentTime - 1) < 0.2");
    const site = await customersPage(element(`resume="off"`));
    const off = await opened(site);
    await playTo(off, 4);
    await reload(off);
    expect(await ask(off, "return player.currentTime")).toBe(0);
    expect((await stored(off))?.positions ?? []).toEqual([]);
  });

  test("is forgotten at the end, where the video is offered again", async () => {
    const seen = await opened(watchUrl());
    await playTo(seen, 4);
    expect((await stored(seen)).positions).toEqual([[String(film.external_id), expect.any(Number)]]);
    await ask(seen, "player.currentTime = 7; return player.play()");
    await until(seen, "return player.ended");
    await seen.page.getByRole("button", { name: "Watch again" }).click();
    await until(seen, "return !player.ended && player.currentTime < 3");
    await ask(seen, "player.pause(); player.currentTime = 0");
    await expect.poll(async () => (await stored(seen)).positions).toEqual([]);
  });

  nightly("is kept for 200 videos, the last ones watched, next to what others have written", async () => {
    const seen = await opened(watchUrl());
    const positions = Array.from({ length: 300 }, (_, index) => [`vid_${index}`, index + 3]);
    const value = JSON.stringify({ volume: "loud", rate: -1, captions: 7, positions: [...positions, [5, "x"], null] });
    await seen.page.evaluate(`localStorage.setItem("svc-player", ${JSON.stringify(value)})`);
    await playTo(seen, 4);
    const after = await stored(seen);
    expect(after.positions).toHaveLength(200);
    expect(after.positions.at(-1)[0]).toBe(film.external_id);
    expect(after).not.toHaveProperty("rate");
    await seen.page.evaluate(`localStorage.setItem("svc-player", "{")`);
    await reload(seen);
    await playTo(seen, 4);
    expect((await stored(seen)).positions).toHaveLength(1);
    expect(seen.faults).toEqual([]);
  });
});

describe("choices of a viewer", () => {
  test("are the same for the next video: volume, speed and language of captions", async () => {
    const seen = await opened(watchUrl());
    const { page } = seen;
    await page.locator("svc-player media-volume-range").click({ position: { x: 30, y: 12 } });
    await until(seen, "return player.volume < 0.9");
    await page.locator("svc-player media-playback-rate-menu-button").click();
    await page.getByRole("menuitemradio", { name: "1.5x" }).click();
    await page.locator("svc-player media-captions-menu-button").click();
    await page.getByRole("menuitemradio", { name: "Deutsch" }).click();
    await until(
      seen,
      `return [...player.textTracks].some(({ mode, language }) => mode === "showing" && language === "de")`,
    );
    const volume = await ask<number>(seen, "return player.volume");
    await expect.poll(() => stored(seen)).toMatchObject({ volume, rate: 1.5, captions: "de" });
    await reload(seen);
    const shown = `[...player.textTracks].filter(({ kind, mode }) => kind === "subtitles" && mode === "showing").map(({ language }) => language)`;
    await until(seen, `return player.playbackRate === 1.5 && player.volume === ${volume}`);
    await until(seen, `return ${shown}.join() === "de"`);
    await page.keyboard.press("c");
    await expect.poll(async () => (await stored(seen)).captions).toBeNull();
    await reload(seen);
    expect(await ask(seen, `return ${shown}`)).toEqual([]);
  });

  nightly("are not what the page's scripts set, and do not unmute a player that must be silent", async () => {
    const site = await customersPage(element("muted"));
    const seen = await opened(site);
    await ask(seen, "player.volume = 0.2; player.playbackRate = 2");
    // The menu of speeds shows it, and asks the player for it.
    await seen.page
      .locator("svc-player media-playback-rate-menu [aria-checked=true][value='2']")
      .waitFor({ state: "attached" });
    expect((await stored(seen)) ?? {}).not.toHaveProperty("rate");
    await seen.page.evaluate(`localStorage.setItem("svc-player", '{"isMuted":false,"positions":[]}')`);
    await reload(seen);
    expect(await ask(seen, "return [player.volume, player.playbackRate, player.muted]")).toEqual([1, 1, true]);
  });
});

test("the system shows the title, and controls the video", async () => {
  const seen = await opened(watchUrl());
  await ask(seen, "player.muted = true; return player.play()");
  await expect.poll(() => seen.page.evaluate("navigator.mediaSession.metadata?.title")).toBe("A walk");
  const artwork = (await seen.page.evaluate("navigator.mediaSession.metadata.artwork[0].src")) as string;
  expect((await fetch(artwork)).headers.get("content-type")).toMatch(/^image\//);
  await ask(seen, "player.remove()");
  await expect.poll(() => seen.page.evaluate("navigator.mediaSession.metadata")).toBeNull();
});
