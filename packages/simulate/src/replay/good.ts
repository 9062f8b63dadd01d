import { readFileSync } from 'node:fs'
import { ipAddress, ipRange, RangeMap } from '@sluice/core/internal'
import type { Resolvers } from '@sluice/policies'
import { SimulationError } from '../simulation-error.js'
import type { RecordContext } from './record-context.js'

/** Tells whether a request is of a client that must not be refused. */
export type IsGood = (context: RecordContext) => boolean

/** Addresses whose answer is remembered. */
const MAX_KNOWN = 100_000

/**
 * Clients that must not be refused. Each mark is an address, a network, `FIELD=VALUE` for a field of the log that begins
 * with a dot, `KIND=VALUE` for a key such as `user=ann`, or a file with one of these a line.
 *
 * @throws SimulationError
 */
export function goodClients(marks: readonly string[], resolvers: Resolvers): IsGood | undefined {
  if (marks.length === 0) return undefined
  const ranges = new RangeMap<true>()
  const tests: IsGood[] = []
  for (const mark of marks.flatMap(linesOf)) {
    const range = ipRange(mark)
    if (range) {
      if (!ranges.get(range)) ranges.set(range, true)
      continue
    }
    const equals = mark.indexOf('=')
    if (equals <= 0) throw wrongMark(mark)
    tests.push(testOf(mark.slice(0, equals), mark.slice(equals + 1), resolvers, mark))
  }
  const isInRange = remembered((ip) => {
    const address = ipAddress(ip)
    return address !== undefined && ranges.find(address, () => true) === true
  })
  return (context) => (ranges.size > 0 && isInRange(context.ip)) || tests.some((test) => test(context))
}

function testOf(name: string, value: string, { keys = {} }: Resolvers, mark: string): IsGood {
  if (name.startsWith('.')) return ({ request }) => request.field(name) === value
  const resolver = Object.hasOwn(keys, name) ? keys[name] : undefined
  if (!resolver) throw wrongMark(mark)
  return (context) => String(resolver(context.request, context)) === value
}

function wrongMark(mark: string): SimulationError {
  return new SimulationError(
    `--good: expected a file, an address, a network, user=NAME or .FIELD=VALUE, got ${JSON.stringify(mark)}`,
  )
}

/** The lines of a file; the mark itself where it is none. */
function linesOf(mark: string): readonly string[] {
  if (ipRange(mark) || mark.includes('=')) return [mark]
  let text: string
  try {
    text = readFileSync(mark, 'utf8')
  } catch (error) {
    throw new SimulationError(`--good: cannot read ${JSON.stringify(mark)} (${(error as NodeJS.ErrnoException).code})`)
  }
  const lines = text.split('\n').map((line) => line.replace(/(^|\s)#.*/, '').trim())
  return lines.filter((line) => line !== '')
}

function remembered(test: (text: string) => boolean): (text: string) => boolean {
  const known = new Map<string, boolean>()
  return (text) => {
    let result = known.get(text)
    if (result === undefined) {
      if (known.size >= MAX_KNOWN) known.clear()
      result = test(text)
      known.set(text, result)
    }
    return result
  }
}
