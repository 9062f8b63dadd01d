// Release: packages as users have them.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const express = fileURLToPath(new URL('../../packages/express/dist/index.js', import.meta.url))

test('a list in a file does not keep a process alive, nor ends one that waits for it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lists-'))
  try {
    const file = join(folder, 'deny.txt')
    writeFileSync(file, '192.0.2.1\n')
    const program = `import { fileList, rateLimit } from ${JSON.stringify(express)}
      const deny = fileList(${JSON.stringify(file)})
      await deny.ready()
      const { limiter } = rateLimit({ limit: 1, window: '1h', deny })
      console.log((await limiter.consume('192.0.2.1')).reason)`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
    expect(stdout).toBe('denied\n')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
