const { OPERATIONS } = require("./operations.js");

/** One node with all operations on videos. */
class Vodbox {
  description = {
    displayName: "vodbox",
    name: "vodbox",
    icon: "file:vodbox.svg",
    group: ["transform"],
    version: 1,
    subtitle: '={{$parameter["operation"]}}',
    description: "Upload, read and share videos",
    defaults: { name: "vodbox" },
    inputs: ["main"],
    outputs: ["main"],
    usableAsTool: true,
    credentials: [{ name: "vodboxApi", required: true }],
    properties: [
      {
        displayName: "Operation",
        name: "operation",
        type: "options",
        noDataExpression: true,
        default: "uploadFromUrl",
        options: Object.entries(OPERATIONS).map(([value, { name, action, description }]) => ({
          name,
          value,
          action,
          description,
        })),
      },
      ...Object.entries(OPERATIONS).flatMap(([operation, { fields }]) =>
        fields.map((field) => ({ ...field, displayOptions: { show: { operation: [operation] } } })),
      ),
    ],
  };

  async execute() {
    const results = [];
    for (const [index] of this.getInputData().entries()) {
      try {
        const operation = OPERATIONS[this.getNodeParameter("operation", index)];
        const found = await operation.run(this, (name) => this.getNodeParameter(name, index, ""), index);
        for (const json of Array.isArray(found) ? found : [found]) results.push({ json, pairedItem: { item: index } });
      } catch (error) {
        if (!this.continueOnFail()) throw error;
        results.push({ json: { error: error.message }, pairedItem: { item: index } });
      }
    }
    return [results];
  }
}

module.exports = { Vodbox };
