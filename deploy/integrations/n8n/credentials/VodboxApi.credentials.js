/** Address and API key of a server. */
class VodboxApi {
  name = "vodboxApi";
  displayName = "vodbox API";
  properties = [
    {
      displayName: "Server",
      name: "server",
      type: "string",
      default: "",
      placeholder: "https://video.example.com",
      required: true,
    },
    {
      displayName: "API Key",
      name: "apiKey",
      type: "string",
      typeOptions: { password: true },
      default: "",
      required: true,
      description: "With the scopes of the operations that workflows use; the trigger needs webhooks:write",
    },
  ];
  authenticate = { type: "generic", properties: { headers: { "X-API-Key": "={{$credentials.apiKey}}" } } };
  test = { request: { baseURL: "={{$credentials.server}}", url: "/api/v1/assets", qs: { limit: 1 } } };
}

module.exports = { VodboxApi };
