import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { readXml } from "#src/lib/xml/index.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { film, filmAsset } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";

const EVIL = `</script><script>evil()</script>"'><img src=x onerror=evil()>`;
let app: TestApp;
let tenant: { id: number };
let key: string;
let collection: any;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "1000/60" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  collection = await madeCollection("Talks & <films>", "talks");
});
const madeCollection = async (name: string, slug: string) => {
  const body = { tenant_id: tenant.id, collection: { name, slug } };
  return (await app.as(key).createCollection(body)).body;
};
const patch = async (body: unknown, id = collection.id) => {
  const answer = await app.as(key).unchecked.updateCollection(id, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const publish = (id = collection.id) => patch({ is_public: true }, id);
const video = async (title: string, fields: Record<string, unknown> = {}) =>
  (await readyAsset(app, key, { title, collection_id: collection.id, playback_policy: "public", ...fields })).asset;
const open = (url: unknown, language = "en") =>
  app.call("GET", String(url), { headers: { "accept-language": language } });
const titlesOf = ({ text }: { text: string }) =>
  [...text.matchAll(/<strong dir="auto">([^<]*)</g)].map(([, one]) => one);

describe("a collection", () => {
  test("is published with the wrapper and without, under a URL that stays the same, and withdrawn at once", async () => {
    expect(collection).toMatchObject({ is_public: false, public_url: null, embed_url: null, feed_url: null });
    const first = await publish();
    expect(first.public_url).toMatch(/\/c\/[A-Za-z0-9]{22}$/);
    expect(first.feed_url).toBe(`${first.public_url}/feed.xml`);
    const all = [first.public_url, first.feed_url, first.embed_url];
    for (const url of all) expect((await open(url)).status).toBe(200);
    const withdrawn = await patch({ collection: { is_public: false, name: "Other" } });
    expect(withdrawn).toMatchObject({ name: "Other", is_public: false, public_url: null });
    for (const url of all) expect([url, (await open(url)).status]).toEqual([url, 410]);
    expectError(await open(first.feed_url), 410, "collection_withdrawn");
    expect((await open(`/oembed?url=${encodeURIComponent(first.public_url)}`)).status).toBe(410);
    expect((await patch({ collection: { is_public: true } })).public_url).toBe(first.public_url);
    await app.as(key).deleteCollection(collection.id);
    for (const url of all) expect([url, (await open(url)).status]).toEqual([url, 404]);
  });

  test.each([
    [{}, "parameter_missing"],
    [{ collection: [] }, "parameter_missing"],
    [{ collection: 5, is_public: true }, "parameter_missing"],
    [{ is_public: "yes" }, "validation_failed"],
    [{ collection: { is_public: null } }, "validation_failed"],
  ])("is not changed by %j", async (body, code) => {
    expectError(await app.as(key).unchecked.updateCollection(collection.id, body), 422, code);
  });

  test("is not another tenant's to publish, and an unknown or hostile code is 404", async () => {
    const other = await app.key((await app.tenant({ slug: "other" })).id);
    expectError(await app.as(other).unchecked.updateCollection(collection.id, { is_public: true }), 404, "not_found");
    for (const code of ["x", "A".repeat(22), "A".repeat(4000), "%00"])
      for (const url of [`/c/${code}`, `/embed/c/${code}`, `/c/${code}/feed.xml`])
        expect([url.slice(0, 20), (await open(url)).status]).toEqual([url.slice(0, 20), 404]);
  });
});

describe("the page of a collection", () => {
  test("shows what everybody may see of it, and nothing else", async () => {
    const { public_url, embed_url, feed_url } = await publish();
    expect((await open(public_url)).text).toContain("There are no videos here yet.");
    expect((await open(embed_url)).text).toContain("There are no videos here yet.");
    const shown = await video("Shown", { description: "A needle" });
    await video("Signed", { playback_policy: "signed" });
    const elsewhere = await madeCollection("Other", "other");
    await video("Elsewhere", { collection_id: elsewhere.id });
    await uploaded(app, key, { title: "Draft", collection_id: collection.id, playback_policy: "public" });
    for (const url of [public_url, embed_url]) expect(titlesOf(await open(url))).toEqual(["Shown"]);
    const { text } = await open(public_url);
    expect(text).toContain(`href="/watch/${shown.external_id}"`);
    expect(text).toContain("1 video<");
    expect((await open(feed_url)).text).not.toMatch(/Signed|Draft|Elsewhere/);
    await app.as(key).updateAsset(shown.id, { video_asset: { playback_policy: "signed" } });
    for (const url of [public_url, embed_url, `${public_url}?q=needle`]) expect(titlesOf(await open(url))).toEqual([]);
    expect((await open(feed_url)).text).not.toContain("Shown");
  });

  test("speaks the viewer's language", async () => {
    const { public_url } = await publish();
    for (const [header, language, words] of [
      ["de-AT,de;q=0.9,en;q=0.5", "de", "Hier gibt es noch keine Videos."],
      ["fr, en;q=0.2, de;q=0.1", "en", "There are no videos here yet."],
      ["x".repeat(10_000), "en", "There are no videos here yet."],
    ] as const) {
      const answer = await open(public_url, header);
      expect(answer.text).toContain(`<html lang="${language}"`);
      expect(answer.text).toContain(words);
      expect(answer.headers.get("vary")).toContain("Accept-Language");
    }
  });

  test("is searched and paged, newest first", async () => {
    const { public_url } = await publish();
    await app.opened.app.write((tx) =>
      tx.run(sql`insert into assets (tenant_id, external_id, title, collection_id, input_status, playback_status,
          playback_policy, source_key, created_at, updated_at)
        select ${tenant.id}, 'vid_copy' || value, 'Part ' || value || iif(value % 10 = 0, ' ÄRGER', ''), ${collection.id},
          'uploaded', 'ready', 'public', 'k', 1, 1
        from json_each(${JSON.stringify(Array.from({ length: 100 }, (_, index) => index))})`),
    );
    const titles: (string | undefined)[] = [];
    let url: string | undefined = public_url;
    const sizes: number[] = [];
    while (url) {
      const answer = await open(url);
      const found = titlesOf(answer);
      sizes.push(found.length);
      titles.push(...found);
      const next: string | undefined = /rel="next" href="([^"]+)"/.exec(answer.text)?.[1];
      url = next?.replaceAll("&amp;", "&");
    }
    expect(sizes).toEqual([48, 48, 4]);
    expect(titles).toEqual(Array.from({ length: 100 }, (_, i) => expect.stringContaining(`Part ${99 - i}`)));
    const found = titlesOf(await open(`${public_url}?q=${encodeURIComponent("ärger")}`));
    expect(found).toHaveLength(10);
    expect(titlesOf(await open(`${public_url}?q=nothing+like+this`))).toEqual([]);
    // One or two characters are looked up in another way.
    expect(titlesOf(await open(`${public_url}?q=${encodeURIComponent("0 ")}`))).toHaveLength(10);
    expect(titlesOf(await open(`${public_url}?q=t+99`))).toEqual([expect.stringContaining("Part 99")]);
    expect(titlesOf(await open(`${public_url}?q=${encodeURIComponent("%")}`))).toEqual([]);
    // File names are not shown, and so not found.
    await app.opened.app.write((tx) => tx.run(sql`update assets set original_filename = 'xq secret name.mov'`));
    for (const q of ["secret name", "xq"]) expect(titlesOf(await open(`${public_url}?q=${q}`))).toEqual([]);
    expect((await open(`${public_url}?q=${"x".repeat(201)}`)).status).toBe(422);
    for (const q of ["abc%00", "%00"]) expect((await open(`${public_url}?q=${q}`)).status).toBe(422);
    expect((await open(`${public_url}?cursor=nonsense`)).status).toBe(422);
  });

  test("shows texts as text, in the page, its data, and the feed", async () => {
    await patch({ collection: { name: EVIL, description: EVIL, is_public: true } });
    await video(EVIL, { description: `${EVIL}\u0008` });
    const { public_url, embed_url, feed_url } = await publish();
    for (const url of [public_url, embed_url, `${public_url}?q=${encodeURIComponent(EVIL)}`]) {
      const { text } = await open(url);
      expect(text).not.toContain("<script>evil");
      expect(text).not.toContain("<img src=x");
    }
    const [, data = ""] =
      /<script type="application\/ld\+json">(.*?)<\/script>/.exec((await open(public_url)).text) ?? [];
    expect(JSON.parse(data)).toMatchObject({ "@type": "ItemList", name: EVIL, itemListElement: [{ position: 1 }] });
    const [channel] = readXml((await open(feed_url)).text).children;
    expect(channel?.children.find(({ name }) => name === "title")?.text).toBe(EVIL);
  });

  test("has link previews and oEmbed data", async () => {
    const { public_url, embed_url } = await publish();
    const shown = await video("First");
    const { text } = await open(public_url);
    expect(text).toContain(`<meta property="og:title" content="Talks &amp; &lt;films&gt;">`);
    expect(text).toContain(`<meta property="og:video" content="${embed_url}">`);
    expect(text).toContain(`/media/${shown.external_id}/thumbnail.jpg">`);
    for (const url of [public_url, embed_url]) {
      const { body } = await open(`/oembed?url=${encodeURIComponent(url)}&maxwidth=500`);
      expect(body).toMatchObject({ type: "rich", title: "Talks & <films>", width: 500 });
      expect(body.html).toContain(`src="${embed_url}"`);
    }
    const watch = await open(`/watch/${shown.external_id}`);
    const [, data = ""] = /<script type="application\/ld\+json">(.*?)<\/script>/.exec(watch.text) ?? [];
    expect(JSON.parse(data)).toMatchObject({
      "@type": "VideoObject",
      name: "First",
      duration: expect.stringMatching(/^PT\d+S$/),
    });
  });

  test("is 403 while its tenant is suspended", async () => {
    const { public_url, feed_url } = await publish();
    const body = { status: "suspended" };
    await app.as({ admin: app.admin }).updateTenant(tenant.id, body);
    for (const url of [public_url, feed_url]) expect((await open(url)).status).toBe(403);
  });
});

