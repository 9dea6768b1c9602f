/** Sends a request with the credential of the node; `path` begins with `/api/v1`. Resolves with the JSON of the response. */
async function request(node, method, path, { body, query, ...more } = {}) {
  const { server } = await node.getCredentials("vodboxApi");
  return node.helpers.httpRequestWithAuthentication.call(node, "vodboxApi", {
    method,
    url: server.replace(/\/+$/, "") + path,
    ...(body && { body }),
    ...(query && { qs: query }),
    json: true,
    ...more,
  });
}

module.exports = { request };
