// Prints a script as Redis runs it, with the line numbers of Redis's error messages.
//
//   node tools/lua-optimiser/show.js decide-bucket                 a script that the build makes
//   node tools/lua-optimiser/show.js decide bucket log several     decide with these sections alone, as the store sends it
//   node tools/lua-optimiser/show.js decide-bucket --passes        with the changes of each pass of the optimiser
import { join } from 'node:path'
import { optimise } from './src/optimise.js'
import { scriptsOf } from './src/scripts.js'
import { sourceIn } from './src/source/folder.js'
import { withSections } from './src/source/sections.js'
import { printLua } from './src/tree/print.js'

const words = process.argv.slice(2)
const [name = '', ...sections] = words.filter((word) => !word.startsWith('--'))
/** The script after each pass that changed it, by the text that came of it. @type {Map<string, { pass: string, text: string }[]>} */
const histories = new Map()

/** @type {typeof optimise} */
const optimiseWatched = (source, known) => {
  /** @type {{ pass: string, text: string }[]} */
  const history = []
  const result = optimise(source, known, (pass, chunk) => {
    const text = printLua(chunk)
    if (text !== history.at(-1)?.text) history.push({ pass, text })
  })
  histories.set(result, history)
  return result
}
const scripts = scriptsOf(sourceIn(join(import.meta.dirname, '../../lua')), optimiseWatched, true)
const script = scripts[name]

if (script === undefined) {
  console.error(`expected one of ${Object.keys(scripts).join(', ')}, got ${JSON.stringify(name)}`)
  process.exitCode = 1
} else if (words.includes('--passes')) {
  for (const { pass, text } of histories.get(script) ?? []) console.log(`── ${pass}\n${text}`)
} else {
  const all = script.match(/(?<=^--@when )\w+$/gm) ?? []
  const choice = Object.fromEntries(all.map((section) => [section, sections.includes(section)]))
  const lines = withSections(script, choice).trimEnd().split('\n')
  for (const [i, line] of lines.entries()) console.log(`${String(i + 1).padStart(4)}  ${line}`)
}
