import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { startServer, tenantKey } from "#test/support/process.ts";
import { subtitled } from "#test/support/subtitles.ts";
import {
  type AssetPages,
  eventually,
  playerOf,
  positionOf,
  seek,
  shownTexts,
  startAssetPages,
  toast,
  VTT,
} from "./asset-pages.ts";
import { button, faultsOf, gapsBetween, heading, signedIn } from "./console.ts";

let pages: AssetPages;
let assetId: number;
let api: AssetPages["api"];
beforeAll(async () => {
  pages = await startAssetPages();
  ({ assetId, api } = pages);
});
afterAll(() => pages?.close());

describe("subtitles", () => {
  beforeEach(async () => {
    for (const { id } of await api("GET", `${assetId}/subtitles`)) await api("DELETE", `${assetId}/subtitles/${id}`);
  });

  test("whose cues are left out are shown with the lines of the file, when they are uploaded and in the list", async () => {
    const seen = await pages.open({ tab: "subtitles" });
    const { page } = seen;
    await button(page, "Upload subtitles").click();
    const file = join(emptyFolder(), "en.vtt");
    writeFileSync(file, `${VTT}\n00:00:06.000 --> 00:00:06.000\nGone\n`);
    await page.getByLabel("WebVTT, SubRip or TTML file").setInputFiles(file);
    await page.getByLabel("Language", { exact: true }).last().fill("en");
    await page.getByLabel("Label").fill("English");
    await button(page, "Upload").click();
    const message = "1 cue was left out: 1 without duration (line 12).";
    await toast(page, `Saved. ${message}`);
    const row = page.locator(".rows li", { hasText: "English" });
    await row.getByText("Cues left out: 1", { exact: true }).waitFor();
    await row.getByText(message, { exact: true }).waitFor();
    expect(faultsOf(seen)).toEqual([]);
  });

  test("are uploaded, edited with a preview over the video, re-timed, saved and deleted", async () => {
    const seen = await pages.open({ tab: "subtitles" });
    const { page } = seen;
    await page.getByText("No subtitles yet.").waitFor();
    await button(page, "Upload subtitles").click();
    const file = join(emptyFolder(), "en.vtt");
    writeFileSync(file, VTT);
    await page.getByLabel("WebVTT, SubRip or TTML file").setInputFiles(file);
    await page.getByLabel("Language", { exact: true }).last().fill("english");
    await page.getByLabel("Label").fill("English");
    await button(page, "Upload").click();
    await page.getByRole("alert").getByText("language", { exact: false }).first().waitFor();
    await page.getByLabel("Language", { exact: true }).last().fill("en");
    await button(page, "Upload").click();
    const row = page.locator(".rows li", { hasText: "English" });
    await row.getByText("Ready", { exact: true }).waitFor();
    const [track] = await api("GET", `${assetId}/subtitles`);

    // The text is shown at its time before it is saved.
    await row.getByRole("button", { name: "Edit", exact: true }).click();
    const frame = await playerOf(page);
    await page.getByLabel("Text of cue 2").fill("Changed <b>text</b>");
    await eventually(() => shownTexts(frame)).toEqual(["Changed <b>text</b>"]);
    expect(await positionOf(frame)).toBeCloseTo(2.51, 1);
    expect((await api("GET", `${assetId}/subtitles/${track.id}`)).content).toBe(VTT);

    // Times, a new cue at the current time, and moving everything.
    await page.getByLabel("End of cue 2").fill("soon");
    await page.getByText("Write it as 00:00:01.000", { exact: false }).waitFor();
    await page.getByLabel("End of cue 2").fill("00:00:04.000");
    await seek(frame, 6);
    await button(page, "Add cue").click();
    await page.getByLabel("Text of cue 3").fill("Third\n\n--> one");
    await page.getByText("Re-time").click();
    await page.getByLabel("Shift (ms)").fill("100");
    await page.getByLabel("Stretch (factor)").fill("0.5");
    await button(page, "Apply").click();
    expect(await page.getByLabel("Start of cue 2").inputValue()).toBe("00:00:01.350");
    await button(page, "Remove cue 1").click();
    await button(page, "Save").click();
    await heading(page, "Edit English").waitFor({ state: "detached" });
    expect((await api("GET", `${assetId}/subtitles/${track.id}`)).content).toBe(
      "WEBVTT\n\nNOTE kept\n\n\n\n00:00:01.350 --> 00:00:02.100 line:0\nChanged <b>text</b>\n\n00:00:03.100 --> 00:00:04.100\nThird\n--&gt; one\n",
    );
    await row.getByRole("button", { name: "Make default", exact: true }).click();
    await row.getByText("Default", { exact: true }).waitFor();
    // The player has the new text.
    await eventually(async () => {
      const player = await playerOf(page);
      await seek(player, 1.5);
      return shownTexts(player);
    }).toEqual(["Changed <b>text</b>"]);
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      row.getByRole("button", { name: "Download", exact: true }).click(),
    ]);
    expect(saved.suggestedFilename()).toBe("Holiday film.en.vtt");
    expect(readFileSync(await saved.path(), "utf8")).toContain("Changed <b>text</b>");

    await row.getByRole("button", { name: "Delete", exact: true }).click();
    await button(page, "Confirm").click();
    await page.getByText("No subtitles yet.").waitFor();
    expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
  });

  test("are edited as text, and what the API refuses is shown", async () => {
    const track = await subtitled(
      pages.platform,
      pages.platform.key,
      assetId,
      { language: "en", label: "English" },
      VTT,
    );
    const { page } = await pages.open({ tab: "subtitles" });
    await button(page, "Edit").click();
    await button(page, "As text").click();
    await page.getByLabel("WebVTT").fill("WEBVTT\n\n00:02.000 --> 00:01.000\nx\n");
    await page.getByText("Line 3: the cue must end after it starts").waitFor();
    await button(page, "Save").click();
    const alert = page.getByRole("alert");
    await alert.getByText("line 3: the cue must end after it starts", { exact: false }).waitFor();
    expect(await alert.textContent()).toMatch(/Request req_[\w-]+/);
    expect((await api("GET", `${assetId}/subtitles/${track.id}`)).content).toBe(VTT);
  });

  test("are split, merged, searched and played by the keyboard, and every step can be undone", async () => {
    const { platform } = pages;
    const track = await subtitled(platform, platform.key, assetId, { language: "en", label: "English" }, VTT);
    const seen = await pages.open({ tab: "subtitles" });
    const { page } = seen;
    await button(page, "Edit").click();
    const frame = await playerOf(page);
    const text = (number: number) => page.getByLabel(`Text of cue ${number}`);
    const texts = async () => Promise.all((await page.locator(".cues textarea").all()).map((one) => one.inputValue()));
    const both = ["Hello", "Second line\nof two"];
    await page.getByText("Split at the cursor", { exact: true }).waitFor();

    // From the keyboard alone: to the next cue, split at the cursor, undo, redo, merge.
    await text(1).focus();
    await page.keyboard.press("Alt+ArrowDown");
    await page.keyboard.press("Control+Home");
    for (const _ of "Second") await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Alt+Enter");
    await eventually(texts).toEqual(["Hello", "Second", "line\nof two"]);
    const [start, end] = await Promise.all([page.getByLabel("Start of cue 3"), page.getByLabel("End of cue 2")]);
    expect(await start.inputValue()).toBe(await end.inputValue());
    await page.keyboard.press("Control+z");
    await eventually(texts).toEqual(both);
    await page.keyboard.press("Control+Shift+Z");
    await eventually(texts).toHaveLength(3);
    await page.keyboard.press("Alt+ArrowUp");
    await text(2).focus();
    await page.keyboard.press("Alt+Shift+Enter");
    await eventually(texts).toEqual(["Hello", "Second\nline\nof two"]);

    // Typing is undone word by word.
    await text(1).focus();
    await page.keyboard.press("End");
    await page.keyboard.type(" big world");
    await eventually(texts).toContain("Hello big world");
    await page.keyboard.press("Control+z");
    await eventually(texts).toContain("Hello big");

    await page.keyboard.press("Control+f");
    await page.locator(".find-bar input:focus").waitFor();
    await page.keyboard.type("LINE");
    await page.getByRole("status").getByText("1 of 1").waitFor();
    await page.getByLabel("Replace with").fill("row");
    await button(page, "Replace all").click();
    await eventually(texts).toEqual(["Hello big", "Second\nrow\nof two"]);

    // The command of an open search selects its text; each Enter replaces the next match, and shows it.
    const find = page.getByLabel("Find", { exact: true });
    await text(2).focus();
    await page.keyboard.press("Control+f");
    await page.locator(".find-bar input:focus").waitFor();
    await page.keyboard.type("o");
    expect(await find.inputValue()).toBe("o");
    await page.getByLabel("Replace with").fill("oo");
    for (const after of ["Helloo", "Secoond"]) {
      await page.keyboard.press("Enter");
      await eventually(texts).toContainEqual(expect.stringContaining(after));
    }
    await eventually(texts).toEqual(["Helloo big", "Secoond\nrow\nof two"]);
    await page.getByRole("status").getByText("5 of 7").waitFor();
    await find.focus();
    await page.keyboard.press("Escape");
    await text(2).focus();
    await page.keyboard.press("Control+Enter");
    await eventually(() => positionOf(frame)).toBeGreaterThan(2.6);
    await page.keyboard.press("Control+Enter");
    await eventually(() => frame.evaluate("document.querySelector('svc-player').video.paused")).toBe(true);

    // Another tab of the page asks, and so does closing the editor.
    const asked = page.waitForEvent("dialog");
    const clicked = page.getByRole("tab", { name: "Overview" }).click();
    await (await asked).dismiss();
    await clicked;
    await button(page, "Close").click();
    await button(page, "Cancel").click();
    await text(2).focus();
    await page.keyboard.press("Control+s");
    await heading(page, "Edit English").waitFor({ state: "detached" });
    expect((await api("GET", `${assetId}/subtitles/${track.id}`)).content).toContain("line:0\nSecoond\nrow\nof two\n");
    expect(faultsOf(seen)).toEqual([]);
  });

  nightly("are translated and aligned", async () => {
    const words = (from: number) =>
      `WEBVTT\n${["apple orchard", "broken bicycle", "crimson curtain", "distant drummer"]
        .map((text, at) => `\n00:00:0${at + from}.000 --> 00:00:0${at + from}.500\n${text} ${text.length}\n`)
        .join("")}`;
    const late = await subtitled(
      pages.platform,
      pages.platform.key,
      assetId,
      { language: "en", label: "Late" },
      words(3),
    );
    await subtitled(pages.platform, pages.platform.key, assetId, { language: "en-GB", label: "Right" }, words(1));
    const { page } = await pages.open({ tab: "subtitles" });
    const row = page.locator(".rows li", { hasText: "Late" }).first();
    await row.getByRole("button", { name: "Align", exact: true }).click();
    await page.getByLabel("Reference").selectOption({ label: "Right (en-GB)" });
    await page.getByRole("dialog").getByRole("button", { name: "Align", exact: true }).click();
    await toast(page, "Aligned: 100 % of the cues match.");
    expect((await api("GET", `${assetId}/subtitles/${late.id}`)).content).toBe(words(1));

    await row.getByRole("button", { name: "Translate", exact: true }).click();
    await page.getByLabel("Target language").fill("de");
    await page.getByRole("dialog").getByRole("button", { name: "Translate", exact: true }).click();
    await page.locator(".rows li", { hasText: "Late (auto translated)" }).getByText("Translation").waitFor();
  });

  test("are generated from the speech and translated; the list shows their state and confidence", async () => {
    const seen = await pages.open({ tab: "subtitles" });
    const { page } = seen;
    await button(page, "Generate captions").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Translate to").fill("de");
    await dialog.getByRole("button", { name: "Generate captions" }).click();
    await toast(page, "Captions are being generated");
    const row = (label: string) => page.locator(".rows li", { hasText: label });
    await row("English").getByText("Ready", { exact: true }).waitFor();
    await row("English").getByText("confidence 90 %", { exact: false }).waitFor();
    await row("Deutsch (auto translated)").getByText("Ready", { exact: true }).waitFor();
    expect(
      (await api("GET", `${assetId}/subtitles?include=content`)).map((one: { content: string }) => one.content),
    ).toEqual([
      "WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nGood morning\n",
      "WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nGOOD MORNING\n",
    ]);
    expect(faultsOf(seen)).toEqual([]);
  });

  test("cannot be generated and translated without a service, and the page says so", async () => {
    const server = await startServer(join(emptyFolder(), "data"), { args: ["--workers", "0"] });
    const { base } = server;
    const token = await tenantKey(server, ["assets:read", "assets:write"]);
    const { asset } = await uploaded(server, token);
    await subtitled(server, token, asset.id, {}, VTT);
    const { page } = await signedIn(pages.browser, base, token);
    await page.goto(`${base}/console/assets/${asset.id}?tab=subtitles`);
    await page.getByText("this server has no translation service", { exact: false }).waitFor();
    expect(await button(page, "Translate").isDisabled()).toBe(true);
    await page.getByText("neither this server nor a worker can transcribe", { exact: false }).waitFor();
    expect(await button(page, "Generate captions").isDisabled()).toBe(true);
  });

  nightly("of thousands of cues are shown page by page", async () => {
    const time = (at: number) => new Date(at * 1000).toISOString().slice(11, 23);
    const long = `WEBVTT\n${Array.from({ length: 5000 }, (_, at) => `\n${time(at)} --> ${time(at + 1)}\ncue ${at}\n`).join("")}`;
    const track = await subtitled(pages.platform, pages.platform.key, assetId, { language: "en", label: "Long" }, long);
    const { page } = await pages.open({ tab: "subtitles" });
    await button(page, "Edit").click();
    await page.getByText("Cues 1 to 50 of 5000").waitFor();
    expect(await page.locator(".cues li").count()).toBe(50);
    await button(page, "Next").click();
    expect(await page.getByLabel("Text of cue 51").inputValue()).toBe("cue 50");
    await page.getByLabel("Text of cue 51").fill("new");
    await button(page, "Save").click();
    await toast(page, "Saved");
    expect((await api("GET", `${assetId}/subtitles/${track.id}`)).content).toBe(long.replace("\ncue 50\n", "\nnew\n"));
  });
});

