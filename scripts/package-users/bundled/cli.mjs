// The command `validate`.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { main } from './support.mjs'

const DOCUMENT = 'version: 1\npolicies:\n  api: { limits: [{ limit: 100, window: 1h }] }\n'

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundled-'))
  const document = join(folder, 'policies.yaml')
  writeFileSync(document, DOCUMENT)

  let text = ''
  const output = { write: (/** @type {string} */ part) => (text += part) }
  const code = await run(['validate', document], { env: {}, stdout: output, stderr: output, version: '0.0.0' })
  assert.equal(code, 0, text)
  rmSync(folder, { recursive: true })
})
