import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startThrowawayRedis } from '../../scripts/lib/throwaway-redis.js'
import { closedAfterEach } from '../support/closed-after-each.js'

const open = closedAfterEach()

test('a server that has ended has no module load a second time, by the path of a link', async () => {
  const { resolve } = createRequire(import.meta.url)
  const dir = mkdtempSync(join(tmpdir(), 'sluice-modules-'))
  open.push(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'real', 'module.js')
  mkdirSync(join(dir, 'real'))
  writeFileSync(file, '')
  expect(resolve(file)).toBe(file)
  symlinkSync(join(dir, 'real'), join(dir, 'link'))
  const { end } = await startThrowawayRedis()
  await end()
  expect(resolve(join(dir, 'link', 'module.js'))).toBe(file)
})
