import { networkText } from '@sluice/core/internal'
import { PathGroups } from '../figures/path-groups.js'
import type { RecordContext } from '../replay/record-context.js'
import { ClientWindows } from './client-windows.js'

/** Groups of paths that are counted apart. Paths of further ones are counted among all alone. */
const MAX_GROUPS = 1000

/** How networks are grouped, as the key of a document. */
export const NETWORK_KEY = { ip: { ipv4Prefix: 24, ipv6Prefix: 48 } } as const

/** The requests of a group of paths, by client. */
export class GroupTraffic {
  /** The pattern of its paths. Undefined for all paths. */
  readonly pattern: string | undefined
  requests = 0
  readonly clients: ClientWindows
  readonly networks: ClientWindows

  constructor(pattern: string | undefined, lengths: readonly number[]) {
    this.pattern = pattern
    this.clients = new ClientWindows(lengths)
    this.networks = new ClientWindows(lengths)
  }

  count(client: string, network: string | undefined, at: number, isGood: boolean): void {
    this.requests++
    this.clients.count(client, at, isGood)
    if (network !== undefined) this.networks.count(network, at, isGood)
  }
}

/** The requests of a log, together and by groups of paths, each with the worst windows of its clients and their networks. */
export class Traffic {
  readonly all: GroupTraffic
  readonly byPattern = new Map<string, GroupTraffic>()
  /** Whether there were more groups of paths than are counted apart. */
  hasMoreGroups = false
  firstMs: number | undefined
  lastMs = 0
  readonly #paths = new PathGroups()
  readonly #lengths: readonly number[]

  /** @param lengths of windows, in ms, ascending */
  constructor(lengths: readonly number[]) {
    this.#lengths = lengths
    this.all = new GroupTraffic(undefined, lengths)
  }

  count(context: RecordContext): void {
    const { address, arrivedAt: at, isGood } = context
    this.firstMs ??= at
    this.lastMs = at
    const network = networkOf(address)
    this.all.count(address, network, at, isGood)
    this.#groupOf(context.path)?.count(address, network, at, isGood)
  }

  #groupOf(path: string): GroupTraffic | undefined {
    const pattern = this.#paths.patternOf(path)
    if (pattern === undefined) return undefined
    let group = this.byPattern.get(pattern)
    if (!group) {
      if (this.byPattern.size >= MAX_GROUPS) {
        this.hasMoreGroups = true
        return undefined
      }
      group = new GroupTraffic(pattern, this.#lengths)
      this.byPattern.set(pattern, group)
    }
    return group
  }
}

/** The network of a client, as its first address where it is of IPv4: those have tables of their own. Undefined for no address. */
export function networkOf(address: string): string | undefined {
  if (!address.includes(':')) {
    const end = address.lastIndexOf('.')
    return end > 0 ? `${address.slice(0, end)}.0` : undefined
  }
  return networkText(`${address.split('/', 1)[0]}/${NETWORK_KEY.ip.ipv6Prefix}`)
}

/** The name of a network by that in its table. */
export function networkName(name: string): string {
  return name.includes('/') ? name : `${name}/${NETWORK_KEY.ip.ipv4Prefix}`
}
