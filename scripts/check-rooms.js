// `npm run check:rooms`: the files of packages import what lib/rooms.js allows: which folder which others, which package what
// from outside.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import ts from 'typescript5'
import { root } from './lib/project.js'
import { OUTSIDE, ROOMS } from './lib/rooms.js'
import { whenStarted } from './lib/run.js'

/** @typedef {import('./lib/rooms.js').Rooms} Rooms */

/**
 * What is wrong with an import between files of one folder, both relative to it.
 *
 * @param {string} folder for messages: `core`
 * @param {Rooms} table
 * @param {string} from
 * @param {string} to
 * @returns {string | undefined}
 */
export function problemInside(folder, table, from, to) {
  const { rooms, inner = {}, entries = [], pure = [], isBelow = false, why = {} } = table
  const [[room = '', ...below], [other = '', ...target]] = [from.split('/'), to.split('/')]
  // Files beside the rooms, and entries, import from any.
  if (below.length === 0 || entries.includes(room)) return undefined
  if (room === other && target.length > 0) {
    return inner[room] && problemInside(`${folder}/${room}`, inner[room], below.join('/'), target.join('/'))
  }
  const isFile = target.length === 0
  if (isFile ? !isBelow && !pure.includes(room) : rooms[room]?.includes(other)) return undefined
  const imported = isFile ? `${other}, a file beside it` : `${folder}/${other}`
  const allowed = rooms[room]?.join(', ') || 'no other folder'
  const reason = entries.includes(other) ? 'Entries compose all else.' : (why[other] ?? '')
  return `${folder}/${room} imports ${imported}; of ${folder} it may import ${allowed}. ${reason}`.trim()
}

/**
 * What is wrong with an import from outside of a package.
 *
 * @param {string} name of the package
 * @param {string} imported
 * @returns {string | undefined}
 */
function problemOutside(name, imported) {
  const { only, never = [], why } = OUTSIDE[name] ?? { why: '' }
  const isForbidden = only
    ? !imported.startsWith('node:') && !only.includes(imported)
    : never.some((one) => imported === one || imported.startsWith(`${one}/`))
  if (!isForbidden) return undefined
  return `${name} imports ${imported}; ${only ? `it may import ${only.join(', ')}` : `never ${never.join(', ')}`}. ${why}`
}

/**
 * What is wrong with an import of a file.
 *
 * @param {string} file `packages/core/src/util/a.ts`
 * @param {string} imported as it stands in the file
 * @returns {string | undefined}
 */
export function problemOf(file, imported) {
  const [, name = '', from = ''] = /^packages\/(\w+)\/src\/(.*)$/.exec(file) ?? []
  const table = ROOMS[name]
  if (imported.startsWith('.')) {
    const to = posix.join(posix.dirname(from), imported)
    if (to.startsWith('..'))
      return `${name} imports ${to}, a file outside of its src; packages import others by their names.`
    return table && problemInside(name, table, from, to)
  }
  const room = table?.pure?.find((pure) => from.startsWith(`${pure}/`))
  if (room) return `${name}/${room} imports ${imported}; it is pure: its files import nothing but each other.`
  return problemOutside(name, imported)
}

/**
 * The wrong imports of a file, types too, each with its line.
 *
 * @param {string} file
 * @param {string} text
 */
export function problemsOfImports(file, text) {
  return ts.preProcessFile(text, true, true).importedFiles.flatMap(({ fileName, pos }) => {
    // A feature may add fields to the interfaces of others: it imports nothing by that.
    const isAdded = /\bdeclare module ['"]?$/.test(text.slice(0, pos))
    const problem = isAdded ? undefined : problemOf(file, fileName)
    return problem ? [`${file}:${text.slice(0, pos).split('\n').length}: ${problem}`] : []
  })
}

/**
 * The rooms that a table names beside a room, and that are not; and the folders that it does not name.
 *
 * @param {string} folder
 * @param {Rooms} table
 * @param {(folder: string) => string[]} [foldersIn]
 * @returns {string[]}
 */
export function problemsOfTable(folder, { rooms, inner = {}, entries = [] }, foldersIn = foldersInProject) {
  const unknown = Object.entries(rooms).flatMap(([room, allowed]) =>
    allowed
      .filter((other) => !(other in rooms))
      .map((other) => `${folder}/${room}: there is no room ${other} beside it`),
  )
  const missing = foldersIn(folder).filter((name) => !(name in rooms) && !entries.includes(name))
  return [
    ...unknown,
    ...missing.map((name) => `${folder}/${name}: scripts/lib/rooms.js does not say what it may import`),
    ...Object.entries(inner).flatMap(([room, table]) => problemsOfTable(`${folder}/${room}`, table, foldersIn)),
  ]
}

/** @param {string} folder */
const foldersInProject = (folder) =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))

await whenStarted(import.meta.url, () => {
  const problems = Object.entries(ROOMS).flatMap(([name, table]) => problemsOfTable(`packages/${name}/src`, table))
  let count = 0
  for (const name of readdirSync(join(root, 'packages'))) {
    const src = `packages/${name}/src`
    for (const path of readdirSync(join(root, src), { recursive: true, encoding: 'utf8' })) {
      if (!/\.tsx?$/.test(path) || basename(path).includes('.generated.')) continue
      problems.push(...problemsOfImports(`${src}/${path}`, readFileSync(join(root, src, path), 'utf8')))
      count += 1
    }
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
  console.log(`The imports of ${count} files are those of scripts/lib/rooms.js`)
})
