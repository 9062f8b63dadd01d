import { draw } from './draw.js'
import { ALGORITHMS, decide, maxInWindow, SCENARIOS, worst } from './traffic.js'

/** The place of the table in docs/choosing-an-algorithm.md. */
export const TABLE = /(?<=<!-- generated: what is admitted -->\n)[\s\S]*?(?=<!-- end of generated -->)/

/**
 * Everything that `npm run docs:plots` writes, from the kernels of this core.
 *
 * @param {typeof import('../../packages/core/src/index.js')} core
 * @returns {Promise<{ pictures: Map<string, string>, table: string }>} pictures by file name; a Markdown table
 */
export async function generate(core) {
  const pictures = new Map()
  const cells = ALGORITHMS.map(({ name, note }) => [`${name} (${note})`])
  for (const scenario of SCENARIOS) {
    const rows = []
    for (const [i, algorithm] of ALGORITHMS.entries()) {
      const decisions = await decide(core, algorithm, scenario.arrivals)
      rows.push({ ...algorithm, decisions })
      cells[i]?.push(`${decisions.filter(({ allowed }) => allowed).length} / ${maxInWindow(decisions)}`)
    }
    pictures.set(`${scenario.file}.svg`, draw(scenario, rows))
    if (scenario.file === 'boundary')
      pictures.set(
        'boundary-of-two.svg',
        draw(
          scenario,
          rows.filter(({ name, note }) => name === 'slidingLog' || note === 'by the clock'),
        ),
      )
  }
  for (const [i, algorithm] of ALGORITHMS.entries()) cells[i]?.push(String(await worst(core, algorithm)))

  const heads = ['algorithm', ...SCENARIOS.map(({ file, arrivals }) => `${file} (${arrivals.length})`), 'worst']
  const line = (/** @type {readonly string[]} */ texts) => `| ${texts.join(' | ')} |\n`
  return { pictures, table: line(heads) + line(heads.map(() => '---')) + cells.map(line).join('') }
}
