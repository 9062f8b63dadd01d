// The command `validate`, and a replay of a log of more than 4 MB, which is read in a thread of its own.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { simulate } from '@sluice/cli/simulate'
import { main } from './support.mjs'

const LINE =
  '192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 2326 "-" "Mozilla/5.0 (X11; Linux x86_64)"\n'
const DOCUMENT = 'version: 1\npolicies:\n  api: { limits: [{ limit: 100, window: 1h }] }\n'

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundled-'))
  const document = join(folder, 'policies.yaml')
  const log = join(folder, 'access.log')
  writeFileSync(document, DOCUMENT)
  writeFileSync(log, LINE.repeat(50_000))

  let text = ''
  const output = { write: (/** @type {string} */ part) => (text += part) }
  const code = await run(['validate', document], { env: {}, stdout: output, stderr: output, version: '0.0.0' })
  assert.equal(code, 0, text)
  const { refused } = await simulate({ files: [log], document })
  assert.equal(refused[0]?.refused, 49_900)
  rmSync(folder, { recursive: true })
})
