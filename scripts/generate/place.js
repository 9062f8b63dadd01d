import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/project.js'

/**
 * A page with a new text between the marks `<!-- generated: … -->` and `<!-- end of generated -->`.
 *
 * @param {string} file from the root
 * @param {string} name of the mark
 * @param {string} made
 */
export function withGenerated(file, name, made) {
  const place = new RegExp(`(?<=<!-- generated: ${name} -->\n)[\\s\\S]*?(?=<!-- end of generated -->)`)
  const text = readFileSync(join(root, file), 'utf8')
  if (!place.test(text)) throw new Error(`${file}: no place for the generated ${name}`)
  return text.replace(place, () => made)
}
