// The kinds of cells: the declarations of each at the head of its file in lua/cells.

/** @import { ReadSource } from './bundle.js' */
/** @import { Source } from './folder.js' */

/**
 * A script that is made for cells of one kind.
 *
 * @typedef {object} KindScript
 * @property {string} name
 * @property {boolean} isShared whether it is for cells that several limits share
 * @property {boolean} isJoint whether it is for several cells under one key
 * @property {Readonly<Record<string, number>>} known the known values of some of its variables
 */

/**
 * @typedef {object} CellKind
 * @property {string} name its file in lua/cells
 * @property {number} number that identifies it in scripts and store
 * @property {number} params the number of parameters of a cell of a single limit
 * @property {boolean} goesTogether whether equal decisions on one key are made at once
 * @property {boolean} hasPermits whether its units are permits
 * @property {boolean} isExchanged whether a process may count it by itself for a while: it has a section `exchange`
 * @property {readonly KindScript[]} scripts
 * @property {readonly (readonly string[])[]} calls commands that it calls beside those of every kind, with the words after the key
 */

/** The name of its number in Lua. @param {CellKind} kind */
function constantOf({ name }) {
  return name.toUpperCase()
}

/**
 * The kinds in the order of their numbers, which have to be 1, 2 and so on.
 *
 * @param {Source} source
 * @returns {CellKind[]}
 */
export function cellKindsOf({ read, cells }) {
  const kinds = cells.map((name) => cellKindOf(name, read(`cells/${name}`) ?? '')).sort((a, b) => a.number - b.number)
  for (const [i, { name, number }] of kinds.entries()) {
    if (number !== i + 1)
      throw new Error(`lua/cells/${name}.lua: @kind: expected ${i + 1}, the next number, got ${number}`)
  }
  return kinds
}

/**
 * @param {string} name
 * @param {string} text
 * @returns {CellKind}
 */
function cellKindOf(name, text) {
  /** @type {{ number: number, params: number, goesTogether: boolean, hasPermits: boolean } | undefined} */
  let kind
  /** @type {KindScript[]} */
  const scripts = []
  /** @type {string[][]} */
  const calls = []
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (!/^\s*--+\s*@(kind|script|calls)\b/.test(line)) continue
    const refused = (/** @type {string} */ expected) =>
      new Error(`lua/cells/${name}.lua:${i + 1}: expected ${expected}, got ${line.trim()}`)
    const [, tag, rest = ''] = /^--- @(kind|script|calls) (.+)$/.exec(line) ?? []
    const [first = '', ...words] = rest.trim().split(/ +/)
    if (tag === 'kind') {
      const { numbers, flags } = declared(words)
      const { params, ...others } = numbers
      if (
        !/^[1-9]\d*$/.test(first) ||
        !params ||
        Object.keys(others).length > 0 ||
        !isAll(flags, ['together', 'permits'])
      )
        throw refused('--- @kind 1 params=4, with "together" or "permits" where it is so')
      kind = {
        number: Number(first),
        params,
        goesTogether: flags.includes('together'),
        hasPermits: flags.includes('permits'),
      }
    } else if (tag === 'script') {
      const { numbers, flags } = declared(words)
      if (!/^(decide|one)-[a-z]+$/.test(first) || !isAll(flags, ['joint', 'shared']))
        throw refused('--- @script decide-name or one-name, "joint" or "shared", and numbers such as own=1')
      scripts.push({
        name: first,
        isShared: flags.includes('shared'),
        isJoint: flags.includes('joint'),
        known: numbers,
      })
    } else if (tag === 'calls' && /^[A-Z]+$/.test(first)) {
      calls.push([first, ...words])
    } else {
      throw refused('--- @kind, --- @script or --- @calls, each with what it declares')
    }
  }
  if (!kind) throw new Error(`lua/cells/${name}.lua: expected a line --- @kind 1 params=4`)
  return { name, ...kind, isExchanged: /^--- @when exchange$/m.test(text), scripts, calls }
}

/** Words as they are declared: `own=1` is a number, others are flags. @param {readonly string[]} words */
function declared(words) {
  /** @type {Record<string, number>} */
  const numbers = {}
  /** @type {string[]} */
  const flags = []
  for (const word of words) {
    const [, name, value] = /^(\w+)=(\d+)$/.exec(word) ?? []
    if (name === undefined) flags.push(word)
    else numbers[name] = Number(value)
  }
  return { numbers, flags }
}

/** @param {readonly string[]} words @param {readonly string[]} known */
function isAll(words, known) {
  return words.every((word) => known.includes(word))
}

/**
 * Reads, beside the files, sources that follow from the kinds. `made/kinds` declares their numbers, and which of them have
 * permits. `made/cells` holds the cells, each in a section and a block of its own, as a function of Lua may have 200 local
 * variables.
 *
 * @param {ReadSource} read
 * @param {readonly CellKind[]} kinds
 * @returns {ReadSource}
 */
export function readWithKinds(read, kinds) {
  const numbers = `local ${kinds.map(constantOf).join(', ')} = ${kinds.map(({ number }) => number).join(', ')}`
  const withPermits = kinds.filter(({ hasPermits }) => hasPermits).map((kind) => `kind == ${constantOf(kind)}`)
  const permits = `local function hasPermits(kind) return ${withPermits.join(' or ') || 'false'} end`
  const cells = kinds.map(({ name }) => `--- @when ${name}\ndo\n--- @include "cells/${name}"\nend\n--- @end\n`).join('')
  return (name) => (name === 'made/kinds' ? `${numbers}\n${permits}\n` : name === 'made/cells' ? cells : read(name))
}
