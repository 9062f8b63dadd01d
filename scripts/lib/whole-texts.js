/**
 * A program whose texts are each on one line. esbuild keeps lines short also within texts, by a backslash at their ends. Rollup
 * indents the lines of CommonJS packages, and would indent the text.
 *
 * @param {string} program
 */
export function withWholeTexts(program) {
  // Behind an even number of backslashes, which are pairs, the line ends in a template.
  return program.replace(/(?<!\\)((?:\\\\)*)\\\n/g, '$1')
}
