// A replay of a log of more than 4 MB, which is read in a thread of its own.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { simulate } from '@sluice/simulate'
import { main } from './support.mjs'

const LINE =
  '192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 2326 "-" "Mozilla/5.0 (X11; Linux x86_64)"\n'
const DOCUMENT = { version: 1, policies: { api: { limits: [{ limit: 100, window: '1h' }] } } }

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundled-'))
  const log = join(folder, 'access.log')
  writeFileSync(log, LINE.repeat(50_000))
  const { refused } = await simulate({ logs: [log], document: DOCUMENT })
  assert.equal(refused[0]?.refused, 49_900)
  rmSync(folder, { recursive: true })
})
