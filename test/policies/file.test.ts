import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { events, type PoliciesReloadedEvent } from '@sluice/core'
import { type Policies, policies } from '@sluice/policies'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'

let folder: string
let file: string
let loaded: Policies

const document = (...limits: number[]) =>
  `version: 1\npolicies:\n${limits.map((limit, i) => `  p${i}: { limits: [{ limit: ${limit}, window: 1m }] }\n`).join('')}`

/** The limits per minute of the policies in force. */
const inForce = () => [...loaded.byName.values()].map(({ options }) => options.limits?.[0]?.limit)

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'policies-'))
  file = join(folder, 'policies.yaml')
  writeFileSync(file, document(1, 2, 3))
  loaded = await policies.from({ file })
})

afterEach(async () => {
  await loaded.close()
  rmSync(folder, { recursive: true })
})

describe('an edited file comes into force', () => {
  test('listeners of the policies and of the process receive one policies-reloaded event per edit', async () => {
    const received: PoliciesReloadedEvent[] = []
    const stop = events.on('policies-reloaded', (event) => void (event.source === file && received.push(event)))
    loaded.on('policies-reloaded', (event) => received.push(event))
    const previous = loaded.version
    writeFileSync(file, document(4, 2, 3, 5))
    await until('both have received it', () => received.length === 2)
    stop()
    expect(received[0]).toEqual({ source: file, version: loaded.version, previous, policies: 4 })
    expect(received[1]).toBe(received[0])
  })

  test('a file written in place comes into force', async () => {
    writeFileSync(file, document(4, 2, 3))
    await until('the file is looked at', () => inForce()[0] === 4)
  })

  test('a file renamed onto the path, as by editors, comes into force', async () => {
    writeFileSync(join(folder, 'new'), document(5, 2, 3))
    renameSync(join(folder, 'new'), file)
    await until('the file is looked at', () => inForce()[0] === 5)
  })

  test('a link whose target folder is exchanged, as by Kubernetes, comes into force', async () => {
    await loaded.close()
    for (const [name, limit] of [
      ['one', 6],
      ['two', 7],
    ] as const) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'p.yaml'), document(limit, 2, 3))
    }
    symlinkSync('one', join(folder, '..data'))
    symlinkSync('..data/p.yaml', join(folder, 'linked.yaml'))
    loaded = await policies.from({ file: join(folder, 'linked.yaml') })
    expect(inForce()[0]).toBe(6)
    symlinkSync('two', join(folder, '..next'))
    renameSync(join(folder, '..next'), join(folder, '..data'))
    await until('the file is looked at', () => inForce()[0] === 7)
  })
})

describe('invalid states of a file', () => {
  test('a file cut off at the end of a line leaves the last version in force', async () => {
    writeFileSync(file, document(9))
    await until('the file is looked at', () => loaded.error !== undefined)
    expect(loaded.error?.message).toMatch(/at least half of the 6 .*, got 2/)
    expect(inForce()).toEqual([1, 2, 3])
  })

  test('a deleted file leaves the last version in force, and is loaded once it is back', async () => {
    unlinkSync(file)
    await until('the file is looked at', () => loaded.error !== undefined)
    expect(loaded.error?.message).toMatch(/ENOENT/)
    expect(inForce()).toEqual([1, 2, 3])
    writeFileSync(file, document(8, 2, 3))
    await until('the file is looked at', () => inForce()[0] === 8 && loaded.error === undefined)
  })

  test('a file with mistakes leaves the last version in force, and is loaded once it is corrected', async () => {
    writeFileSync(file, document(4, 2, 3).replace('limit: 4', 'limit: four'))
    await until('the file is looked at', () => loaded.error !== undefined)
    expect(loaded.error?.message).toContain(`${file}:3:`)
    expect(inForce()).toEqual([1, 2, 3])
    writeFileSync(file, document(4, 2, 3))
    await until('the file is looked at', () => inForce()[0] === 4 && loaded.error === undefined)
  })
})

test('the error of a missing file contains its name', async () => {
  await expect(policies.from({ file: join(folder, 'none.yaml') })).rejects.toThrow(
    /none\.yaml: expected a document that can be read/,
  )
})
