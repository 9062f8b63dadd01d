import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Licences that need no more than their text beside the program. */
const LICENCES = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause']

/**
 * The licences of the installed packages that files are from.
 *
 * @param {string[]} files
 * @returns {string[]} the name, the version and the text of each
 */
export function licencesOf(files) {
  const folders = new Set(
    files.flatMap((file) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file) ?? []),
  )
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    if (!LICENCES.includes(license)) throw new Error(`${name}: its licence ${license} is not one that we may embed`)
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
    if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no file with its licence`)
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}`
  })
}
