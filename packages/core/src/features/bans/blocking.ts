import type { LimiterInside } from '../../limiter/limiter.js'
import { BANS, type StoreBans } from '../../store/bans.js'
import type { IdentityByKind, KeyValue } from '../../store/identity.js'
import type { Store } from '../../store/store.js'
import { spanOrForEver } from '../../util/duration.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import type { BanReport } from '../../verdict/verdict.js'
import { POLICY_BAN } from './ban-terms.js'
import { emitBlock, emitUnblock } from './block-events.js'
import { type BlockOptions, checkedStrike, checkReason, type StrikeOptions } from './block-options.js'
import { STRIKE_COUNTER } from './strike-counter.js'

/** See `Limiter.block`. */
export async function block<Subject>(
  { engine, subjects, early }: LimiterInside<Subject>,
  identity: KeyValue | IdentityByKind,
  options: BlockOptions,
): Promise<void> {
  const { policy, store, emitter } = engine
  const { name, where } = policy
  knownOptions(`${where}: block`, options, ['for', 'reason'])
  const reason = checkReason(where, options.reason === undefined ? '' : options.reason)
  const forMs = spanOrForEver(`${where}: block`, 'for', options.for)
  const texts = subjects.toBlock(identity)
  const bans = bansIn(store, where)
  // No advice for networks: a list may allow only some of their addresses.
  if (subjects.rangeIn(identity) === undefined) early?.adviseOnBlock(subjects.given(identity))
  await Promise.all(texts.map((text) => bans.block(name, text, forMs, reason)))
  for (const text of texts) emitBlock(emitter.listeners, { policy: name, identity: text }, forMs, reason)
}

/** See `Limiter.unblock`. */
export async function unblock<Subject>(
  { engine, subjects }: LimiterInside<Subject>,
  identity: KeyValue | IdentityByKind,
): Promise<void> {
  const texts = subjects.toBlock(identity)
  const { policy, store, parts, emitter } = engine
  const { name, where } = policy
  const bans = bansIn(store, where)
  const scopes = policy.all.flatMap(({ parts }) => parts.get(POLICY_BAN)?.terms.scope ?? [])
  const policies = [...new Set([name, ...scopes])]
  await Promise.all(texts.flatMap((text) => policies.map((policy) => bans.unblock(policy, text))))
  for (const text of texts) {
    parts.get(STRIKE_COUNTER)?.end(text)
    emitUnblock(emitter.listeners, { policy: name, identity: text })
  }
  engine.wake()
}

/** @throws SluiceError `INVALID_POLICY` */
function bansIn(store: Store, where: string): StoreBans {
  return store[BANS] ?? invalidPolicy(where, 'store', 'one that blocks, by store[BANS]', store)
}

/** See `Limiter.strike`. */
export async function strike<Subject>(
  { engine, subjects }: LimiterInside<Subject>,
  identity: KeyValue | IdentityByKind,
  options: StrikeOptions,
): Promise<BanReport | undefined> {
  const { where } = engine.policy
  const counter = engine.parts.get(STRIKE_COUNTER)
  if (!counter) throw new SluiceError('INVALID_POLICY', `${where}: strike: expected a policy with ban`)
  const strike = checkedStrike(where, options)
  return counter.strike(subjects.toStrike(identity), strike)
}
