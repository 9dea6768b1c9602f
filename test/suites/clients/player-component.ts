import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { untilPlayed, untilVideo, videoIn } from "#test/support/browser/browser.ts";
import { attributesOf, eventsOf, type PlayerScene, setProps } from "#test/support/client-player.ts";

type Opened = {
  page: Page;
  faults: string[];
  /** What the framework complains about. */
  warnings(): Promise<string[]>;
  close(): void;
};
type Component = {
  scene(): PlayerScene;
  /** A page on another origin with the player, rendered there or at a server. */
  open(props: Record<string, unknown>, isRendered?: boolean): Promise<Opened>;
};

/** What the component of each framework does with the same properties. */
export function describeComponent({ scene, open }: Component): void {
  test("plays a signed video, reports its events, and follows its properties", async () => {
    const first = await scene().token();
    const { page, faults, warnings, close } = await open({ token: first, autoplay: true, loop: true, startTime: 1 });
    await untilPlayed(page, 2);
    expect(await videoIn(page)).toMatchObject({ muted: true, paused: false, videoWidth: expect.any(Number) });
    expect(await attributesOf(page)).toMatchObject({
      "playback-id": scene().asset.external_id,
      token: first,
      autoplay: "",
      loop: "",
      "start-time": "1",
      id: "film",
      class: "wide",
      style: "width: 640px;",
    });
    const { names, playing } = await page.evaluate(() => {
      const { program, dispatched } = globalThis as any;
      return { names: program.events.map(([name]: [string]) => name) as string[], playing: dispatched as number };
    });
    expect(new Set(names)).toEqual(new Set(["loadedmetadata", "playing", "timeupdate"]));
    // Each event once, also under StrictMode. A stall may make a video report "playing" again, never "loadedmetadata".
    expect(names.filter((name) => name === "loadedmetadata")).toHaveLength(1);
    expect(names.filter((name) => name === "playing")).toHaveLength(playing);
    const isElement = await page.evaluate(() => {
      const { controls } = (globalThis as any).program;
      return controls.player === (globalThis as any).document.querySelector("svc-player") && !controls.player.paused;
    });
    expect(isElement).toBe(true);
    await setProps(page, { token: await scene().token(), loop: false, videoTitle: "Clip" });
    const after = await attributesOf(page);
    expect([after.loop, after["video-title"], after.token === first]).toEqual([undefined, "Clip", false]);
    await untilVideo(page, "currentTime", 3);
    // Muted by its property, not by an attribute that has no effect.
    await setProps(page, { muted: true });
    await setProps(page, { muted: false });
    await expect.poll(async () => (await videoIn(page))?.muted).toBe(false);
    await setProps(page, null);
    expect(await page.evaluate(() => (globalThis as any).program.controls.player)).toBe(null);
    expect(await page.locator("svc-player").count()).toBe(0);
    expect([faults, await warnings()]).toEqual([[], []]);
    close();
  });

  test("reports a token that has expired, and plays with a new one", async () => {
    const { page, close } = await open({ token: await scene().expired(), autoplay: true });
    await expect
      .poll(() => eventsOf(page), { timeout: 30_000 })
      .toContainEqual(["error", expect.stringMatching(/^playback_token/)]);
    await setProps(page, { token: await scene().token() });
    await untilPlayed(page, 1);
    // A channel instead of the asset: here one that does not exist.
    await setProps(page, { playbackId: undefined, live: "nothing" });
    await expect.poll(() => eventsOf(page)).toContainEqual(["error", "not_found"]);
    expect(Object.keys(await attributesOf(page))).not.toContain("playback-id");
    close();
  });

  test("is rendered at a server, and continues in the page", async () => {
    const props = { token: await scene().token(), muted: true, preload: "none", lang: "de" };
    const { page, faults, warnings, close } = await open(props, true);
    await expect
      .poll(() => page.evaluate(() => (globalThis as any).program.controls.player?.localName))
      .toBe("svc-player");
    expect(await page.locator("svc-player").count()).toBe(1);
    expect(await attributesOf(page)).toMatchObject({
      muted: "",
      preload: "none",
      lang: "de",
      "playback-id": scene().asset.external_id,
    });
    await page.waitForFunction(() => (globalThis as any).customElements.get("svc-player"));
    await page.evaluate(() => (globalThis as any).program.controls.player.play());
    await untilPlayed(page, 1);
    expect((await eventsOf(page)).map(([name]) => name)).toContain("playing");
    expect([faults, await warnings()]).toEqual([[], []]);
    close();
  });
}
