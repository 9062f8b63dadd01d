import { randomOf } from '../support/zipf.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Who stands out in a log, and by how much. */
export interface Abuser {
  readonly kind: 'slow' | 'network' | 'burst'
  /** Its address, or its network. */
  readonly client: string
  /** The window in which it is above all ordinary clients, or above all their networks. */
  readonly windowMs: number
  readonly worst: number
  /** The worst window of this length of any ordinary client, or of any of their networks. */
  readonly worstOrdinary: number
}

export interface Traffic {
  /** Lines of `$remote_addr [$msec] "$request" $status`, or of the format combined for times to the second. */
  readonly lines: string
  readonly format: string
  readonly requests: number
  readonly ordinary: readonly string[]
  readonly abusers: readonly Abuser[]
}

interface Sent {
  readonly at: number
  readonly ip: string
  readonly path: string
}

export interface Shape {
  readonly clients?: number
  readonly days?: number
  /** Whether times are to the second. */
  readonly isCoarse?: boolean
}

/** An abuser is above the others by this factor, in the window of its kind. */
const ABOVE = 3.2
const START = Date.UTC(2026, 2, 2)

/**
 * The log of a shop, and the truth about it. Ordinary clients come in sessions by day and seldom by night, a few of them often
 * (Zipf), some from one office. Among them are an abuser that is slow, one that is spread over 50 addresses of a network, and one
 * with a burst a day. Each is below ordinary clients in shorter windows than its own, or by address.
 */
export function trafficOf(seed: number, { clients = 3000, days = 3, isCoarse = false }: Shape = {}): Traffic {
  const random = randomOf(seed)
  const addresses = ordinaryAddresses(clients, random)
  const sent = addresses.flatMap((ip, rank) => sessionsOf(ip, rank, days, random))
  const worstOf = (all: readonly Sent[], clientOf: (ip: string) => string, windowMs: number) =>
    Math.max(...worstWindows(all, clientOf, windowMs).values())
  const ordinary = {
    day: worstOf(sent, itself, DAY),
    hourOfNetwork: worstOf(sent, networkOf, HOUR),
    minute: worstOf(sent, itself, MINUTE),
  }
  const slow = slowly('203.0.113.77', Math.ceil(ABOVE * ordinary.day), days, random)
  const spread = spreadOver('198.18.7', Math.ceil(ABOVE * ordinary.hourOfNetwork), random)
  const bursts = burstADay('203.0.113.200', Math.ceil(ABOVE * ordinary.minute), days, random)
  const all = [...sent, ...slow, ...spread, ...bursts].sort((a, b) => a.at - b.at)
  const truth = (
    kind: Abuser['kind'],
    client: string,
    windowMs: number,
    clientOf: (ip: string) => string,
    own: readonly Sent[],
  ): Abuser => {
    const worst = worstWindows(own, clientOf, windowMs).get(client) ?? 0
    return { kind, client, windowMs, worst, worstOrdinary: worstOf(sent, clientOf, windowMs) }
  }
  return {
    lines: all.map(isCoarse ? combinedLine : exactLine).join(''),
    format: isCoarse ? 'combined' : '$remote_addr [$msec] "$request" $status',
    requests: all.length,
    ordinary: addresses,
    abusers: [
      truth('slow', '203.0.113.77', DAY, itself, slow),
      truth('network', '198.18.7.0/24', HOUR, networkOf, spread),
      truth('burst', '203.0.113.200', MINUTE, itself, bursts),
    ],
  }
}

/** The most requests of each client within any window `(t - windowMs, t]`. */
function worstWindows(
  sent: readonly { readonly at: number; readonly ip: string }[],
  clientOf: (ip: string) => string,
  windowMs: number,
): Map<string, number> {
  const byClient = new Map<string, number[]>()
  for (const { at, ip } of sent) {
    const client = clientOf(ip)
    const times = byClient.get(client)
    if (times) times.push(at)
    else byClient.set(client, [at])
  }
  const worst = new Map<string, number>()
  for (const [client, times] of byClient) {
    times.sort((a, b) => a - b)
    let [from, most] = [0, 0]
    for (const [i, at] of times.entries()) {
      while ((times[from] as number) <= at - windowMs) from++
      most = Math.max(most, i - from + 1)
    }
    worst.set(client, most)
  }
  return worst
}

