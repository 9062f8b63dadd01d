// Numbers and tables as Markdown.

/**
 * @typedef {object} Table
 * @property {string} caption
 * @property {string[]} head the first column is text, the others are numbers
 * @property {string[][]} rows
 */

/** Three significant digits. @param {number} value */
export function figure(value) {
  if (!Number.isFinite(value)) return '–'
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',')
}

/** A median and its quartiles. @param {import('../lib/stats.js').Spread} spread */
export const withSpread = ({ median, low, high }, unit = '') =>
  `${figure(median)}${unit} (${figure(low)}–${figure(high)})`

/** @param {Table} table */
export function tableText({ caption, head, rows }) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  return [
    `**${caption}**`,
    '',
    line(head),
    line(head.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows.map(line),
  ].join('\n')
}
