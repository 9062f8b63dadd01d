import { join } from 'node:path'
import { optimise, scriptsOf, sourceIn, withSections } from '@sluice/lua-optimiser'
import { describe, expect, test } from 'vitest'
import { withThrowawayRedis } from '../../scripts/lib/throwaway-redis.js'

test('an optimised script does the same in Redis', async () => {
  const source = `
    local call, floor, max, min = redis.call, math.floor, math.max, math.min
    local packBytes, unpackBytes = struct.pack, struct.unpack
    local kept, seen, look, take = {}, 0, {}, {}
    local function drain(debt, since, at)
      if at <= since then return debt end
      return max(0, debt - (at - since))
    end
    local function entry(i)
      seen = seen + 1
      if i > 3 then return (unpackBytes('>I2', packBytes('>I2', i * i))) end
      return i
    end
    local function search(of, from, to)
      while from < to do
        local middle = floor((from + to) / 2)
        if of(middle) > 10 then to = middle else from = middle + 1 end
      end
      return from
    end
    look[1] = function(key, at)
      kept[1] = (call('GET', key) or 7) + 0
      kept[1] = drain(kept[1], 3, at)
      return search(entry, 1, 20)
    end
    take[1] = function(key, cost) call('SET', key, kept[1] + cost) end
    local out, kinds = {}, tonumber(ARGV[1])
    for c = 1, kinds do
      for step = 1, 5 do
        local found = look[c](KEYS[c], step)
        if found > 3 and step ~= 2 then take[c](KEYS[c], min(found, step)) end
        out[#out + 1] = found .. ',' .. kept[c] .. ',' .. seen
      end
    end
    return table.concat(out, ' ') .. ' ' .. call('GET', KEYS[1])`
  await withThrowawayRedis(async (redisCli) => {
    const run = async (script: string) => {
      await redisCli(['FLUSHALL'])
      return redisCli(['EVAL', script, '1', 'key', '1'])
    }
    const before = await run(source)
    expect(before).toMatch(/^4,7,\d+ .* \d+$/)
    expect(await run(optimise(source))).toBe(before)
    const known = optimise(source, { kinds: 1 })
    expect(await run(known)).toBe(before)
    expect(known).not.toContain('function')
  })
})

describe('the scripts for batches that are alike, and for one charge', () => {
  const scripts = scriptsOf(sourceIn(join(import.meta.dirname, '../../lua')), undefined, true)
  const without = (name: string) => withSections(scripts[name] ?? '', { bans: false, turns: false })
  const functions = (text = '') => text.match(/^.*\bfunction\b.*$/gm) ?? []

  test.each(['bucket', 'counter', 'segments', 'concurrency'])(
    'the script decide-%s makes no function, and a table only for several replies',
    (kind) => {
      expect(functions(scripts[`decide-${kind}`])).toEqual([])
      const script = without(`decide-${kind}`)
      expect(new Set(script.match(/^.*\{.*$/gm)?.map((line) => line.trim()))).toEqual(new Set(['more = more or {}']))
    },
  )

  test.each(['bucket', 'counter', 'segments', 'concurrency'])(
    'the script one-%s makes neither functions nor tables',
    (kind) => {
      expect(scripts[`one-${kind}`]).not.toMatch(/\bfunction\b|\{/)
    },
  )

  test('the script one-log makes functions only for a log rewritten or read whole, and no tables', () => {
    for (const line of functions(scripts['one-log']))
      expect(line).toMatch(/^ {2,}local function log_(rewrite|advanceAll)\(/)
    expect(scripts['one-log']).not.toContain('{')
  })

  test.each(['log', 'logs'])('the script decide-%s makes functions only for a log rewritten or read whole', (kind) => {
    for (const line of functions(scripts[`decide-${kind}`]))
      expect(line).toMatch(/^ {6,}local function log_(rewrite|advanceAll)\(/)
  })
})
