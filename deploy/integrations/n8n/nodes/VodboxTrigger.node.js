const { createHmac, timingSafeEqual } = require("node:crypto");
const { request } = require("./request.js");

const EVENTS = {
  "video.asset.ready": "Video Can Be Played",
  "video.asset.encoded": "Video Is Encoded in All Qualities",
  "video.asset.errored": "Video Cannot Be Played",
  "video.asset.deleted": "Video Was Deleted",
  "video.upload.completed": "Upload Is Complete",
  "video.upload.failed": "Upload Failed",
  "video.subtitle.ready": "Subtitles Are Ready",
};
/** A delivery that was signed longer ago may be a copy. */
const TOLERANCE_SECONDS = 300;

/** Starts a workflow by an event of the server. */
class VodboxTrigger {
  description = {
    displayName: "vodbox Trigger",
    name: "vodboxTrigger",
    icon: "file:vodbox.svg",
    group: ["trigger"],
    version: 1,
    description: "Starts a workflow when a video is ready, was uploaded, or failed",
    defaults: { name: "vodbox Trigger" },
    inputs: [],
    outputs: ["main"],
    credentials: [{ name: "vodboxApi", required: true }],
    webhooks: [{ name: "default", httpMethod: "POST", responseMode: "onReceived", path: "webhook" }],
    properties: [
      {
        displayName: "Events",
        name: "events",
        type: "multiOptions",
        default: ["video.asset.ready"],
        required: true,
        options: Object.entries(EVENTS).map(([value, name]) => ({ name, value })),
      },
    ],
  };

  webhookMethods = {
    default: {
      async checkExists() {
        const { id } = this.getWorkflowStaticData("node");
        if (id === undefined) return false;
        try {
          const { url, active } = await request(this, "GET", `/api/v1/webhooks/${id}`);
          return active && url === this.getNodeWebhookUrl("default");
        } catch {
          return false;
        }
      },
      async create() {
        const body = {
          url: this.getNodeWebhookUrl("default"),
          event_types: this.getNodeParameter("events"),
          description: "n8n",
        };
        const { id, secret } = await request(this, "POST", "/api/v1/webhooks", { body });
        Object.assign(this.getWorkflowStaticData("node"), { id, secret });
        return true;
      },
      async delete() {
        const data = this.getWorkflowStaticData("node");
        if (data.id === undefined) return true;
        try {
          await request(this, "DELETE", `/api/v1/webhooks/${data.id}`);
        } catch (error) {
          if (error.httpCode !== "404" && error.response?.status !== 404) return false;
        }
        delete data.id;
        delete data.secret;
        return true;
      },
    },
  };

  async webhook() {
    const { secret } = this.getWorkflowStaticData("node");
    const { rawBody, headers } = this.getRequestObject();
    if (!isSigned(rawBody, headers["svc-signature"], secret)) {
      this.getResponseObject().status(401).send("The signature is not valid.");
      return { noWebhookResponse: true };
    }
    return { workflowData: [this.helpers.returnJsonArray(JSON.parse(rawBody.toString()))] };
  }
}

/** Whether `Svc-Signature: t=<seconds>,v1=<hex>,…` is one of these bytes. */
function isSigned(body, header, secret) {
  if (!Buffer.isBuffer(body) || typeof header !== "string" || !secret) return false;
  const parts = header
    .slice(0, 4096)
    .split(",")
    .map((part) => part.trim().split("="));
  const time = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= TOLERANCE_SECONDS)) return false;
  const expected = createHmac("sha256", secret).update(`${time}.`).update(body).digest();
  return parts.some(([name, value = ""]) => {
    const signature = Buffer.from(name === "v1" ? value : "", "hex");
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

module.exports = { VodboxTrigger };
