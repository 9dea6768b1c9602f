export { readXml, type XmlElement } from "./read.ts";
export { CDATA_END, CDATA_START, unescapeXml, withoutForbidden, XmlFault, type XmlToken, xmlTokens } from "./tokens.ts";
