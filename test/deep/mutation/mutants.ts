import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { optimise, scriptsOf } from '@sluice/lua-optimiser'
import { type Token, tokensOf } from './tokens.js'

const LUA = join(import.meta.dirname, '../../../lua')

/** One small mistake in one Lua file. */
export interface Mutant {
  /** The file, the text of the line, the change, and its number among equal ones: it stays the same when lines move. */
  readonly id: string
  /** The path in `lua/`, without `.lua`. */
  readonly file: string
  /** The number of the line, from 1. */
  readonly line: number
  /** The original text and its replacement. */
  readonly change: string
  /** The text of the file with this change. */
  readonly source: string
}

/** The scripts of the build, by name. */
export type Scripts = Readonly<Record<string, string>>

const files = new Map(
  readdirSync(LUA, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .sort()
    .map((file) => [file.replace(/\.lua$/, ''), readFileSync(join(LUA, file), 'utf8')]),
)

const cells = [...files.keys()].flatMap((file) => (file.startsWith('cells/') ? [file.slice('cells/'.length)] : []))

/** The text of a file of `lua/`, by its name without `.lua`. */
export function luaOf(file: string): string | undefined {
  return files.get(file)
}

/** The scripts with a mutant in them, or the original ones without it. */
export function scriptsWith(mutant?: Mutant): Scripts {
  const read = (name: string) => (name === mutant?.file ? mutant.source : luaOf(name))
  return scriptsOf({ read, cells }, (source, known) => {
    const id = JSON.stringify([source, known])
    const text = unchanged.get(id) ?? optimise(source, known)
    if (!mutant) unchanged.set(id, text)
    return text
  })
}

/** Results for the original Lua, as most mutants change only a few of the scripts. */
const unchanged = new Map<string, string>()

/** A change of tokens of a line: those from `from` to before `to` become `text`. */
interface Edit {
  readonly change: string
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Every mutant of every Lua file. */
export function allMutants(): Mutant[] {
  return [...files].flatMap(([file, source]) => mutantsOf(file, source))
}

/** Every mutant of one file. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const lines = source.split('\n')
  const seen = new Map<string, number>()
  return lines.flatMap((text, i) => {
    const tokens = tokensOf(text)
    const code = tokens.length > 0 ? text.slice(tokens[0]?.from, tokens.at(-1)?.to) : ''
    return editsOf(text, tokens).map((edit) => {
      const name = `${file}.lua | ${code} | ${edit.change}`
      const count = (seen.get(name) ?? 0) + 1
      seen.set(name, count)
      const changed = text.slice(0, edit.from) + edit.text + text.slice(edit.to)
      return {
        id: count === 1 ? name : `${name} | ${count}`,
        file,
        line: i + 1,
        change: edit.change,
        source: lines.toSpliced(i, 1, changed).join('\n'),
      }
    })
  })
}

const COMPARISONS: Readonly<Record<string, readonly [boundary: string | undefined, opposite: string]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '==': [undefined, '~='],
  '~=': [undefined, '=='],
}
const SWAPS: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  and: 'or',
  or: 'and',
  true: 'false',
  false: 'true',
}
const CALL_SWAPS: Readonly<Record<string, string>> = { floor: 'ceil', ceil: 'floor', min: 'max', max: 'min' }
/** Tokens before a number that is a result rather than an index: there, 0 becomes 1, and 1 becomes 0. */
const BEFORE_ANSWER = new Set(['return', 'and', 'or', '='])

function editsOf(line: string, tokens: readonly Token[]): Edit[] {
  const edits: Edit[] = []
  const replace = (from: Token, to: Token, text: string, change: string) => {
    edits.push({ change, from: from.from, to: to.to, text })
  }
  const swap = (token: Token, text: string) => replace(token, token, text, `${token.text} to ${text}`)
  tokens.forEach((token, i) => {
    const before = tokens[i - 1]
    const after = tokens[i + 1]
    const isCalled = after?.text === '('
    const comparison = COMPARISONS[token.text]
    if (comparison) for (const other of comparison) if (other) swap(token, other)

    const isBinary = before !== undefined && (before.kind === 'value' || /^[)\]}]$/.test(before.text))
    const sign = token.text === '-' && !isBinary
    if (sign && after) replace(token, after, after.text, `-${after.text} to ${after.text}`)
    const other = SWAPS[token.text]
    if (other && !sign) swap(token, other)
    const called = CALL_SWAPS[token.text]
    if (called && isCalled) swap(token, called)
    if (token.text === 'not' && after) replace(token, after, after.text, `not ${after.text} to ${after.text}`)
    if (/^[01]$/.test(token.text) && before && BEFORE_ANSWER.has(before.text))
      swap(token, token.text === '0' ? '1' : '0')

    // A condition of names alone has no operator to flip.
    const end = tokens.findIndex(({ text }, j) => j > i && (text === 'then' || text === 'do'))
    const condition = /^(if|elseif|while)$/.test(token.text) && after && tokens[end - 1]
    if (condition) {
      const text = line.slice(after.from, condition.to)
      if (!/[<>]|[=~]=/.test(text) || /\b(and|or)\b/.test(text)) {
        replace(after, condition, `not (${text})`, `${text} to its opposite`)
      }
    }

    const close = token.text === 'call' && isCalled ? tokens[closing(tokens, i + 1)] : undefined
    if (close) {
      const text = line.slice(token.from, close.to)
      const isStatement = !before || /^(do|then|else)$/.test(before.text)
      if (isStatement) replace(token, close, 'do end', `${text} left out`)
      const expiry = tokens.slice(i, tokens.indexOf(close)).find(({ text }) => text === "'PX'")
      if (expiry) {
        const comma = tokens[tokens.indexOf(expiry) - 1] as Token
        edits.push({
          change: `${line.slice(comma.from, close.from)} left out`,
          from: comma.from,
          to: close.from,
          text: '',
        })
      }
    }
  })
  return edits
}

/** The position of the bracket that closes the one at `open`. */
function closing(tokens: readonly Token[], open: number): number {
  let depth = 0
  for (let i = open; i < tokens.length; i++) {
    if (tokens[i]?.text === '(') depth++
    if (tokens[i]?.text === ')' && --depth === 0) return i
  }
  return -1
}
