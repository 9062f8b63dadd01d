import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { gzipSync } from 'node:zlib'
import { ownFieldsOf, pathOf, propertyOf } from '@sluice/core/internal'
import type { Exchange, Reply } from '../exchange.js'
import { Problem } from '../problem.js'
import { type PageFiles, readFiles } from './files.js'

const TYPES: Readonly<Record<keyof PageFiles, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

/** Of the page alone: answers of the API have a stricter one. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** A request for a file of the page. It has no data: the page asks the API. */
interface PageRoute {
  readonly method: 'GET'
  run(exchange: Exchange): Reply
}

/** The routes of the page, by path. */
export const PAGE_ROUTES: Readonly<Record<string, PageRoute>> = Object.fromEntries(
  (Object.keys(TYPES) as (keyof PageFiles)[]).map((name) => [
    name === 'index.html' ? '/' : `/${name}`,
    { method: 'GET', run: (exchange: Exchange) => redirectOf(exchange) ?? fileReply(name, exchange.raw) },
  ]),
)

/**
 * Links of the page are relative, so that it works below any path: its own has to end in a slash. The target is relative, too,
 * as a proxy may serve it below another path. Browsers keep the fragment.
 */
function redirectOf({ raw, path }: Exchange): Reply | undefined {
  // Express and Connect take the path of the mount away from `url`.
  const target = pathOf(propertyOf(raw as { originalUrl?: string }, 'originalUrl') ?? raw.url ?? '/')
  if (path !== '/' || target.endsWith('/')) return undefined
  const last = target.slice(target.lastIndexOf('/') + 1)
  if (!/^[\w.~%-]+$/.test(last)) throw new Problem(404, 'the console has no such path')
  return { status: 308, type: 'text/plain; charset=utf-8', body: '', headers: { Location: `./${last}/` } }
}

interface Served {
  readonly plain: Buffer
  readonly compressed: Buffer
  readonly tag: string
}

const served = new Map<keyof PageFiles, Served>()

/** A file is compressed once, when it is first asked for. */
function servedFile(name: keyof PageFiles): Served {
  const known = served.get(name)
  if (known) return known
  const plain = Buffer.from(readFiles()[name])
  const tag = createHash('sha256').update(plain).digest('base64url').slice(0, 22)
  const file = { plain, compressed: gzipSync(plain, { level: 9 }), tag: `W/"${tag}"` }
  served.set(name, file)
  return file
}

function fileReply(name: keyof PageFiles, request: IncomingMessage): Reply {
  const headers = ownFieldsOf(request.headers)
  const { plain, compressed, tag } = servedFile(name)
  const isKnown = headers['if-none-match']?.split(',').some((each) => each.trim() === tag) ?? false
  const isCompressed = acceptsGzip(headers['accept-encoding'])
  return {
    status: isKnown ? 304 : 200,
    type: TYPES[name],
    body: isKnown ? '' : isCompressed ? compressed : plain,
    headers: {
      'Content-Security-Policy': CONTENT_POLICY,
      // Kept, and asked about each time: after an update all files are of one version.
      'Cache-Control': 'no-cache, no-transform',
      ETag: tag,
      Vary: 'Accept-Encoding',
      ...(isCompressed && !isKnown && { 'Content-Encoding': 'gzip' }),
    },
  }
}

function acceptsGzip(accepted = ''): boolean {
  return accepted.split(',').some((each) => /^ *gzip *(;(?! *q=0(\.0*)? *$)|$)/i.test(each))
}