test("chapters are added at the current time, named, moved by pointer and keys, and deleted", async () => {
  const seen = await pages.open({ tab: "chapters" });
  const { page } = seen;
  await page.getByText("No chapters or other tracks yet.").waitFor();
  await seek(await playerOf(page), 2);
  await button(page, "Add chapter").click();
  const lane = page.getByRole("region", { name: "chapter default" });
  await lane.getByRole("button", { name: /^New chapter/ }).waitFor();
  const [{ id, cues }] = await api("GET", `${assetId}/tracks`);
  expect(cues).toEqual([{ start_ms: 2000, payload: { title: "New chapter" } }]);

  // A click shows the chapter in the player.
  await seek(await playerOf(page), 7);
  await lane.getByRole("button", { name: /^New chapter/ }).click();
  const frame = await playerOf(page);
  await eventually(() => positionOf(frame)).toBeCloseTo(2, 1);
  await page.getByLabel("Title", { exact: true }).fill("Arrival");
  const start = page.getByRole("slider", { name: "Start of Arrival" });
  await start.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowLeft");
  expect(await page.getByLabel("Start (s)").inputValue()).toBe("1.1");
  // The strip is as long as the video, 8 s: a quarter of it is 2 s.
  const strip = await lane.locator(".lane-strip").boundingBox();
  const handle = await page.getByRole("slider", { name: "End of Arrival" }).boundingBox();
  if (!strip || !handle) throw new Error("The timeline is not visible.");
  await page.mouse.move(handle.x + handle.width / 2, handle.y + handle.height / 2);
  await page.mouse.down();
  await page.mouse.move(strip.x + strip.width / 2, handle.y + 5, { steps: 5 });
  await page.mouse.up();
  const end = Number(await page.getByLabel("End (s)").inputValue());
  expect(end).toBeGreaterThan(3.8);
  expect(end).toBeLessThan(4.2);
  await seek(frame, 5);
  await lane.getByRole("button", { name: "Add chapter", exact: true }).click();
  await page.getByLabel("Title", { exact: true }).fill("On the beach");
  await lane.getByRole("button", { name: "Save", exact: true }).click();
  await lane.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "detached" });
  expect((await api("GET", `${assetId}/tracks/${id}`)).cues).toEqual([
    { start_ms: 1100, end_ms: Math.round(end * 1000), payload: { title: "Arrival" } },
    { start_ms: expect.any(Number), payload: { title: "On the beach" } },
  ]);
  // The player has the chapters, too.
  await eventually(async () =>
    (await playerOf(page)).evaluate(
      "[...document.querySelector('svc-player').video.textTracks].flatMap((track) => track.kind === 'chapters' ? [...track.cues].map((cue) => cue.text) : [])",
    ),
  ).toEqual(["Arrival", "On the beach"]);

  await page.getByLabel("Zoom").selectOption("4");
  await lane.getByRole("button", { name: /^On the beach/ }).click();
  await button(page, "Remove").click();
  await lane.getByRole("button", { name: "Discard", exact: true }).click();
  await lane.getByRole("button", { name: /^On the beach/ }).waitFor();

  // Any other kind, with any data.
  await button(page, "New track").click();
  await page.getByLabel("Kind").fill("Not valid");
  await button(page, "Create").click();
  await page.getByRole("alert").getByText("kind: must be 1 to 40 characters", { exact: false }).waitFor();
  await page.getByLabel("Kind").fill("marker");
  await button(page, "Create").click();
  const markers = page.getByRole("region", { name: "marker default" });
  await markers.getByRole("button", { name: "Add", exact: true }).click();
  await markers.getByText("Data (JSON)").click();
  await page.getByRole("textbox", { name: "Data (JSON)" }).fill("[]");
  await page.getByText("This is not a JSON object.").waitFor();
  await page.getByRole("textbox", { name: "Data (JSON)" }).fill('{"title": "Goal", "team": 1}');
  await markers.getByRole("button", { name: "Save", exact: true }).click();
  await markers.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "detached" });
  const marker = (await api("GET", `${assetId}/tracks?kind=marker`))[0];
  expect(marker.cues[0].payload).toEqual({ title: "Goal", team: 1 });

  await markers.getByRole("button", { name: "Delete track", exact: true }).click();
  await button(page, "Confirm").click();
  await markers.waitFor({ state: "detached" });
  // A track of another client appears by itself.
  await api("PUT", `${assetId}/tracks`, { kind: "scene", cues: [] });
  await page.getByRole("region", { name: "scene default" }).waitFor();
  for (const track of await api("GET", `${assetId}/tracks`)) await api("DELETE", `${assetId}/tracks/${track.id}`);
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

nightly("many events at once cause few requests", async () => {
  const seen = await pages.open({ tab: "chapters" });
  await seen.page.getByText("No chapters or other tracks yet.").waitFor();
  const names = Array.from({ length: 50 }, (_, at) => `n${at}`);
  await Promise.all(names.map((name) => api("PUT", `${assetId}/tracks`, { kind: "scene", name, cues: [] })));
  await api("PUT", `${assetId}/tracks`, { kind: "scene", name: "last", cues: [] });
  await seen.page.getByRole("region", { name: "scene last" }).waitFor();
  // The asset and its tracks: at the first event, which may follow the page's own requests, and once a second after that.
  for (const path of [`/api/v1/assets/${assetId}`, `/api/v1/assets/${assetId}/tracks`]) {
    const gaps = await gapsBetween(seen.page, path);
    expect(gaps.length, path).toBeGreaterThan(0);
    expect(
      gaps.slice(1).filter((ms) => ms < 500),
      path,
    ).toEqual([]);
  }
  for (const { id } of await api("GET", `${assetId}/tracks`)) await api("DELETE", `${assetId}/tracks/${id}`);
});
