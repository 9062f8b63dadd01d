/** The number that is in force for a client, worked out from all overrides that there are. */

export interface Client {
  readonly user: string
  readonly ip: string
  readonly tier: string
}

export interface DocumentOverride {
  readonly key?: { readonly user?: string; readonly ip?: string }
  readonly prefix?: { readonly user: string }
  readonly range?: string
  readonly number: number
  /** Undefined for none. */
  readonly until: number | undefined
}

export interface World {
  readonly tiers: Readonly<Record<string, number>>
  readonly document: readonly DocumentOverride[]
  /** Beside the document, by `user=…` or `ip=…`. */
  readonly table: ReadonlyMap<string, { readonly number: number; readonly until: number }>
}

export function numberFor({ tiers, document, table }: World, { user, ip, tier }: Client, at: number): number {
  const inForce = document.filter(({ until }) => until === undefined || until > at)
  const stored = (client: string) => {
    const found = table.get(client)
    return found && found.until > at ? found.number : undefined
  }
  const ofUser = inForce.find(({ key }) => key?.user === user)?.number ?? stored(`user=${user}`)
  if (ofUser !== undefined) return ofUser
  const ofAddress = inForce.find(({ key }) => key?.ip === ip)?.number ?? stored(`ip=${ip}`)
  if (ofAddress !== undefined) return ofAddress
  const ranges = inForce.filter(({ range }) => range !== undefined && isWithin(ip, range))
  const [smallest] = ranges.sort((a, b) => bitsOf(b) - bitsOf(a))
  if (smallest) return smallest.number
  const prefixes = inForce.filter(({ prefix }) => prefix !== undefined && user.startsWith(prefix.user))
  const [longest] = prefixes.sort((a, b) => (b.prefix?.user.length ?? 0) - (a.prefix?.user.length ?? 0))
  return longest?.number ?? (tiers[tier] as number)
}

function bitsOf({ range = '' }: DocumentOverride): number {
  return Number(range.split('/')[1])
}

function isWithin(ip: string, range: string): boolean {
  const [network = '', bits] = range.split('/')
  const size = 2 ** (32 - Number(bits))
  return Math.floor(wordOf(ip) / size) === Math.floor(wordOf(network) / size)
}

function wordOf(ip: string): number {
  return ip.split('.').reduce((word, part) => word * 256 + Number(part), 0)
}
