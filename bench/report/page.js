// bench/results.md.
import { targets } from '../targets.js'
import { figure, tableText, withSpread } from './text.js'

/** @param {(readonly [name: string, result: any])[]} results in the order of the page */
export function render(results) {
  return `${[
    '# How fast',
    '',
    'Written by `npm run bench`; `npm run bench -- <name>` measures some of it anew. Every round of every figure is in ' +
      '[results.json](results.json).',
    '',
    'Contestants take turns, A B C A B C, after a round that is not counted; each runs in a process of its own, and is ' +
      'timed only after it has shown that it refuses what is over its limit. Figures are medians over the rounds, with ' +
      'the first and third quartile behind them; comparisons are made round by round. All peers are in their current ' +
      'release and on the same client as we, ioredis. Machines are shared and noisy: what CPU was used is more to be ' +
      'trusted than what time went by.',
    '',
    ...machines(results),
    '',
    '## Targets',
    '',
    ...targetTable(results),
    '',
    'Where the time goes in what is missed, and what stands in the way: [what-is-left.md](what-is-left.md).',
    ...results.flatMap(([name, result]) => section(name, result)),
  ].join('\n')}\n`
}

/** @param {(readonly [name: string, result: any])[]} results */
function machines(results) {
  const { machine } = results[0]?.[1] ?? {}
  if (!machine) return []
  const packages = Object.entries(machine.packages).map(([name, version]) => `${name} ${version}`)
  return [
    `Measured on ${machine.cpu}, ${machine.memory}, ${machine.system}; Node ${machine.node}, Redis ${machine.redis}; ` +
      `${packages.join(', ')}.`,
  ]
}

/** @param {(readonly [name: string, result: any])[]} results */
function targetTable(results) {
  /** @type {Record<string, any>} */
  const found = Object.assign({}, ...results.map(([, result]) => result.found))
  const rows = Object.entries(targets).map(([id, { figure: what, atLeast, isMet, unit = '', ifMissed }]) => {
    const value = found[id]
    if (!value) return [what, atLeast, 'not measured', '–']
    const note = value.note ? `; ${value.note}` : ''
    return [
      what,
      atLeast,
      `${withSpread(value, unit)}${note}`,
      isMet(value.median) ? 'met' : `**missed**${ifMissed ? `; ${ifMissed}` : ''}`,
    ]
  })
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  return [line(['figure', 'target', 'measured', '']), line(['---', '---', '---', '---']), ...rows.map(line), '']
}

/**
 * @param {string} name
 * @param {any} result
 */
function section(name, { title, measuredAt, seconds, text, tables, plots, setups = {}, skipped = [] }) {
  return [
    `## ${title}`,
    '',
    ...text.flatMap((/** @type {string} */ paragraph) => [paragraph, '']),
    ...tables.flatMap((/** @type {import('./text.js').Table} */ table) => [tableText(table), '']),
    ...plots.flatMap((/** @type {string} */ plot) => [`![${plot.replaceAll('-', ' ')}](plots/${plot}.svg)`, '']),
    ...(skipped.length > 0 ? [...skipped.map((/** @type {string} */ why) => `- ${why}`), ''] : []),
    ...(Object.keys(setups).length > 0
      ? ['Set to:', '', ...Object.entries(setups).map(([who, setup]) => `- ${who}: ${setup}`), '']
      : []),
    `\`npm run bench -- ${name}\`, ${measuredAt.slice(0, 16).replace('T', ' ')} UTC, ${figure(seconds)} s.`,
    '',
  ]
}
