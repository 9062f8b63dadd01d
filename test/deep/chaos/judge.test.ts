// Deep: takes a quarter of an hour.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { App } from './apps.js'
import { type Entry, judge, type Loss, largestExcess, largestPermitExcess, type Stay } from './judge.js'
import { LEASE, LIMIT } from './limits.js'

const at = (from: number, tookMs = 1): Entry => {
  return { limiter: 'log', key: '0', isStores: true, allowed: true, from, to: from + tookMs, late: 0 }
}

test('the judge finds an excess in a window at any position, and none for admissions a window apart', () => {
  expect(largestExcess([at(0), at(100), at(490)], 2, [])).toBe(1)
  expect(largestExcess([at(0), at(100), at(501)], 2, [])).toBe(0)
  // Decided between 480 and 580, perhaps when the first was already a window old.
  expect(largestExcess([at(0), at(100), at(480, 100)], 2, [])).toBe(0)
  const many = [0, 600, 601, 602, 603, 1300].map((from) => at(from))
  expect(largestExcess(many, 2, [])).toBe(2)
})

test('the judge allows one more limit for each loss in the window, and none for a loss elsewhere', () => {
  const six = [0, 1, 2, 3, 4, 5].map((from) => at(from))
  expect(largestExcess(six, 3, [])).toBe(3)
  expect(largestExcess(six, 3, [[2, 3]])).toBe(0)
  expect(largestExcess(six, 3, [[8, 9]])).toBe(3)
})

test('the judge finds an excess of permits at one instant', () => {
  const stays: Stay[] = Array.from({ length: 6 }, (_, n) => ({ key: '0', from: n, to: 10 }))
  expect(largestPermitExcess(stays, [])).toBe(1)
  expect(largestPermitExcess([...stays.slice(0, 5), { key: '0', from: 10, to: 12 }], [])).toBe(0)
})

test('the judge names the limit that was exceeded, and allows leased units after a loss', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-judge-'))
  const file = join(dir, 'app')
  const lines = ['log', 'leased'].flatMap((limiter) =>
    Array.from({ length: LIMIT + 2 }, (_, n) => `${limiter} 0 decided 1 ${10 + n} ${11 + n} 0\n`),
  )
  writeFileSync(file, lines.join(''))
  const excesses = (...losses: Loss[]) => judge([{ file } as App], losses, 1).excesses
  expect(excesses()).toEqual(['log 0: 2', 'leased 0: 2'])
  expect(excesses([8, 9])).toEqual(['log 0: 2'])
  expect(excesses([8 - LEASE.ttl, 9 - LEASE.ttl])).toEqual(['log 0: 2', 'leased 0: 2'])
  expect(excesses([11, 12])).toEqual([])
  rmSync(dir, { recursive: true })
})
