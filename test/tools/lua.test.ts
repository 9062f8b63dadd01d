import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { CELL_KINDS } from '@sluice/core/internal'
import type { KernelName } from '@sluice/core/store'
import { cellKindsOf, sourceIn } from '@sluice/lua-optimiser'
import { describe, expect, test } from 'vitest'
import { refusedByRedis, renderModule, scriptOf } from '../../scripts/generate/lua.js'

const shared = { ops: { PEEK: 1 }, flags: { TOGETHER: 16 }, outcomes: { ADMITTED: 1 } }

const kind = { params: 4, goesTogether: false, hasPermits: false, isExchanged: false, scripts: [], calls: [] }
const kinds = [
  { ...kind, name: 'bucket', number: 1, goesTogether: true },
  { ...kind, name: 'log', number: 2, calls: [['ZADD', '0', 'a']] },
]

describe('the generated module', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: everything that a template literal would interpret
  const source = 'local s = "`${x}` \\n \\\\ $ é"\nreturn s'

  test('the generated module has each script unchanged, with its sha1', async () => {
    const script = scriptOf('shadow-ban', source)
    const javascript = renderModule([script], kinds, shared)
      .replace(/export interface [^}]*}/, '')
      .replace(': LuaScript', '')
      .replace(/: Readonly<Record.*>> =/, ' =')
      .replaceAll(' as const', '')
      .replace(/ satisfies .*/, '')
    const module = await import(`data:text/javascript,${encodeURIComponent(javascript)}`)

    expect(module.shadowBanScript).toEqual({
      name: 'shadow-ban',
      sha1: createHash('sha1').update(source).digest('hex'),
      source,
    })
    expect(module).toMatchObject({
      KINDS: ['bucket', 'log'],
      TOGETHER_KINDS: ['bucket'],
      KIND_CALLS: { bucket: [], log: [['ZADD', '0', 'a']] },
      TOGETHER: 16,
      ADMITTED: 1,
    })
  })

  test('the generated module is the same for the same Lua', () => {
    const render = () => renderModule([scriptOf('a', source)], kinds, shared)
    expect(render()).toBe(render())
  })
})

describe('Redis', () => {
  test('Redis accepts a script by the computed sha1, also with non-ASCII text', async () => {
    expect(await refusedByRedis([scriptOf('good', 'return "é"')])).toEqual([])
  })

  test('Redis rejects a script that does not compile, and the problem names it', async () => {
    const problems = await refusedByRedis([
      scriptOf('good', 'return 1'),
      scriptOf('broken', 'local function ( return end'),
    ])
    expect(problems).toEqual([expect.stringMatching(/^broken: Redis says: .*compiling script.*expected near/s)])
  })
})

describe('a kind of cell', () => {
  const lua = sourceIn(join(import.meta.dirname, '../../lua'))

  test.each(cellKindsOf(lua))(
    'a kind of cell is the same in lua/cells and in the port: $name',
    ({ name, hasPermits, scripts }) => {
      const kind = CELL_KINDS[name as KernelName]
      expect(hasPermits).toBe(kind.hasPermits)
      // A joint kind has a size, which its scripts for several cells under one key need.
      const hasSize = lua.read(`cells/${name}`)?.includes(`size[${name.toUpperCase()}] =`)
      expect(hasSize).toBe(kind.canBeJoint)
      expect(scripts.some(({ isJoint }) => isJoint) && !kind.canBeJoint).toBe(false)
    },
  )
})
