// Lists of ranges: loads one from a file, and looks addresses up in it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { BlockList, isIPv4 } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileList } from '@sluice/core'
import { answer } from '../lib/child.js'

const LOOK_UPS = 200_000
const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

answer({
  /** @param {{ ranges: number, rounds: number }} load */
  async measure({ ranges, rounds }) {
    const random = seeded(7)
    const lines = Array.from({ length: ranges }, () => range(random))
    const path = join(folder, `${ranges}.txt`)
    writeFileSync(path, lines.join('\n'))
    /** @type {number[]} */
    const loadMs = []
    /** @type {number[]} */
    const heldMs = []
    for (let n = 0; n < rounds; n++) {
      const watch = watchLoop()
      const startedMs = performance.now()
      const list = fileList(path)
      await list.ready()
      loadMs.push(performance.now() - startedMs)
      heldMs.push(watch.end())
      await list.close()
    }
    globalThis.gc?.()
    const before = bytes()
    const list = fileList(path)
    await list.ready()
    await list.close()
    globalThis.gc?.()
    const taken = bytes() - before
    const hits = Array.from({ length: 4096 }, () => (random() < 0.5 ? address(random) : anyIn(random, lines)))
    return {
      loadMs,
      // Other programs delay a different turn in each round.
      heldMs: Math.min(...heldMs),
      bytes: taken,
      nsIPv4: nsPer(hits.filter(isIPv4), (value) => list.match({ kind: 'ip', value })),
      nsIPv6: nsPer(
        hits.filter((hit) => !isIPv4(hit)),
        (value) => list.match({ kind: 'ip', value }),
      ),
    }
  },

  /** The BlockList of Node, with networks alone. @param {{ ranges: number }} load */
  async ofNode({ ranges }) {
    const random = seeded(7)
    const list = new BlockList()
    for (let n = 0; n < ranges; ) {
      const [base = '', bits] = range(random).split('/')
      if (bits === undefined) continue
      list.addSubnet(base, Number(bits), isIPv4(base) ? 'ipv4' : 'ipv6')
      n++
    }
    const values = Array.from({ length: 256 }, () => address(random))
    return nsPer(values, (value) => list.check(value, isIPv4(value) ? 'ipv4' : 'ipv6'), 4000)
  },
})

/** The least of eleven rounds, in ns of CPU: other programs can only add to it. @param {string[]} values @param {(value: string) => unknown} look */
function nsPer(values, look, count = LOOK_UPS) {
  const mask = 2 ** Math.floor(Math.log2(values.length)) - 1
  const figures = Array.from({ length: 11 }, () => {
    const before = process.cpuUsage()
    for (let i = 0; i < count; i++) look(/** @type {string} */ (values[i & mask]))
    const { user, system } = process.cpuUsage(before)
    return ((user + system) * 1000) / count
  })
  return figures.sort((one, other) => one - other)[0]
}

function bytes() {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** The longest delay of a timer of 1 ms, until it is ended. */
function watchLoop() {
  let longest = 0
  let last = performance.now()
  let isDone = false
  const turn = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last - 1)
    last = now
    if (!isDone) setTimeout(turn, 1)
  }
  setTimeout(turn, 1)
  return {
    end() {
      isDone = true
      return longest
    },
  }
}

/** @param {() => number} random */
function address(random) {
  const part = (/** @type {number} */ max) => Math.floor(random() * max)
  return random() < 0.5
    ? `${1 + part(223)}.${part(256)}.${part(256)}.${part(256)}`
    : `2001:${part(65_536).toString(16)}:${part(65_536).toString(16)}:${part(65_536).toString(16)}::${part(65_536).toString(16)}`
}

/** A network, an address or two addresses, of either family. @param {() => number} random */
function range(random) {
  const from = address(random)
  const form = random()
  if (form < 0.2) return from
  if (form < 0.8) return `${from}/${isIPv4(from) ? 12 + Math.floor(random() * 21) : 32 + Math.floor(random() * 97)}`
  return isIPv4(from)
    ? `${from}-${from.replace(/\.\d+\.\d+$/, '.255.255')}`
    : `${from}-${from.replace(/::.*$/, ':ffff:ffff:ffff:ffff')}`
}

/** @param {() => number} random @param {string[]} lines */
function anyIn(random, lines) {
  const line = /** @type {string} */ (lines[Math.floor(random() * lines.length)])
  return /** @type {string} */ (line.split(/[/-]/)[0])
}

/** @param {number} seed */
function seeded(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
