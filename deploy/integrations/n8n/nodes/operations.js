const { request } = require("./request.js");

/**
 * The operations of the node. `fields` are its parameters; `run` resolves with one record or a list. `value(name)` is a
 * parameter, empty where it was not set.
 */
const ID = { displayName: "Video ID", name: "id", type: "string", default: "", required: true };
const text = (displayName, name, more = {}) => ({ displayName, name, type: "string", default: "", ...more });

/** Fields with a value, by the names of the API. */
const given = (value, names) =>
  Object.fromEntries(names.map((name) => [name, value(name)]).filter(([, each]) => each !== "" && each !== undefined));

const asset = (id) => `/api/v1/assets/${encodeURIComponent(id)}`;
const TEXTS = ["title", "description"];
const FIELDS = [
  text("Title", "title"),
  text("Description", "description"),
  {
    displayName: "Playback",
    name: "playback_policy",
    type: "options",
    default: "",
    options: [
      { name: "Default of the Tenant", value: "" },
      { name: "Public", value: "public" },
      { name: "Signed", value: "signed" },
    ],
  },
];

const OPERATIONS = {
  upload: {
    name: "Upload",
    action: "Upload a video",
    description: "Send a file of a previous node",
    fields: [text("Input Binary Field", "binary", { default: "data", required: true }), ...FIELDS],
    async run(node, value, index) {
      const name = value("binary");
      const file = node.helpers.assertBinaryData(index, name);
      const bytes = file.id
        ? (await node.helpers.getBinaryMetadata(file.id)).fileSize
        : Buffer.from(file.data, "base64").length;
      const body = {
        filename: file.fileName ?? "video",
        bytes_expected: bytes,
        ...given(value, [...TEXTS, "playback_policy"]),
      };
      const upload = await request(node, "POST", "/api/v1/uploads/initiate", { body });
      // The URL is the credential, and may be one of another host.
      await node.helpers.httpRequest({
        method: "PUT",
        url: upload.upload_url,
        headers: { ...upload.upload_headers, "content-length": String(bytes) },
        body: file.id ? await node.helpers.getBinaryStream(file.id) : Buffer.from(file.data, "base64"),
      });
      await request(node, "POST", `/api/v1/uploads/${upload.id}/complete`, { body: { bytes_received: bytes } });
      return request(node, "GET", asset(upload.asset_id));
    },
  },
  uploadFromUrl: {
    name: "Upload From URL",
    action: "Upload a video from a URL",
    description: "The server fetches the file",
    fields: [text("URL", "url", { required: true, placeholder: "https://example.com/film.mp4" }), ...FIELDS],
    run: async (node, value) =>
      request(node, "POST", "/api/v1/uploads/from_url", { body: given(value, ["url", ...TEXTS, "playback_policy"]) }),
  },
  get: {
    name: "Get",
    action: "Get a video",
    description: "By its ID, or your own external ID",
    fields: [ID],
    run: async (node, value) => request(node, "GET", asset(value("id"))),
  },
  list: {
    name: "Get Many",
    action: "Get many videos",
    description: "The newest videos, or those that a search finds",
    fields: [
      text("Search", "q"),
      { displayName: "Limit", name: "limit", type: "number", default: 50, typeOptions: { minValue: 1, maxValue: 500 } },
    ],
    run: async (node, value) => request(node, "GET", "/api/v1/assets", { query: given(value, ["q", "limit"]) }),
  },
  update: {
    name: "Update",
    action: "Update a video",
    description: "Empty fields stay as they are",
    fields: [ID, ...FIELDS],
    run: async (node, value) =>
      request(node, "PATCH", asset(value("id")), {
        body: { video_asset: given(value, [...TEXTS, "playback_policy"]) },
      }),
  },
  delete: {
    name: "Delete",
    action: "Delete a video",
    description: "With its media and its source",
    fields: [ID],
    async run(node, value) {
      await request(node, "DELETE", asset(value("id")));
      return { id: value("id"), deleted: true };
    },
  },
  playback: {
    name: "Get Playback",
    action: "Get the URLs of a video",
    description: "URLs of HLS, DASH, images and subtitles, with a token where one is needed",
    fields: [ID],
    run: async (node, value) => request(node, "GET", `/api/v1/playback/${encodeURIComponent(value("id"))}`),
  },
  share: {
    name: "Share",
    action: "Share a video",
    description: "A link that works without an account",
    fields: [ID, text("Name", "name"), text("Password", "password", { typeOptions: { password: true } })],
    run: async (node, value) =>
      request(node, "POST", `${asset(value("id"))}/shares`, { body: given(value, ["name", "password"]) }),
  },
};

module.exports = { OPERATIONS };
