import { createHmac, randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import type { SimulationReport } from '../report.js'

/**
 * Hexadecimal digits of a pseudonym: 40 bits. A report lists some hundred clients. Two of a thousand have the same pseudonym with a
 * probability of 1 in 2 million.
 */
const DIGITS = 10

/** Words of a sentence that may be an address, or an identity such as `user=ann`, without the marks around it. */
const WORDS = /[^\s"'“”(),;<>]+/g

/**
 * A report in which each identity is a pseudonym, such as `ip~3f9a1c2b4d`. An identity has one pseudonym in the whole report, and
 * another in each report. Lines that were not read are left out, as they may name anyone.
 *
 * @param key of the HMAC, which nobody keeps. @default random
 */
export function withPseudonyms(report: SimulationReport, key = randomBytes(32)): SimulationReport {
  const { log } = report
  return {
    ...withIdentities(report, (identity) => pseudonymOf(identity, key)),
    identities: 'pseudonyms',
    log: { ...log, unread: { ...log.unread, examples: [] } },
  }
}

/** A report in which each identity has another name, also where sentences name it. */
export function withIdentities(report: SimulationReport, nameOf: (identity: string) => string): SimulationReport {
  const named = <Client extends { readonly identity: string }>(clients: readonly Client[]) =>
    clients.map((client) => ({ ...client, identity: nameOf(client.identity) }))
  const { caveats, refused, good, against, redis, proposal } = report
  return {
    ...report,
    caveats: caveats.map((sentence) => sentence.replace(WORDS, (word) => renamedWord(word, nameOf))),
    refused: named(refused),
    good: good && {
      ...good,
      refused: named(good.refused),
      absent: good.absent.map((mark) => nameOf(mark.includes('=') ? mark : `ip=${mark}`)),
    },
    against: against && {
      ...against,
      newlyRefused: named(against.newlyRefused),
      noLongerRefused: named(against.noLongerRefused),
    },
    ...(proposal && {
      proposal: {
        ...proposal,
        above: named(proposal.above),
        below: named(proposal.below),
      },
    }),
    redis: { ...redis, hot: redis.hot.map((entry) => ({ ...entry, identity: nameOf(entry.identity) })) },
  }
}

/** The kind stays: it tells an operator which key of the policy is meant. */
function pseudonymOf(identity: string, key: Uint8Array): string {
  const [kind] = identity.split('=', 1)
  return `${kind}~${createHmac('sha256', key).update(identity).digest('hex').slice(0, DIGITS)}`
}

/** Where a sentence names an address, its reader looks for the client of that address. */
function renamedWord(word: string, nameOf: (identity: string) => string): string {
  let length = word.length
  while (length > 0 && '.:!?'.includes(word[length - 1] as string)) length--
  const [text, end] = [word.slice(0, length), word.slice(length)]
  const [address = '', prefix] = text.split('/', 2)
  if (isIP(address)) return nameOf(`ip=${address}${prefix === undefined ? '' : `/${prefix}`}`) + end
  return /^[a-z][\w:+-]*=./.test(text) ? nameOf(text) + end : word
}
