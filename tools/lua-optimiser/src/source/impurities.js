// Kernels only compute.
import { stripLine } from './strip-line.js'

/**
 * Lines that make a kernel impure: uses of Redis. A kernel is a file in `kernels/`, or the part of a file in `cells/` between
 * the lines `--- @kernel` and `--- @state`.
 *
 * @param {string} name such as `kernels/bucket`
 * @param {string} source
 * @returns {string[]} one sentence per offending line
 */
export function impurities(name, source) {
  let isKernel = name.startsWith('kernels/')
  return source.split(/\r?\n/).flatMap((line, index) => {
    const where = `lua/${name}.lua:${index + 1}`
    const [, part] = /^--- @(kernel|state)\s*$/.exec(line) ?? []
    if (part) isKernel = part === 'kernel'
    if (!isKernel) return []
    const code = stripLine(line, where).replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, '""')
    return /\b(redis|call|tryCall)\b/.test(code) ? [`${where}: a kernel is pure and may not use redis`] : []
  })
}
