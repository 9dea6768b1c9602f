import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { imagesFolder } from "#features/assets/images-folder.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { sample } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { colouredFilm, delivered } from "#test/support/films.ts";
import { newFolder } from "#test/support/folder.ts";

let app: TestApp;
let folder: string;
/** One ready asset of each of three tenants. */
let ids: [hostile: number, other: number, third: number];

beforeAll(async () => {
  folder = newFolder();
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60", data_dir: folder });
  const files = await colouredFilm();
  const made: number[] = [];
  for (const slug of ["hostile", "other", "third"]) {
    const { id } = await app.tenant({ slug });
    const key = await app.key(id);
    const { ours } = await delivered(app, key, { files, assets: { ours: {} } });
    made.push(ours.id);
  }
  ids = made as typeof ids;
});
afterAll(() => app.close());

async function get(id: number, file: string, signal?: AbortSignal): Promise<number> {
  const request = new Request(`http://vodbox.test/media/${id}/${file}`, signal ? { signal } : {});
  const response = await app.opened.server.fetch(request);
  await response.arrayBuffer();
  return response.status;
}
const animation = (n: number) => `animated.gif?start=0&end=4&fps=30&width=${400 - 2 * n}`;
const still = (n: number) => `thumbnail.jpg?time=${n / 10}&width=${200 + 2 * n}`;

const ATTACKS: Record<string, (n: number) => string> = {
  animations: animation,
  "animations of a second format": (n) => animation(n).replace("gif", "webp"),
  stills: (n) => still(n % 30).concat(`&height=${100 + n}`),
};

describe("images of one tenant", () => {
  test.each(sample(Object.entries(ATTACKS), 1))(
    "%s: do not occupy the slots of another tenant's stills",
    async (name, path) => {
      let ended = 0;
      const attack = Array.from({ length: 16 }, (_, n) =>
        get(ids[0], path(n + 40)).then((status) => {
          ended++;
          return status;
        }),
      );
      for (let n = 0; n < 4; n++)
        expect(await get(ids[1], `${still(n + name.length)}&fit_mode=pad&height=90`)).toBe(200);
      // Two run, and each of the others begins after the end of one of them.
      expect(ended).toBeLessThanOrEqual(8);
      expect(new Set(await Promise.all(attack))).toEqual(new Set([200]));
    },
  );

  test("animations: another tenant's animation is the next one", async () => {
    const order: string[] = [];
    const attack = Array.from({ length: 6 }, (_, n) =>
      get(ids[0], animation(n + 80)).then(() => order.push("hostile")),
    );
    // A quarter as long, so that it ends first when it begins next.
    await get(ids[1], animation(0).replace("end=4", "end=1")).then(() => order.push("other"));
    expect(order.length).toBeLessThanOrEqual(3);
    await Promise.all(attack);
  });
});

describe("an animation whose clients have left", () => {
  const pids = () => {
    const at = join(folder, "pictures/pids");
    return existsSync(at) ? readdirSync(at).length : 0;
  };
  const stored = async () => {
    const asset = await app.opened.app.db.select().from(assets).where(eq(assets.id, ids[2])).get();
    const found = await app.opened.app.objects?.list(imagesFolder(asset as AssetRow), { limit: 1000 });
    return found?.objects.length as number;
  };
  test("is ended, and not stored", async () => {
    const before = await stored();
    const leaving = new AbortController();
    const first = get(ids[2], animation(1), leaving.signal).catch(() => 0);
    await until("it runs", () => pids() > 0);
    leaving.abort();
    await first;
    await until("it has ended", () => pids() === 0);
    expect(await stored()).toBe(before);
  });

  test("continues while another client waits for it", async () => {
    const before = await stored();
    const leaving = new AbortController();
    const first = get(ids[2], animation(2), leaving.signal).catch(() => 0);
    const second = get(ids[2], animation(2));
    await until("it runs", () => pids() > 0);
    leaving.abort();
    await first;
    expect(await second).toBe(200);
    expect(await stored()).toBe(before + 1);
  });
});
