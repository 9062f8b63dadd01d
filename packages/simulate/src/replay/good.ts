import { readFileSync } from 'node:fs'
import { ipAddress, ipRange, RangeMap } from '@sluice/core/internal'
import type { Resolvers } from '@sluice/policies'
import { SimulationError } from '../simulation-error.js'
import type { RecordContext } from './record-context.js'

/** The clients that must not be refused. */
export interface GoodClients {
  /** Tells whether a request is of one of them. */
  has(context: RecordContext): boolean
  /** The marks that no request had so far. */
  absent(): readonly string[]
}

/** One of the marks, and whether a request had it. */
interface Mark {
  readonly text: string
  isSeen: boolean
}

/** Addresses whose answer is remembered. */
const MAX_KNOWN = 100_000

/**
 * Clients that must not be refused. Each mark is an address, a network, `FIELD=VALUE` for a field of the log that begins
 * with a dot, `KIND=VALUE` for a key such as `user=ann`, or a file with one of these a line.
 *
 * @throws SimulationError
 */
export function goodClients(given: readonly string[], resolvers: Resolvers): GoodClients | undefined {
  if (given.length === 0) return undefined
  const marks: Mark[] = [...new Set(given.flatMap(linesOf))].map((text) => ({ text, isSeen: false }))
  // A file without marks would have every change pass.
  if (marks.length === 0) throw new SimulationError(`--good: expected a client, got none in ${given.join(', ')}`)
  const ranges = new RangeMap<Mark[]>()
  const tests: { readonly mark: Mark; readonly test: Test }[] = []
  for (const mark of marks) {
    const { text } = mark
    const range = ipRange(text)
    if (range) {
      const known = ranges.get(range)
      if (known) known.push(mark)
      else ranges.set(range, [mark])
      continue
    }
    const equals = text.indexOf('=')
    if (equals <= 0) throw wrongMark(text)
    tests.push({ mark, test: testOf(text.slice(0, equals), text.slice(equals + 1), resolvers, text) })
  }
  const isInRange = remembered((ip) => {
    const address = ipAddress(ip)
    let isGood = false
    // Every network around an address is seen, and not the smallest alone.
    const seeAll = (found: readonly Mark[]) => {
      isGood = found.every(see)
      return false
    }
    if (address) ranges.find(address, seeAll)
    return isGood
  })
  return {
    has(context) {
      let isGood = ranges.size > 0 && isInRange(context.ip)
      for (const { mark, test } of tests) {
        // Once its mark was seen, it is of interest only for a request that is not known as good.
        if (isGood && mark.isSeen) continue
        if (test(context)) isGood = see(mark)
      }
      return isGood
    },
    absent: () => marks.filter(({ isSeen }) => !isSeen).map(({ text }) => text),
  }
}

function see(mark: Mark): true {
  mark.isSeen = true
  return true
}

type Test = (context: RecordContext) => boolean

function testOf(name: string, value: string, { keys = {} }: Resolvers, mark: string): Test {
  // Fields of lines that are no JSON have names without a dot.
  if (name.startsWith('.')) return ({ request }) => (request.field(name) ?? request.field(name.slice(1))) === value
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