describe("the feed of a collection", () => {
  test("is RSS 2.0 with an enclosure for each video, and unchanged it is a 304", async () => {
    const { feed_url, public_url } = await publish();
    const shown = await video("Episode", { description: "What it is about" });
    const answer = await open(feed_url);
    expect(answer.headers.get("content-type")).toBe("application/rss+xml; charset=utf-8");
    const rss = readXml(answer.text);
    expect([rss.name, rss.attributes.get("version")]).toEqual(["rss", "2.0"]);
    const channel = rss.children[0];
    const text = (name: string, of = channel) => of?.children.find((one) => one.name === name)?.text;
    expect([text("title"), text("link")]).toEqual(["Talks & <films>", public_url]);
    const item = channel?.children.find(({ name }) => name === "item");
    expect([text("title", item), text("description", item), text("guid", item)]).toEqual([
      ...["Episode", "What it is about", shown.external_id],
    ]);
    const { ready_at } = (await app.as(key).getAsset(shown.id)).body;
    expect(text("pubDate", item)).toBe(new Date(ready_at).toUTCString());
    const enclosure = item?.children.find(({ name }) => name === "enclosure")?.attributes;
    expect(Number(enclosure?.get("length"))).toBeGreaterThan(0);
    const file = await app.call("GET", enclosure?.get("url") ?? "");
    expect([file.status, file.headers.get("content-type")]).toEqual([200, enclosure?.get("type")]);
    const etag = answer.headers.get("etag") ?? "";
    expect((await app.call("GET", feed_url, { headers: { "if-none-match": etag } })).status).toBe(304);
    await app.as(key).createStaticRendition(shown.id, { name: "highest" });
    // Its media cannot be joined to a file.
    expect((await open(feed_url)).text).not.toContain("video/mp4");
    const whole = await filmAsset(app, key, await film(), { collection_id: collection.id, playback_policy: "public" });
    await app.as(key).createStaticRendition(whole.id, { name: "highest" });
    const [, mp4, length] =
      /<enclosure url="([^"]+\/static\/highest\.mp4)" length="(\d+)" type="video\/mp4"\/>/.exec(
        (await open(feed_url)).text,
      ) ?? [];
    expect((await app.call("GET", mp4 ?? "")).headers.get("content-length")).toBe(length);
  });
});
