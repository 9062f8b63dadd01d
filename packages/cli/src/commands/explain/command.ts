import { quoted, textOfFile } from '@sluice/core/internal'
import { type Explanation, PoliciesError, policies, readDocument } from '@sluice/policies'
import { namesIn } from '../../documents/names.js'
import type { Command } from '../../program/command.js'
import { UsageError } from '../../program/usage-error.js'
import { usable } from '../../redis/usable.js'

export const explain: Command = {
  name: 'explain',
  summary: 'show which policies of a file apply to a request, and why others do not',
  description: `Shows of each policy of a file whether it applies to a request, by which tier and override, and why not.
It asks no Redis.`,
  operands: { placeholder: 'FILE', min: 1, max: 1 },
  options: {
    path: {
      type: 'string',
      placeholder: 'PATH',
      text: 'the path of the request; its query does not count',
      default: '/',
    },
    method: { type: 'string', placeholder: 'METHOD', text: 'its method', default: 'GET' },
    ip: { type: 'string', placeholder: 'ADDRESS', text: 'the address of the client' },
    header: { type: 'string', placeholder: 'NAME:VALUE', text: 'a header; again for more', repeats: true },
    key: {
      type: 'string',
      placeholder: 'KIND=VALUE',
      text: 'a key of the client, such as user=42; again for more',
      repeats: true,
    },
    tier: { type: 'string', placeholder: 'NAME', text: 'the tier of the client' },
    json: { type: 'boolean', text: 'print JSON' },
  },
  examples: [
    'sluice explain policies.yaml --path /api/search --ip 192.0.2.7',
    'sluice explain policies.yaml --method POST --path /login --key user=42 --header "host: api.example.com"',
  ],
  notes: 'Exit code: 0 explained, 1 the file is wrong, 2 wrong usage, or the file cannot be read.',

  async run(values, { stdout, stderr }, [file]) {
    const text = textOfFile(file as string, UsageError)
    try {
      const { path = '/', method = 'GET', ip } = values
      const names = namesIn(readDocument(text))
      const given = keysOf(values.key, names.keys)
      if (values.tier !== undefined && names.tiers.size === 0) {
        throw new UsageError('--tier: expected none, as no policy of the document has tiers')
      }
      const keys = Object.fromEntries([...names.keys].map((name) => [name, () => given.get(name)]))
      const tiers = Object.fromEntries([...names.tiers].map((name) => [name, () => String(values.tier ?? '')]))
      const costs = Object.fromEntries([...names.costs].map((name) => [name, () => 1]))
      const loaded = await policies.from({ load: () => text, keys, tiers, costs })
      const explained = await usable(() =>
        loaded.explain({
          path: String(path),
          method: String(method),
          headers: Object.fromEntries(pairsOf(values.header, ':', '--header')),
          ...(ip !== undefined && { ip: String(ip) }),
        }),
      )
      stdout.write(values.json ? `${JSON.stringify(explained, null, 2)}\n` : explained.map(lineOf).join(''))
      return 0
    } catch (error) {
      if (!(error instanceof PoliciesError)) throw error
      stderr.write(`${error.message}\n`)
      return 1
    }
  },
}

/** Kinds that are read from the request. */
const OF_REQUEST = /^(ip|path|method|route|everyone|(header|cookie):.*)$/

/** Keys of the client by their kinds. With a misspelt kind, the client would be without that key. */
function keysOf(values: string | true | undefined, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const keys = new Map(pairsOf(values, '=', '--key'))
  const known = [...names].filter((name) => !OF_REQUEST.test(name))
  for (const kind of keys.keys()) {
    if (known.includes(kind)) continue
    const expected =
      known.length > 0 ? `a kind that the document names, ${known.join(' or ')}` : 'none, as the document names no kind'
    throw new UsageError(`--key: expected ${expected}, got ${quoted(kind)}`)
  }
  return keys
}

function pairsOf(values: string | true | undefined, separator: string, option: string): [string, string][] {
  if (typeof values !== 'string') return []
  return values.split('\n').map((pair) => {
    const at = pair.indexOf(separator)
    if (at <= 0) throw new UsageError(`${option}: expected NAME${separator}VALUE`)
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
  })
}

function lineOf({ policy, applies, why, tier, override, limits }: Explanation): string {
  if (!applies) return `- ${policy}: does not apply (${why})\n`
  const by = [
    ...(tier === undefined ? [] : [`tier ${tier}`]),
    ...(override === undefined ? [] : [`overrides[${override}]`]),
  ]
  const shown = limits.map(
    ({ name, algorithm, limit, window, unit }) =>
      `    ${name}: ${limit}${unit ? ` ${unit}` : ''} per ${typeof window === 'number' ? `${window} ms` : window}, ${algorithm}\n`,
  )
  return `+ ${policy}${by.length > 0 ? ` (${by.join(', ')})` : ''}\n${shown.join('')}`
}
