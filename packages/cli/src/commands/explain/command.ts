import { type Explanation, PoliciesError, policies, readDocument } from '@sluice/policies'
import { textOfFile } from '../../documents/file.js'
import { namesIn } from '../../documents/names.js'
import type { Command } from '../../program/command.js'
import { UsageError } from '../../program/usage-error.js'

export const explain: Command = {
  name: 'explain',
  summary: 'show which policies of a file apply to a request, and why others do not',
  description: `Shows of each policy of a file whether it applies to a request, by which tier and override, and why not.
It asks no Redis.`,
  operands: { placeholder: 'FILE', least: 1, most: 1 },
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
  notes: 'Exit code: 0 explained, 1 the file is wrong, 2 wrong usage.',

  async run(values, { stdout, stderr }, [file]) {
    const text = textOfFile(file as string)
    try {
      const { path = '/', method = 'GET', ip } = values
      const given = Object.fromEntries(pairsOf(values.key, '=', '--key'))
      const names = namesIn(readDocument(text))
      const keys = Object.fromEntries([...names.keys].map((name) => [name, () => given[name]]))
      const tiers = Object.fromEntries([...names.tiers].map((name) => [name, () => String(values.tier ?? '')]))
      const costs = Object.fromEntries([...names.costs].map((name) => [name, () => 1]))
      const loaded = await policies.from({ load: () => text, keys, tiers, costs })
      const explained = await loaded.explain({
        path: String(path),
        method: String(method),
        headers: Object.fromEntries(pairsOf(values.header, ':', '--header')),
        ...(ip !== undefined && { ip: String(ip) }),
      })
      stdout.write(values.json ? `${JSON.stringify(explained, null, 2)}\n` : explained.map(lineOf).join(''))
      return 0
    } catch (error) {
      if (!(error instanceof PoliciesError)) throw error
      stderr.write(`${error.message}\n`)
      return 1
    }
  },
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
      `    ${name}: ${limit}${unit ? ` ${unit}` : ''} per ${window} ms, ${algorithm}\n`,
  )
  return `+ ${policy}${by.length > 0 ? ` (${by.join(', ')})` : ''}\n${shown.join('')}`
}
