/** The package has no types. */
declare module "textlint-rule-terminology" {
  const rule: unknown;
  export default rule;
}
