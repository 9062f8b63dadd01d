// Kernels compute and do nothing else.
import { stripLine } from './strip-line.js'

/**
 * What makes a kernel impure: a use of `redis`.
 *
 * @param {string} name such as `kernels/bucket`
 * @param {string} source
 * @returns {string[]} one sentence per offending line
 */
export function impurities(name, source) {
  return source.split(/\r?\n/).flatMap((line, index) => {
    const where = `lua/${name}.lua:${index + 1}`
    const code = stripLine(line, where).replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, '""')
    return /\bredis\b/.test(code) ? [`${where}: a kernel is pure and may not use redis`] : []
  })
}