function networkOf(ip: string): string {
  return `${ip.slice(0, ip.lastIndexOf('.'))}.0/24`
}

function itself(ip: string): string {
  return ip
}

/** Every twentieth client is in one of five offices, the others mostly alone in their network. */
function ordinaryAddresses(clients: number, random: () => number): string[] {
  const all = new Set<string>()
  while (all.size < clients) {
    const host = 1 + Math.floor(random() * 254)
    const isOfOffice = all.size % 20 === 7
    const network = isOfOffice
      ? `192.0.${Math.floor(random() * 5)}`
      : `100.${Math.floor(random() * 64)}.${Math.floor(random() * 256)}`
    all.add(`${network}.${host}`)
  }
  return [...all]
}

const PAGES = ['/', '/products', '/products/:id', '/products/:id', '/search?q=shoes', '/cart', '/login']

function sessionsOf(ip: string, rank: number, days: number, random: () => number): Sent[] {
  const sent: Sent[] = []
  const sessions = Math.max(1, Math.round((12 * days) / (rank + 1) ** 0.6))
  for (let session = 0; session < sessions; session++) {
    let at = START + timeOfDay(random) + Math.floor(random() * days) * DAY
    const pages = 1 + Math.floor(random() * 6)
    for (let page = 0; page < pages; page++) {
      sent.push({ at, ip, path: pageOf(random) })
      for (let asset = Math.floor(random() * 4); asset > 0; asset--) {
        sent.push({ at: at + Math.floor(random() * 1500), ip, path: `/assets/${asset}.js` })
      }
      at += 2000 + Math.floor(-Math.log(1 - random()) * 20_000)
    }
  }
  return sent
}

/** Nine of ten sessions begin between 7:00 and 23:00. */
function timeOfDay(random: () => number): number {
  return Math.floor((random() < 0.9 ? 7 + random() * 16 : random() * 7) * HOUR)
}

function pageOf(random: () => number): string {
  const page = PAGES[Math.floor(random() * PAGES.length)] as string
  return page.replace(':id', String(1000 + Math.floor(random() * 9000)))
}

/** Evenly through the day, at so many a day. */
function slowly(ip: string, perDay: number, days: number, random: () => number): Sent[] {
  const every = DAY / (perDay + 1)
  return Array.from({ length: perDay * days }, (_, i) => {
    return { at: START + Math.floor(i * every + (random() * every) / 2), ip, path: `/products/${1000 + i}` }
  })
}

/** From 50 addresses in turn, for five hours of the second day at so many an hour. */
function spreadOver(network: string, perHour: number, random: () => number): Sent[] {
  const every = HOUR / (perHour + 1)
  return Array.from({ length: 5 * perHour }, (_, i) => {
    const at = START + DAY + 12 * HOUR + Math.floor(i * every + (random() * every) / 2)
    return { at, ip: `${network}.${10 + (i % 50)}`, path: '/login' }
  })
}

/** So many within half a minute, once a day, and nothing else. */
function burstADay(ip: string, requests: number, days: number, random: () => number): Sent[] {
  return Array.from({ length: days }, (_, day) => {
    const from = START + day * DAY + Math.floor((8 + random() * 12) * HOUR)
    return Array.from({ length: requests }, () => {
      return { at: from + Math.floor(random() * 30_000), ip, path: `/search?q=${Math.floor(random() * 100)}` }
    })
  }).flat()
}

function exactLine({ at, ip, path }: Sent): string {
  return `${ip} [${(at / 1000).toFixed(3)}] "GET ${path} HTTP/1.1" 200\n`
}

function combinedLine({ at, ip, path }: Sent): string {
  const [, day, month, year, time] = new Date(at).toUTCString().split(' ')
  return `${ip} - - [${day}/${month}/${year}:${time} +0000] "GET ${path} HTTP/1.1" 200 12 "-" "Mozilla/5.0"\n`
}
