/** The parts of an OpenAPI 3.0 document that the generators read. */
export type Schema = {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  nullable?: boolean;
  enum?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  anyOf?: Schema[];
  allOf?: Schema[];
};
export type Content = Record<string, { schema: Schema }>;
export type Parameter = {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string | undefined;
  schema: Schema;
};
export type Operation = {
  operationId: string;
  summary: string;
  description?: string;
  security?: Record<string, string[]>[];
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { content?: Content }>;
};
export type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, { name: string }> };
};

/** Responses declare each number as `number`; those whose name starts or ends with these words are integers. */
const INTEGER =
  /^bytes_|(^|_)(applied|attempts?|bandwidth|batches|bytes|count|expires_in|height|ids?|index|jobs|limit|ms|number|objects|position|row|size|status|total|uploads|viewers|width)$/;
/** Whether a field that is declared as `number` is an integer. */
export const isWhole = (field: string): boolean => INTEGER.test(field);
