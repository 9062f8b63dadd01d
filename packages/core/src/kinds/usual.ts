// Rules that several kinds share.
import type { CellKind, IdForm, LeaseRules } from './kind.js'

/** The rules that few kinds have, where a kind has none of them. */
export const NO_MORE_RULES = {
  hasPermits: false,
  countRefusals: undefined,
  countInFull: undefined,
  widen: undefined,
  windowAt: undefined,
  usedUntil: undefined,
  waitForMore: undefined,
} as const

/** For kinds without windows, whose receipts do not depend on the rest of the cell. */
export const NO_LEASE_RULES: LeaseRules = {
  tighten: () => undefined,
  windowLength: () => Number.POSITIVE_INFINITY,
  windowEnd: () => Number.POSITIVE_INFINITY,
  receiptAlone: (_, receipt) => receipt,
}

/** For kinds whose only amount is their first parameter. */
export const isFirst: CellKind['isUnits'] = (param) => param === 0

/** For kinds with one limit per cell, whose capacity is that limit. */
export const oneLimit: IdForm['limits'] = ([limit = 0, windowMs = 0]) => [[limit, windowMs, limit]]

export const asTheyAre: IdForm['params'] = (numbers) => numbers

/** For kinds whose units are gone a window after they were charged. */
export const windowBefore: CellKind['chargedAt'] = (_, { windowMs, at, resetMs }) =>
  Math.min(at, at + resetMs - windowMs)
