/** A request, and its name in the report. */
export interface HostileRequest {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Places of hostile text: the name of a header, the path or its query, with the beginning of the text. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  path: ['/', '/login', '/a/', 'http://example.com/'],
  query: ['/login?'],
  cookie: ['', 'sid=', 'sid ="', 'sid=j:'],
  authorization: ['', 'Bearer ', 'Basic ', 'Digest '],
  'x-key': [''],
  accept: ['', 'text/plain'],
  'accept-encoding': [''],
  host: ['', '['],
  'x-forwarded-for': ['', '192.0.2.7, '],
  'sec-purpose': [''],
  referer: [''],
  'user-agent': [''],
}

/** Repeated units: every text with a meaning somewhere, and texts that look similar. */
const UNITS: readonly string[] = [
  ...[
    'a',
    'A',
    '\xe9',
    '\xa0',
    '\xa0;',
    ' ',
    '\t',
    ' \t',
    'a ',
    ' a',
    '0',
    '1.',
    '-',
    '_',
    '~',
    '*',
    '(',
    '.',
    ':',
    '|',
    '\\',
    '\\|',
  ],
  ...['%', '%%', '%/', '%61', '%ff', '%c3', '%C3%A9', '%F0%9F%98%80', '%2', '%2f', '%5c%/', '%00', '%25', '%252f'],
  ...['/', '//', './', '../', 'x/../', '/..;', ';/', ';a=b/', '%3b/', '%2e%2e/', '\\/', 'a/', '/%2F'],
  ...['..;/', '.;/', 'a;/', 'a%2f', 'a\\', '%5c', '%3b', 'x//', 'A/', '/.', 'a/b/../', '%c3%a9/'],
  ...[
    ';',
    ';;',
    '=',
    '==',
    ';=',
    'a=b;',
    'a=b; ',
    's;',
    's=',
    'sid',
    'sid;',
    'sid=',
    'sid =%;',
    'sid =j:;',
    'sid =a;',
    'sid\t=a; ',
    'sid\xa0=a;',
  ],
  ...['sid=%;', '"', '",', '""', 'a=b ', 'a="b", ', 'YWFh', '////', '__'],
  ...[',', ', ', ' ,', 'a,', 'a b,', 'a/b,', '*/*,', ';q=0', ';q=0.1,', 'q=', 'gzip;q=0,'],
  ...['127.0.0.1,', '127.0.0.1 , ', '::1,', '::ffff:127.0.0.1,', '192.0.2.7,', '[::1]:80,', 'for=127.0.0.1,'],
  ...[
    '{',
    '[',
    '[]',
    '{"a":',
    '[1,',
    '"\\u0061',
    '\\u',
    'j:',
    'null,',
    '?',
    '&',
    '?a=b&',
    '#',
    '+',
    'prefetch',
    'prefetc',
    '@',
  ],
]

const repeated = (unit: string, length: number) => unit.repeat(Math.max(1, Math.floor(length / unit.length)))

/**
 * Requests with one long text of repeated units: all in the places that are `read`, and some in every other. All together
 * would be hundreds of megabytes.
 */
export function hostileRequests(length: number, isHttp2: boolean, read: readonly string[]): HostileRequest[] {
  let made = 0
  return Object.entries(PLACES).flatMap(([place, starts]) =>
    starts.flatMap((start) =>
      UNITS.flatMap((unit): HostileRequest[] => {
        if (made++ % 23 !== 0 && !read.includes(place)) return []
        const text = (start + repeated(unit, length - start.length)).trim()
        const isPath = place === 'path' || place === 'query'
        // A client cannot send these.
        if (text === '' || (isPath && (/[\s]/.test(text) || (isHttp2 && !text.startsWith('/'))))) return []
        const name = `${place}: ${JSON.stringify(start + unit)} …`
        const headers = { 'x-key': 'a', ...(!isHttp2 && { host: 'a.example.com' }) }
        if (isPath) return [{ name, method: 'GET', path: text, headers }]
        return [
          {
            name,
            method: 'GET',
            path: '/login',
            headers: { ...headers, [isHttp2 && place === 'host' ? ':authority' : place]: text },
          },
        ]
      }),
    ),
  )
}

/** The forms in which gateways describe requests to a decider. */
const DESCRIBED: Readonly<Record<string, readonly [method: string, uri: string, host: string, client: string]>> = {
  nginx: ['x-original-method', 'x-original-uri', 'x-original-host', 'x-original-for'],
  haproxy: ['x-original-method', 'x-original-uri', 'x-original-host', 'x-original-for'],
  'forward-auth': ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-for'],
}

/** The same requests, as a gateway forwards them. */
export function describedByGateway(dialect: string, requests: readonly HostileRequest[]): HostileRequest[] {
  const [method, uri, host, client] = DESCRIBED[dialect] as (typeof DESCRIBED)[string]
  return requests.map(({ name, path, headers: { host: wanted = 'a', 'x-forwarded-for': chain, ...headers } }) => ({
    name,
    method: 'GET',
    path: '/v1/decide',
    headers: {
      ...headers,
      [method]: 'GET',
      [uri]: path,
      [host]: wanted,
      [client]: chain ?? '192.0.2.7',
      host: 'decider',
    },
  }))
}

/** The requests in one body, and the characters of the long text in each. */
export const BATCH = 100
const IN_BATCH = 1500

/** The same requests in JSON, each alone or as a batch. */
export function describedInJson(requests: readonly HostileRequest[], isBatch: boolean): HostileRequest[] {
  return requests.flatMap(({ name, path, headers }): HostileRequest[] => {
    if (!/^\/[^\s\\]*$/.test(path)) return []
    const cut = (text: string) => (isBatch ? text.slice(0, IN_BATCH) : text)
    const short = Object.fromEntries(Object.entries(headers).map(([field, value]) => [field, cut(value)]))
    const described = {
      method: 'GET',
      path: cut(path),
      ip: '192.0.2.7',
      headers: short,
      keys: { user: cut(headers['x-key'] ?? 'a') },
    }
    const body = JSON.stringify(isBatch ? { requests: Array(BATCH).fill(described) } : described)
    const sent = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      host: 'decider',
    }
    return [
      {
        name: isBatch ? `${name} × ${BATCH}` : name,
        method: 'POST',
        path: '/v1/decide',
        headers: sent,
        body,
      },
    ]
  })
}
