import type { TextlintRuleModule } from "@textlint/types";

/** Each refers to a subject that the reader must find first. */
const CHAINED = /\b(?:those|that) of\b|\bof which\b|\bwhose\b/gi;
const MOST_CHAINED = 1;
/** The first words of a comment, or of a paragraph. */
const OPENING = /^(?:\/\*\*?|\/\/)?[\s*]*(Of) /;
const SENTENCE = /[^.!?;]+[.!?;]?/g;

/** A comment or sentence names its subject: none begins with "Of", and none has two references in a chain. */
export const sentences: TextlintRuleModule = (context) => {
  const { Syntax, RuleError, report, getSource, locator } = context;
  return {
    [Syntax.Paragraph](node) {
      const text = getSource(node);
      const opening = OPENING.exec(text);
      if (opening) {
        const padding = locator.at(opening[0].indexOf("Of"));
        report(node, new RuleError('A sentence names its subject, instead of beginning with "Of"', { padding }));
      }
      for (const { 0: sentence, index } of text.matchAll(SENTENCE)) {
        const found = [...sentence.matchAll(CHAINED)];
        const second = found[MOST_CHAINED];
        if (!second) continue;
        const words = found.map(([words]) => `"${words}"`).join(", ");
        report(node, new RuleError(`A sentence has one of ${words}`, { padding: locator.at(index + second.index) }));
      }
    },
  };
};
