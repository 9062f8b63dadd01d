import type { LimiterInside } from '../../limiter/limiter.js'
import type { IdentityByKind, KeyValue } from '../../store/identity.js'
import { spanOrForEver } from '../../util/duration.js'
import { SluiceError } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import type { BanReport } from '../../verdict/verdict.js'
import { KEEPER } from './ban-keeper.js'
import { BAN } from './ban-terms.js'
import { emitBlock, emitUnblock } from './block-events.js'
import { type BlockOptions, checkedStrike, checkReason, type StrikeOptions } from './block-options.js'

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
  // No advice for networks: a list may allow only some of their addresses.
  if (subjects.rangeIn(identity) === undefined) early?.adviseOnBlock(subjects.given(identity))
  await Promise.all(texts.map((text) => store.block(name, text, forMs, reason)))
  for (const text of texts) emitBlock(emitter.listeners, { policy: name, identity: text }, forMs, reason)
}

/** See `Limiter.unblock`. */
export async function unblock<Subject>(
  { engine, subjects }: LimiterInside<Subject>,
  identity: KeyValue | IdentityByKind,
): Promise<void> {
  const texts = subjects.toBlock(identity)
  const { policy, store, parts, emitter } = engine
  const { name } = policy
  const scopes = policy.all.flatMap(({ parts }) => parts.get(BAN)?.terms.scope ?? [])
  const policies = [...new Set([name, ...scopes])]
  await Promise.all(texts.flatMap((text) => policies.map((policy) => store.unblock(policy, text))))
  for (const text of texts) {
    parts.get(KEEPER)?.end(text)
    emitUnblock(emitter.listeners, { policy: name, identity: text })
  }
  engine.wake()
}

/** See `Limiter.strike`. */
export async function strike<Subject>(
  { engine, subjects }: LimiterInside<Subject>,
  identity: KeyValue | IdentityByKind,
  options: StrikeOptions,
): Promise<BanReport | undefined> {
  const { where } = engine.policy
  const keeper = engine.parts.get(KEEPER)
  if (!keeper) throw new SluiceError('INVALID_POLICY', `${where}: strike: expected a policy with ban`)
  const strike = checkedStrike(where, options)
  return keeper.strike(subjects.toStrike(identity), strike)
}
