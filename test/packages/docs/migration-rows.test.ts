// Release: runs the documentation. Runs alone: it stops the clock of its process.
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { endRow, stopClock, stopRedis } from './rows/environment.js'
import { ROWS as express } from './rows/express-rate-limit.js'
import { ROWS as fastify } from './rows/fastify-rate-limit.js'
import { ROWS as koa } from './rows/koa-ratelimit.js'
import { ROWS as nest } from './rows/nestjs-throttler.js'
import { ROWS as flexible } from './rows/rate-limiter-flexible.js'
import { closeAll, type Rows, type Tried } from './rows/row.js'

const PAGES: Readonly<Record<string, Rows>> = {
  'migrating-from-express-rate-limit.md': express,
  'migrating-from-fastify-rate-limit.md': fastify,
  'migrating-from-koa-ratelimit.md': koa,
  'migrating-from-nestjs-throttler.md': nest,
  'migrating-from-rate-limiter-flexible.md': flexible,
}

beforeEach(stopClock)
afterEach(async () => {
  closeAll()
  await endRow()
})
afterAll(stopRedis)

/** The text of a page, and the first cells of its tables. */
function read(page: string): { text: string; cells: string[] } {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8')
  const rows = text.split('\n').filter((line) => /^\| +[^|\s]/.test(line) && !/^\|[-|]+$/.test(line))
  // The first row of a table has its titles.
  const titles = new Set(text.match(/^\|.*(?=\n\|-)/gm))
  return {
    text: text.replace(/\s+/g, ' '),
    cells: rows.filter((row) => !titles.has(row)).map((row) => (row.split('|')[1] as string).trim()),
  }
}

const show = (seen: unknown) => (typeof seen === 'string' ? seen : JSON.stringify(seen))
const table: string[] = []
afterAll(() => {
  if (byEffort({ usual: false, full: true })) console.log(table.join('\n'))
})

describe.each(Object.entries(PAGES))('%s', (page, rows) => {
  const { text, cells } = read(page)
  const tried = Object.entries(rows).flatMap(([cell, row]) =>
    'why' in row ? [] : [row].flat().map((each, n) => [`${cell}${n > 0 ? ` (${n + 1})` : ''}`, each as Tried] as const),
  )

  test('each row of the page is tried, or says why it is not', () => {
    expect(Object.keys(rows).sort()).toEqual([...new Set(cells)].sort())
  })

  test.each(tried)('%s', async (cell, { peer, ours, shows, words }) => {
    const seen = { peer: await peer(), ours: await ours() }
    table.push(`| ${page} | ${cell} | ${show(seen.peer)} | ${show(seen.ours)} |`)
    expect(seen).toEqual(shows)
    if (words !== undefined) expect(text).toContain(words)
  })
})
